"""A paid release in progress: what is kept on disk so that a killed run can be finished.

`begin` makes the private folder `.<name>.primo-partial` next to the place where the bundle will be, with

    job.json   the name of the release, its configuration, charge and plan: enough to run again
    secret     32 random bytes from which the noise is derived (`primo.wall.sealing`)
    lock       held by the process that works on it

and waits until it is on the disk *before* the ledger is charged; `drawn` says later for which moments
noise was drawn (and `drawn-lengths`, `drawn-sums` and so on, for which counts and sums before them). A
release of several rounds has `drawn-round-1` and so on, `kept-round-1` with what was released, and
`kept-step-2` with what the second round takes residuals of: a resumed run goes on from there. A folder
that others made or may read is refused: they may know the secret. Whenever the process dies, there is

    no folder                  nothing was begun, or everything is finished
    a folder without job.json  `begin` was interrupted: nothing was charged; `begin` takes over
    a folder, no bundle        `resume`: charge unless the ledger has it, read, release, write
    a folder and a bundle      `resume`: `published`; `finish` is all that is left

A resumed run draws the same noise, because it has the same secret and the same rows; so it does not
matter how much of the first run's output was seen.
"""

from __future__ import annotations

import datetime
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from primo._util.atomic import flush, refuse_existing, writing
from primo._util.ownership import NotOursError, PrivateFolder
from primo.errors import Advice, InputError, Message, PrimoError, PrivacyError
from primo.planning.plan import Plan
from primo.released.bundle import read_bundle, write_bundle
from primo.released.bundle.write import check_release_id, new_release_id
from primo.released.estimation import Estimation
from primo.released.ld.panel import LdPanel
from primo.released.release import Release
from primo.variants import Variants
from primo.wall.noise import RandomBits
from primo.wall.sealing import plan_digest

__all__ = ["Staging", "partial_of"]

_FORMAT = "primo job 1"
_SECRET_BYTES = 32

#: What the names of files begin with that note for what noise was drawn, and that rounds are kept in.
_DRAWN, _KEPT = "drawn", "kept-"


def _mark_of(stage: str) -> str:
    """Return the name of the file that notes what the noise of a stage was drawn for."""
    return _DRAWN if stage == RandomBits.RELEASE else f"{_DRAWN}-{stage}"


def partial_of(out: str | os.PathLike[str]) -> Path:
    """Return the private folder that belongs to a bundle under way."""
    place = Path(out)
    return place.with_name(f".{place.name}.primo-partial")


class Staging:
    """A paid release in progress; one process at a time holds it.

    Use as a context manager: leaving it releases the lock and keeps everything for a resume, unless
    `finish` or `discard` was called.
    """

    def __init__(self, out: Path, held: PrivateFolder, job: dict[str, Any]) -> None:
        """Use `begin` or `resume`."""
        self.out = out
        self.folder = held.path
        self._held: PrivateFolder | None = held
        self._job = job

    @classmethod
    def begin(
        cls,
        out: str | os.PathLike[str],
        *,
        config: str,
        plan: Plan,
        charge: Mapping[str, Any],
        release_id: str | None = None,
        created: datetime.date | None = None,
    ) -> Self:
        """Prepare a release whose bundle will be `out`; comes before the ledger is charged.

        Parameters
        ----------
        out
            Where the bundle will be, a folder or a .zip; nothing may be there.
        config
            The configuration as text: everything needed to run again. It will be public.
        plan
            A resumed run has to arrive at the same one.
        charge
            What the ledger is to be charged, JSON: which ledger, which data set, how much.
        release_id
            The name of the charge and of the release; random if left out.
        created
            Date of the release; today in UTC if left out.

        Notes
        -----
        Guarantee: when this returns, everything needed for a resume is on the disk, in a folder that no
        other user can look into. Until the bundle is published and the secret destroyed, it is as
        private as the rows.
        """
        cls.check_place(out)
        place = Path(os.path.abspath(out))
        folder = partial_of(place)
        day = created or datetime.datetime.now(datetime.UTC).date()
        job = {
            "format": _FORMAT,
            "release_id": check_release_id(release_id or new_release_id()),
            "created": day.isoformat(),
            "primo": version("primo-dp"),
            "plan_digest": plan_digest(plan).hex(),
            "charge": dict(charge),
            "config": config,
        }
        with writing(folder), _ours(folder):
            held = _held(PrivateFolder.make(folder))
            try:
                if held.has("job.json"):
                    raise InputError(_unfinished(place))
                refuse_existing(place)
                _prepare(held, job)
            except BaseException:
                held.close()
                raise
        return cls(place, held, job)

    @staticmethod
    def check_place(out: str | os.PathLike[str]) -> None:
        """Refuse a place where no release can be begun, as far as a look at it shows."""
        place = Path(os.path.abspath(out))
        if not place.parent.is_dir():
            raise InputError(f"the folder {str(place.parent)!r} does not exist; create it first")
        folder = partial_of(place)
        if not os.path.lexists(folder):
            refuse_existing(place)
            return
        with writing(folder), _ours(folder), closing(_held(PrivateFolder.open(folder))) as found:
            if found.has("job.json"):
                raise InputError(_unfinished(place))

    @classmethod
    def resume(cls, out: str | os.PathLike[str]) -> Self:
        """Take up a release that was begun and not finished; refuse with the reason if there is none."""
        place = Path(os.path.abspath(out))
        folder = partial_of(place)
        if not os.path.lexists(folder):
            there = " It is complete." if place.exists() else " Start it as a new release."
            raise InputError(f"nothing to resume for {str(place)!r}.{there}")
        with writing(folder), _ours(folder):
            held = _held(PrivateFolder.open(folder))
            try:
                if not held.has("job.json"):
                    _remove(held)
                    raise InputError(
                        f"nothing to resume for {str(place)!r}: the run was interrupted before anything "
                        "was charged, or after all was done. If there is no release, start it as a new "
                        "one"
                    )
                job = _read_job(held)
            except BaseException:
                held.close()
                raise
        return cls(place, held, job)

    @property
    def release_id(self) -> str:
        """The name of the release, and of its charge in the ledger."""
        return str(self._job["release_id"])

    @property
    def created(self) -> datetime.date:
        """The date of the bundle, however late it is finished."""
        return datetime.date.fromisoformat(self._job["created"])

    @property
    def config(self) -> str:
        """The configuration as text."""
        return str(self._job["config"])

    @property
    def charge(self) -> dict[str, Any]:
        """What the ledger is to be charged."""
        return dict(self._job["charge"])

    @property
    def published(self) -> bool:
        """Whether the bundle is in place, so that only `finish` is left."""
        if not self.out.exists():
            return False
        found = read_bundle(self.out).manifest["release_id"]
        if found != self.release_id:
            raise InputError(
                f"{str(self.out)!r} holds release {found}, but the one under way is "
                f"{self.release_id}; move it away and resume again"
            )
        return True

    def __repr__(self) -> str:
        """Show the release, not its secret."""
        return f"<Staging {self.release_id} for {str(self.out)!r} (private)>"

    @property
    def drawn(self) -> bool:
        """Whether noise of any stage was drawn, so that something must not be drawn again."""
        return any(name.startswith(_DRAWN) for name in self._place.names())

    def load(self, name: str) -> bytes | None:
        """Return what was kept of a round (`workflow.rounds`), or None."""
        with _ours(self.folder):
            return self._place.read(_KEPT + name) if self._place.has(_KEPT + name) else None

    def save(self, name: str, content: bytes) -> None:
        """Keep what a round took or released, in the private folder, until the bundle is published."""
        with writing(self.folder), _ours(self.folder):
            self._place.write(_KEPT + name, content)

    def check_plan(self, plan: Plan) -> None:
        """Refuse a plan that is not the one that was begun with and paid for."""
        if plan_digest(plan).hex() != self._job["plan_digest"]:
            raise InputError(
                f"release {self.release_id} was paid for under another plan; resume it with the same "
                f"files, options and version of primo (it was begun with {self._job['primo']})"
            )

    def bits(self) -> RandomBits:
        """Return sealed bits: the same noise for the same rows, however often it is drawn."""
        try:
            with _ours(self.folder):
                secret = self._place.read("secret")
        except FileNotFoundError:
            secret = b""
        if len(secret) != _SECRET_BYTES or not any(secret):
            raise PrivacyError(
                f"the secret of release {self.release_id} was destroyed, as it is once the release is "
                f"published; it cannot be drawn again. If {str(self.out)!r} is gone, it is lost: "
                f"remove {str(self.folder)!r} and pay for a new release"
            )
        return RandomBits.sealed(
            secret, commit=lambda stage, digest: self._commit(secret, stage, digest)
        )

    def _commit(self, secret: bytes, stage: str, digest: bytes) -> None:
        """Record what the noise is drawn for before it is drawn; refuse to draw it for anything else.

        So one charge gives one release, even if an earlier attempt was published and then moved away.
        The record is a keyed hash, so it reveals nothing about the moments.
        """
        mark = hmac.digest(secret, b"primo.staging/drawn:" + digest, "sha256").hex().encode()
        name = _mark_of(stage)
        with writing(self.folder), _ours(self.folder):
            if not self._place.has(name):
                self._place.write(name, mark)
                return
            same = hmac.compare_digest(self._place.read(name), mark)
        if not same:
            raise PrivacyError(
                f"release {self.release_id} was drawn before, and from other rows, columns or options "
                "than these: a second draw would be a second release for one charge. Resume it with "
                f"the data as they were, or remove {str(self.folder)!r} and pay for a new release"
            )

    def write(
        self,
        release: Release,
        *,
        variants: Variants | None = None,
        ld_panel: LdPanel | None = None,
        estimation: Estimation | None = None,
        level: float = 0.95,
        config: str | None = None,
        approve: Callable[[str], object] | None = None,
    ) -> Path:
        """Write the bundle to its place in one atomic step; `write_bundle` with what is known here.

        `config` replaces that of the first attempt, where a resumed run changed what it may change.
        """
        self._place.remove_folders()  # what an attempt that was killed has left
        if not self._place.in_place:
            raise PrivacyError(
                f"{str(self.folder)!r} was moved, or another folder was put in its place, while it was "
                "in use; move it back and resume"
            )
        return write_bundle(
            release,
            self.out,
            config=self.config if config is None else config,
            variants=variants,
            ld_panel=ld_panel,
            release_id=self.release_id,
            estimation=estimation,
            level=level,
            created=self.created,
            workspace=self.folder,
            approve=approve,
        )

    def finish(self) -> None:
        """Verify the bundle, then destroy the secret and remove the folder."""
        if not self.published:
            raise InputError(f"{str(self.out)!r} is not there yet; nothing was removed")
        self.discard()

    def discard(self) -> None:
        """Give the release up: destroy the secret and remove the folder. What was charged stays charged.

        Overwriting is best effort: a journal, a snapshot or a solid-state disk may keep the old
        bytes, so keep the folder out of backups.
        """
        _remove(self._place)
        self.close()

    def close(self) -> None:
        """Release the lock and keep everything for a resume."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _place(self) -> PrivateFolder:
        """The private folder, while it is held."""
        if self._held is None:
            raise InputError("this staging was closed; take it up again with Staging.resume")
        return self._held


def _held(folder: PrivateFolder) -> PrivateFolder:
    """Take the folder's lock: two runs at once would both write and both clean up."""
    try:
        if not folder.lock("lock"):
            where = str(folder.path)
            raise InputError(f"another process is working on {where!r}; wait until it ends")
    except BaseException:
        folder.close()
        raise
    return folder


@contextmanager
def _ours(folder: Path) -> Iterator[None]:
    """Turn `NotOursError` into a message: where the file is, why it matters and what to do."""
    try:
        yield
    except NotOursError as reason:
        raise PrivacyError(
            f"{str(folder)!r}, or a file in it, is refused: {reason}. It has to be yours alone, because "
            "with the secret in it the noise can be taken off the release. Somebody may know that "
            "secret: remove the folder and start anew, in a folder where other users "
            "cannot write. What was charged stays charged"
        ) from None


def _prepare(folder: PrivateFolder, job: dict[str, Any]) -> None:
    """Write secret and job; the job comes last, so its presence means that all is there."""
    try:
        folder.write("secret", secrets.token_bytes(_SECRET_BYTES))
        folder.write("job.json", json.dumps(job, indent=2).encode())
        flush(folder.path.parent)
    except BaseException:
        # Nothing was drawn with the secret yet: no need to overwrite it, which fails on a full disk.
        with suppress(OSError):
            _clear(folder)
        raise


def _remove(folder: PrivateFolder) -> None:
    """Destroy the secret, then the job, then the lock: whatever a crash leaves can be told apart."""
    folder.destroy("secret", "destroyed")
    _clear(folder)
    flush(folder.path.parent)


def _clear(folder: PrivateFolder) -> None:
    """Remove everything, the job and the lock last, and the folder."""
    last = ("job.json", "lock")
    for name in (*(name for name in folder.names() if name not in last), *last):
        folder.remove(name)
    folder.remove_itself()


def _read_job(folder: PrivateFolder) -> dict[str, Any]:
    try:
        job: dict[str, Any] = json.loads(folder.read("job.json").decode())
        if job["format"] != _FORMAT:
            raise ValueError("another format")
        if not all(isinstance(job[name], str) for name in ("config", "primo", "plan_digest")):
            raise TypeError("not text")
        check_release_id(job["release_id"])
        datetime.date.fromisoformat(job["created"])
        dict(job["charge"])
    except NotOursError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError, PrimoError):
        where = str(folder.path / "job.json")
        raise InputError(f"{where!r} is damaged or of another version") from None
    return job


def _unfinished(out: Path) -> Message:
    return Message.of(
        f"a release for {str(out)!r} was begun and not finished. Finish it with ",
        Advice("resume", "Staging.resume and publish"),
        ": the same noise, no further charge. To give it up, remove "
        f"{str(partial_of(out))!r}: what was charged stays charged, and a new release costs anew",
    )
