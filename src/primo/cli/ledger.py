"""`primo ledger`: make, read, export and change the record of what was spent on a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from primo.cli.options import json_option
from primo.cli.output import say, show_json, table
from primo.cli.overwriting import check_output, force_option
from primo.errors import InputError, LedgerError

__all__ = ["ledger"]

_where = click.argument("where", metavar="LEDGER")
_key = click.option(
    "--key", type=click.Path(path_type=Path), help="Key file, if not beside the ledger."
)
_head = click.option(
    "--head",
    metavar="HASH",
    help="Head noted earlier; refuse a history that does not contain it any more.",
)
_limit = (
    click.option("--epsilon", type=float, required=True, help="Limit: epsilon."),
    click.option("--delta", type=float, required=True, help="Limit: delta."),
)


@click.group()
def ledger() -> None:
    """Manage a ledger: a limit for each data set and every charge; nothing is deleted.

    LEDGER is a file, or postgresql://user@host/database for a team.
    """


@ledger.command(
    epilog="Example:  primo ledger init cohort.ledger --epsilon 10 --delta 1e-6 --person-column IID"
)
@_where
@_limit[0]
@_limit[1]
@click.option(
    "--person-column",
    "person",
    multiple=True,
    help="Column that names a person (IID for genotype files); charges that name people by another "
    "one are refused. Default: that of the first charge. Repeat for ids in several columns.",
)
@click.option(
    "--identity-by-values",
    "by_values",
    is_flag=True,
    help="Identify people by their feature values, for data without ids; with other columns the same "
    "people are not recognised, and a cell that cannot be read is found before the charge.",
)
@_key
@json_option
def init(
    where: str,
    epsilon: float,
    delta: float,
    person: tuple[str, ...],
    by_values: bool,
    key: Path | None,
    json_: bool,
) -> None:
    """Make a ledger with a limit for each data set, and its key."""
    from primo.ledger import create_ledger
    from primo.privacy.budget import Budget

    limit = Budget(epsilon=epsilon, delta=delta)
    made = create_ledger(
        where, limit=limit, person=person or None, by_values=by_values, key_file=key
    )
    if json_:
        shown = {"ledger": made.where, "epsilon": epsilon, "delta": delta, **made.naming.to_entry()}
        show_json({**shown, "head": made.head})
        return
    say(f"Made {made.where}: at most epsilon {epsilon:g}, delta {delta:g} per data set.")
    say(str(made.naming))
    say(
        "Whoever has its key can test who is in the data. Keep it secret, keep a copy, never publish it."
    )


@ledger.command(epilog="Example:  primo ledger show cohort.ledger")
@_where
@_head
@json_option
def show(where: str, head: str | None, json_: bool) -> None:
    """Show what is spent and left, per data set; verifies the history first."""
    book = _open(where, head=head)
    rows = book.spent()
    if json_:
        shown = {"ledger": book.where, "head": book.head, **book.naming.to_entry()}
        show_json({**shown, "datasets": [_spent(s) for s in rows]})
        return
    say(str(book.naming))
    if not rows:
        say(f"{book.where}: nothing was charged yet.")
        return
    click.echo(
        table(
            ("data set", "rows", "releases", "epsilon spent", "of", "delta", "epsilon left", ""),
            [
                (
                    s.dataset,
                    s.rows,
                    s.releases,
                    f"{s.epsilon:.4g}",
                    f"{s.limit.epsilon:g}",
                    f"{s.limit.delta:.3g}",
                    f"{s.left.epsilon:.4g}",
                    "over the limit" if _over(s) else "",
                )
                for s in rows
            ],
        )
    )
    say(
        "Spent and left are for all releases composed, at the delta of the limit; epsilons are not "
        "simply added up. An epsilon that was asked for at a smaller delta counts as less here."
    )


@ledger.command(epilog="Example:  primo ledger history cohort.ledger --json")
@_where
@_head
@json_option
def history(where: str, head: str | None, json_: bool) -> None:
    """List every entry, oldest first; verifies that none was changed."""
    book = _open(where, head=head)
    entries = book.history()
    if json_:
        show_json(
            {"ledger": book.where, "head": book.head, "entries": [_entry(e) for e in entries]}
        )
        return
    click.echo(
        table(
            ("no.", "time (UTC)", "entry", "data set", "what", "by", "purpose", "release"),
            [
                (
                    e.number,
                    e.time,
                    e.kind,
                    e.dataset or "",
                    _what(e, book.limit.delta),
                    e.user or "",
                    e.purpose or "",
                    (e.release_id or "")[:12],
                )
                for e in entries
            ],
        )
    )
    say(f"Verified. Head of the chain: {book.head}")


@ledger.command(epilog="Example:  primo ledger export cohort.ledger --out books.jsonl")
@_where
@click.option("--out", type=click.Path(path_type=Path), required=True, help=".jsonl or .csv file.")
@force_option
@json_option
def export(where: str, out: Path, force: bool, json_: bool) -> None:
    """Write the history to a file for auditors."""
    check_output(out, force=force)
    book = _open(where)
    path = book.export(out, replace=force)
    if json_:
        show_json({"file": str(path), "head": book.head})
    else:
        say(f"Wrote {path}. Head of the chain: {book.head}")


@ledger.command(epilog="Example:  primo ledger verify books.jsonl")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--head", metavar="HASH", help="Head that the exported history must have.")
@json_option
def verify(file: Path, head: str | None, json_: bool) -> None:
    """Check without the ledger that no entry of an exported history (.jsonl) was changed or removed."""
    from primo.ledger import verify_export

    found = verify_export(file)
    if head is not None and head != found:
        raise LedgerError(
            f"the head of {str(file)!r} is {found[:16]}…, not {head[:16]}…: it is another history, or a "
            "shorter or longer one"
        )
    if json_:
        show_json({"verified": True, "head": found})
    else:
        say(f"Verified. Head of the chain: {found}")


@ledger.command(
    epilog="Example:  primo ledger limit cohort.ledger --epsilon 12 --delta 1e-6 --purpose 'board 3/26'"
)
@_where
@_limit[0]
@_limit[1]
@click.option("--purpose", required=True, help="Who decided it, and why; kept in the history.")
@click.option(
    "--dataset", help="Data set whose limit is changed; the limit of the ledger if not given."
)
@_key
@json_option
def limit(
    where: str,
    epsilon: float,
    delta: float,
    purpose: str,
    dataset: str | None,
    key: Path | None,
    json_: bool,
) -> None:
    """Change the limit; the change is part of the history."""
    from primo.privacy.budget import Budget

    book = _open(where, readonly=False, key=key)
    book.set_limit(Budget(epsilon=epsilon, delta=delta), purpose=purpose, dataset=dataset)
    if json_:
        show_json({"ledger": book.where, "epsilon": epsilon, "delta": delta, "head": book.head})
    else:
        say(f"The limit is now epsilon {epsilon:g}, delta {delta:g}.")


@ledger.command(
    epilog="Example:  primo ledger note cohort.ledger --epsilon 1 --delta 1e-7 --purpose 'DP histogram'"
)
@_where
@click.option("--epsilon", type=float, help="Cost: epsilon, with --delta.")
@click.option("--delta", type=float, help="Cost: delta.")
@click.option("--mu", type=float, help="Cost: mu of Gaussian DP, instead of --epsilon and --delta.")
@click.option(
    "--release",
    type=click.Path(path_type=Path),
    help="Instead of a cost: a release of primo that was made without this ledger; it can then be "
    "extended.",
)
@click.option("--purpose", required=True, help="What was released; kept in the history.")
@click.option("--dataset", help="Data set it was spent on; all of them if not given.")
@_key
@json_option
def note(
    where: str,
    epsilon: float | None,
    delta: float | None,
    mu: float | None,
    release: Path | None,
    purpose: str,
    dataset: str | None,
    key: Path | None,
    json_: bool,
) -> None:
    """Enter what was spent on the same people by another program, or without this ledger."""
    from primo.privacy.accounting import Cost
    from primo.released.bundle import read_bundle

    if [mu, epsilon, release].count(None) != 2 or (epsilon is None) != (delta is None):
        raise InputError("give --epsilon and --delta, or --mu, or --release")
    book = _open(where, readonly=False, key=key)
    if release is not None:
        bundle = read_bundle(release)
        name = str(bundle.manifest["release_id"])
        book.note(bundle.release.plan.cost, purpose=purpose, dataset=dataset, release_id=name)
        charge = book.finish(name, bundle.digest)
    else:
        cost = Cost(mu=mu) if mu is not None else Cost(epsilon=epsilon, delta=delta)
        charge = book.note(cost, purpose=purpose, dataset=dataset)
    if json_:
        show_json({"ledger": book.where, "entry": charge.number, "head": book.head})
    else:
        say(f"Noted as entry {charge.number}.")


@ledger.command(epilog="Example:  primo ledger grant postgresql://... --role auditor --read-only")
@_where
@click.option("--role", required=True, help="Role of the PostgreSQL server.")
@click.option("--read-only", is_flag=True, help="The role may read, but not charge.")
@json_option
def grant(where: str, role: str, read_only: bool, json_: bool) -> None:
    """Let a PostgreSQL role read the ledger, or charge it."""
    book = _open(where, readonly=False)
    if read_only:
        book.grant_reader(role)
    else:
        book.grant_writer(role)
    may = "read" if read_only else "charge"
    if json_:
        show_json({"ledger": book.where, "role": role, "may": may})
    else:
        say(f"{role} may now {may} {book.where}.")


def _open(
    where: str, *, readonly: bool = True, key: Path | None = None, head: str | None = None
) -> Any:
    from primo.ledger import open_ledger

    return open_ledger(where, key_file=key, readonly=readonly, expected_head=head)


def _over(spent: Any) -> bool:
    """Whether more is spent than the limit allows: by a note, or before the limit was lowered."""
    return bool(spent.epsilon > spent.limit.epsilon * (1 + 1e-6))  # what was spent is rounded up


def _what(entry: Any, delta: float) -> str:
    """Say what an entry is about: a limit, a cost (with its epsilon at this delta), a digest."""
    from primo.privacy.accounting import epsilon_spent

    if entry.limit is not None:
        return f"limit epsilon={entry.limit.epsilon:g}, delta={entry.limit.delta:.3g}"
    if entry.cost is not None and entry.cost.mu is not None:
        return (
            f"{entry.cost} (epsilon={epsilon_spent([entry.cost], delta):.4g} at delta={delta:.3g})"
        )
    if entry.cost is not None:
        return str(entry.cost)
    return "" if entry.digest is None else f"sha256:{entry.digest[:12]}"


def _spent(spent: Any) -> dict[str, Any]:
    return {
        "dataset": spent.dataset,
        "rows": spent.rows,
        "releases": spent.releases,
        "limit": {"epsilon": spent.limit.epsilon, "delta": spent.limit.delta},
        "spent": {"epsilon": spent.epsilon, "delta": spent.limit.delta, "mu": spent.mu},
        "left": {"epsilon": spent.left.epsilon, "mu": spent.left.mu},
        "over_limit": _over(spent),
        "overlaps": list(spent.overlaps),
    }


def _entry(entry: Any) -> dict[str, Any]:
    limit = entry.limit
    return {
        "number": entry.number,
        "time": entry.time,
        "kind": entry.kind,
        "dataset": entry.dataset,
        "user": entry.user,
        "purpose": entry.purpose,
        "release_id": entry.release_id,
        "cost": None if entry.cost is None else entry.cost.to_dict(),
        "digest": entry.digest,
        "limit": limit and {"epsilon": limit.epsilon, "delta": limit.delta},
        "hash": entry.hash,
    }
