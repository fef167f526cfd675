"""The ledger itself: charge before rows are read, refuse what does not fit, report what happened."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from primo.errors import Argument, BudgetError, InputError, LedgerError, Message
from primo.ledger.appender import Appender, now, user_name
from primo.ledger.chain import Row, link
from primo.ledger.entries import Charge, Entry, Spent
from primo.ledger.export import write_export
from primo.ledger.key import Key, lost_key
from primo.ledger.naming import Naming
from primo.ledger.people import Sketch, share_people, tokens_digest, tokens_from_bytes
from primo.ledger.refusal import refusal
from primo.ledger.state import FORMAT, State, read_state
from primo.ledger.store import Store, Writer
from primo.privacy.accounting import Cost, fits
from primo.privacy.budget import Budget

__all__ = ["Ledger", "first_row"]

T = TypeVar("T")

_LONGEST = 10_000  # characters of a name or a purpose


class Ledger:
    """What was spent on people, by whom and for what; `open_ledger` and `create_ledger` make it.

    Guarantee: a charge that returned is on disk, and at that moment everything that was ever charged to
    data sets that share a person with this one fitted every limit that holds for them. One
    process writes at a time; a process that dies leaves its whole charge or nothing.
    """

    def __init__(self, store: Store, key: Key | None, *, readonly: bool = False) -> None:
        self._store = store
        self._key = key
        self._readonly = readonly
        # Data sets never change, so what was compared once need not be compared under the lock.
        self._compared: dict[tuple[str, int], bool] = {}

    def __repr__(self) -> str:
        """Show where the ledger is."""
        return f"<Ledger {self.where}>"

    @property
    def where(self) -> str:
        """Where it is, without a password."""
        return self._store.where

    @property
    def key(self) -> Key:
        """The key that people are recognised with; an error if it was not found."""
        if self._key is None:
            raise LedgerError(
                f"the key of {self.where} was not found", argument="key_file", remedy=lost_key()
            )
        return self._key

    @property
    def limit(self) -> Budget:
        """The limit of every data set that has none of its own."""
        return self._state().limit

    @property
    def naming(self) -> Naming:
        """What people are recognised by; charges that name people by something else are refused."""
        return self._state().naming

    @property
    def head(self) -> str:
        """The hash of the last entry; a copy kept elsewhere later shows whether the end is missing."""
        return self._state().last.hash

    def charge(
        self,
        sketch: Sketch,
        cost: Cost,
        *,
        release_id: str,
        purpose: str,
        user: str | None = None,
        dataset: str | None = None,
        again: bool = True,
    ) -> Charge:
        """Pay for a release before its rows are read, or refuse.

        Parameters
        ----------
        sketch
            The people, from `primo.rows.person_tokens.sketch` with this ledger's `key`.
        cost
            What the release costs.
        release_id
            The release. The same one, with the same people and cost, is paid for once: the first
            charge is returned again, with `digest` set if it is published already.
        purpose, user
            Why and who; the user of the operating system if None.
        dataset
            What to call these people if they are new to the ledger.
        again
            Whether the release may be in the ledger already. Only one whose noise is drawn again bit
            for bit may (`primo.workflow.resume`); else it would be another release.

        Raises
        ------
        BudgetError
            If it does not fit; the ledger is unchanged.
        InputError
            If its people are named by other columns than those of this ledger; the ledger is unchanged.
        """
        _check_text(release_id=release_id, purpose=purpose)
        self._check_sketch(sketch)

        def act(appender: Appender) -> Charge:
            state = appender.state
            state.naming.check(sketch.person, self.where)
            earlier = state.charges.get(release_id)
            if earlier is not None:
                if not again:
                    raise LedgerError(
                        f"release {release_id!r} is in {self.where} already. Only a staged release can "
                        "be made again under its name, with the same noise",
                        argument="release_id",
                        value=release_id,
                        remedy=Message.of("leave ", Argument("release_id"), " out"),
                    )
                self._check_same(state, earlier, sketch, cost)
                return earlier
            related = self._related(state, sketch, appender.writer.people)
            known = state.number_of(sketch.digest) is not None
            self._check_limits(state, related, cost, known=known)
            number = self._register(appender, sketch, related, dataset)
            appender.write(
                kind="charge",
                dataset=number,
                release_id=release_id,
                cost=cost.to_dict(),
                purpose=purpose,
                user=user_name(user),
            )
            return appender.state.charges[release_id]

        self._related(self._state(), sketch, self._store.people)  # compare before the lock
        return self._write(act)

    def check_limits(self, cost: Cost) -> None:
        """Refuse a cost that fits no limit of this ledger, whoever the people are and even if unspent.

        Called before people are matched: the answer does not depend on who they are.
        """
        state = self._state()
        limits = {state.limit, *state.limits.values()}
        if not any(fits([cost], limit) for limit in limits):
            whom = "people who are new to it"
            raise BudgetError(refusal(self.where, whom, state.limit, [], cost))

    def finish(self, release_id: str, digest: str) -> Charge:
        """Record that a release was published, with its digest; this cannot be changed later."""
        _check_text(release_id=release_id, digest=digest)

        def act(appender: Appender) -> Charge:
            charge = appender.state.charges.get(release_id)
            if charge is None:
                raise LedgerError(f"release {release_id!r} was never charged to {self.where}")
            if charge.digest is None:
                appender.write(
                    kind="finish", release_id=release_id, digest=digest, user=user_name(None)
                )
            elif charge.digest != digest:
                raise LedgerError(
                    f"release {release_id!r} was published already, with other numbers. One charge "
                    "pays for one release; two draws of noise could be averaged"
                )
            return appender.state.charges[release_id]

        return self._write(act)

    def find(self, release_id: str) -> Charge | None:
        """Return the charge of a release, or None."""
        return self._state().charges.get(release_id)

    def note(
        self,
        cost: Cost,
        *,
        purpose: str,
        dataset: str | Sketch | None = None,
        user: str | None = None,
        release_id: str | None = None,
    ) -> Charge:
        """Enter by hand what was spent elsewhere; it was already spent, so no limit refuses it.

        `dataset` is a label of the ledger, a sketch, or None: every data set, known now or later.
        """
        release_id = f"note-{uuid.uuid4()}" if release_id is None else release_id
        _check_text(release_id=release_id, purpose=purpose)
        if isinstance(dataset, Sketch):
            self._check_sketch(dataset)

        def act(appender: Appender) -> Charge:
            earlier = appender.state.charges.get(release_id)
            if earlier is not None:
                if earlier.cost != cost or not earlier.elsewhere:
                    raise LedgerError(f"release {release_id!r} is in {self.where} already")
                return earlier
            if isinstance(dataset, Sketch):
                appender.state.naming.check(dataset.person, self.where)
                related = self._related(appender.state, dataset, appender.writer.people)
                number: int | None = self._register(appender, dataset, related, None)
            else:
                number = None if dataset is None else appender.state.labelled(dataset)
            appender.write(
                kind="note",
                dataset=number,
                release_id=release_id,
                cost=cost.to_dict(),
                purpose=purpose,
                user=user_name(user),
            )
            return appender.state.charges[release_id]

        return self._write(act)

    def set_limit(
        self, limit: Budget, *, purpose: str, dataset: str | None = None, user: str | None = None
    ) -> None:
        """Change the limit of a data set, or, without one, of all that have none of their own."""
        _check_text(purpose=purpose)

        def act(appender: Appender) -> None:
            state = appender.state
            number = None if dataset is None else state.labelled(dataset)
            if limit == (state.limit if number is None else state.limits.get(number)):
                return
            stored = {"epsilon": limit.epsilon, "delta": limit.delta}
            appender.write(
                kind="limit", dataset=number, limit=stored, purpose=purpose, user=user_name(user)
            )

        self._write(act)

    def spent(self) -> tuple[Spent, ...]:
        """Return, per data set, what was spent on its people and what is left.

        A release counts for every data set that shares a person with the one it was charged to.
        """
        state = self._state()
        return tuple(state.spent(number) for number in state.datasets)

    def history(self) -> tuple[Entry, ...]:
        """Return every entry, oldest first."""
        return tuple(self._state().entries)

    def verify(self, expected_head: str | None = None) -> str:
        """Check every entry and return the head; raise `LedgerError` naming the first bad one.

        With `expected_head`, a head that was noted earlier, also check that nothing was cut off since.
        """
        state = self._state()
        if expected_head is not None and expected_head not in {e.hash for e in state.entries}:
            raise LedgerError(
                f"{self.where} does not contain the entry {expected_head[:16]}… that was its head: the "
                "end was cut off, or it was replaced by an old copy. Restore the newest copy"
            )
        return state.last.hash

    def export(self, path: str | os.PathLike[str], *, replace: bool = True) -> Path:
        """Write the verified history for an auditor: .jsonl with the chain, or .csv as a table.

        Neither holds a token of a person. `replace` says whether a file that is there may be replaced.
        """
        rows = self._store.rows()
        state = read_state(rows, self._key, where=self.where)
        return write_export(Path(path), rows, state.entries, replace=replace)

    def grant_reader(self, role: str) -> None:
        """Let a role of the database read the history, and neither write nor see the tokens."""
        self._store.grant(role, write=False)

    def grant_writer(self, role: str) -> None:
        """Let a role of the database charge (it also needs the key); it cannot change past entries."""
        self._store.grant(role, write=True)

    def _state(self) -> State:
        return read_state(self._store.rows(), self._key, where=self.where)

    def _write(self, act: Callable[[Appender], T]) -> T:
        if self._readonly:
            raise LedgerError(
                f"{self.where} was opened as read-only",
                remedy=Message.of("open it without ", Argument("readonly")),
            )
        key = self.key

        def locked(writer: Writer) -> T:
            return act(Appender(writer=writer, key=key, where=self.where))

        return self._store.write(locked)

    def _related(
        self, state: State, sketch: Sketch, people: Callable[[int], bytes | None]
    ) -> frozenset[int]:
        """Return the data sets that share a person with the sketch."""
        number = state.number_of(sketch.digest)
        if number is not None:
            return state.related(number)
        found = set()
        for dataset in state.datasets.values():
            pair = (sketch.digest, dataset.number)
            if pair not in self._compared:
                tokens = people(dataset.number)
                if tokens is None or tokens_digest(tokens) != dataset.people:
                    raise LedgerError(
                        f"the people of data set {dataset.label!r} in {self.where} are not those that "
                        "were written; restore the ledger from a copy"
                    )
                self._compared[pair] = share_people(sketch.tokens, tokens_from_bytes(tokens))
            if self._compared.get(pair):
                found.add(dataset.number)
        return frozenset(found)

    def _check_limits(
        self, state: State, related: frozenset[int], cost: Cost, *, known: bool
    ) -> None:
        """Refuse a cost that breaks the limit of anyone among these people."""
        earlier = state.costs(related)
        limits: dict[Budget, str] = {} if known else {state.limit: "people who are new to it"}
        for number in sorted(related, reverse=True):
            limits[state.limit_of(number)] = repr(state.datasets[number].label)
        for limit, whom in limits.items():
            if not fits([*earlier, cost], limit):
                raise BudgetError(refusal(self.where, whom, limit, earlier, cost))

    def _register(
        self, appender: Appender, sketch: Sketch, related: frozenset[int], label: str | None
    ) -> int:
        """Return the number of the data set of these people, which may be new."""
        known = appender.state.number_of(sketch.digest)
        if known is not None:
            return known
        number = len(appender.state.datasets) + 1
        appender.writer.add_people(number, sketch.to_bytes())
        appender.write(
            kind="dataset",
            dataset=number,
            label=_new_label(appender.state, label or f"data set {number}"),
            rows=sketch.rows,
            person=sketch.person and list(sketch.person),
            people=sketch.digest,
            overlaps=sorted(related),
            user=user_name(None),
        )
        return number

    def _check_sketch(self, sketch: Sketch) -> None:
        if sketch.key_check != self.key.check:
            raise InputError(
                "the sketch was made with another key; make it with the key of this ledger"
            )

    def _check_same(self, state: State, earlier: Charge, sketch: Sketch, cost: Cost) -> None:
        number = state.owners[earlier.release_id]
        same_people = number is not None and state.datasets[number].people == sketch.digest
        if earlier.cost != cost or not same_people or earlier.elsewhere:
            what = "for other people" if earlier.cost == cost else f"for {earlier.cost}, not {cost}"
            raise LedgerError(
                f"release {earlier.release_id!r} was charged already, {what}; resume it with the same "
                "plan and data, or give the new release an id of its own"
            )


def first_row(limit: Budget, key: Key, naming: Naming) -> Row:
    """Return the entry that a ledger begins with."""
    fields = {
        "kind": "created",
        "format": FORMAT,
        "limit": {"epsilon": limit.epsilon, "delta": limit.delta},
        **naming.to_entry(),
        "key_check": key.check,
        "user": user_name(None),
        "time": now(),
    }
    return link(None, fields, key)


def _new_label(state: State, label: str) -> str:
    taken = {dataset.label for dataset in state.datasets.values()}
    found, copy = label, 2
    while found in taken:
        found, copy = f"{label} ({copy})", copy + 1
    return found


def _check_text(**texts: str) -> None:
    for name, text in texts.items():
        if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
            raise InputError(Argument(name), " must not be empty; it is kept in the history")
