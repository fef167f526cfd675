"""Reading a bundle: every part is verified before anything is used."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from primo._util.reading import unreadable
from primo.errors import InputError
from primo.released.bundle.describe import plan_text, statement_text
from primo.released.bundle.manifest import CONTENT, FILE, MOST_BYTES, agree, parse
from primo.released.bundle.tables import read_variants
from primo.released.coefficients import Coefficients
from primo.released.estimation import Estimation
from primo.released.reach import reach_of
from primo.released.release import Release
from primo.released.release_file import read_release
from primo.variants import Variants

__all__ = ["Bundle", "read_bundle"]

TABLES = ("coefficients", "outcomes")


class Parts(Protocol):
    """The files of a bundle, wherever they are."""

    sizes: dict[str, int]

    def open(self, name: str) -> BinaryIO:
        """Open one of them for reading; it can seek."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Bundle:
    """A verified bundle; `manifest` is the JSON as written (docs/bundle.md).

    Examples
    --------
    >>> import numpy as np
    >>> import primo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 2))
    >>> Y = X @ rng.uniform(-1, 1, size=(2, 3))
    >>> model = primo.PrimoRegressor(
    ...     epsilon=5, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=(-2, 2)
    ... )
    >>> folder = primo.write_bundle(model.fit(X, Y).release_, "first-release")
    >>> bundle = primo.read_bundle(folder)
    >>> bundle.coefficients().slopes.shape, len(bundle.digest)
    ((2, 3), 64)
    """

    path: Path
    manifest: dict[str, Any]
    digest: str  # SHA-256 of manifest.json: names this very release, all parts included
    release: Release  # public features that outnumber the rows are not in it
    variants: Variants | None
    config: str | None
    _parts: Parts = field(repr=False)

    def __repr__(self) -> str:
        """Show the release id and the path."""
        return f"<Bundle {self.manifest['release_id']} at {str(self.path)!r}>"

    @property
    def estimation(self) -> Estimation:
        """How the stored coefficients were estimated."""
        return Estimation(**self.manifest["estimation"])

    @property
    def linkage(self) -> str | None:
        """How correlations of a public panel were used for the coefficients; None without one."""
        said: str | None = self.manifest.get("linkage")
        return said

    def coefficients(self) -> Coefficients:
        """Return the stored coefficients, bit for bit; nothing is estimated again."""
        names, outcomes = self.release.feature_names, self.release.outcome_names
        slopes = self.table("coefficients", ["slope"])["slope"]
        intercept = self.table("outcomes", ["intercept"])["intercept"]
        if len(slopes) != len(names) * len(outcomes) or len(intercept) != len(outcomes):
            raise InputError(f"{str(self.path)!r}: the coefficients do not fit moments.npz")
        return Coefficients(
            slopes=np.ascontiguousarray(slopes.reshape(len(outcomes), len(names)).T),
            intercept=intercept,
            feature_names=names,
            outcome_names=outcomes,
            estimator=self.manifest["estimation"]["estimator"],
            reach=reach_of(self.release.plan),
        )

    def table(self, name: str, columns: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
        """Return columns of the table "coefficients" or "outcomes", as stored; all by default."""
        if name not in TABLES:
            raise InputError(f"no table is called {name!r}; choose one of {', '.join(TABLES)}")
        import pyarrow.parquet as pq

        with self._parts.open(f"{name}.parquet") as file:
            try:
                stored = pq.ParquetFile(file)
                names = stored.schema_arrow.names
                absent = set(columns or ()).difference(names)
                found = None if absent else stored.read(columns=list(columns or names))
            except (OSError, ValueError):  # ArrowInvalid is a ValueError
                raise InputError(f"{name}.parquet in {str(self.path)!r} is damaged") from None
        if found is None:
            raise InputError(f"the table {name!r} has no column {min(absent)!r}")
        return {key: found[key].to_numpy() for key in found.column_names}


def read_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Read a bundle, a folder or a .zip, and verify it.

    Refuses, naming the part: a file that is missing, that the manifest does not list, or whose size
    or SHA-256 differs; a manifest that does not fit the schema or contradicts moments.npz about
    the guarantee; a moments.npz that states another guarantee than its noise gives; a
    statement or plan.json in other words than this version of primo uses, if it wrote the bundle;
    links, compressed or overlapping members, other names in a .zip.

    Notes
    -----
    The hashes prove that the parts belong together. Whether this is *the* release that was made is
    proved by comparing `digest` with the one in the ledger or in the publication.
    Cost: reads every byte once.

    Examples
    --------
    >>> import numpy as np
    >>> import primo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 2))
    >>> Y = X @ rng.uniform(-1, 1, size=(2, 3))
    >>> model = primo.PrimoRegressor(
    ...     epsilon=5, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=(-2, 2)
    ... )
    >>> path = primo.write_bundle(model.fit(X, Y).release_, "first.zip")
    >>> primo.read_bundle(path).release.outcome_names
    ('y0', 'y1', 'y2')
    """
    place = Path(path)
    parts = _parts(place)
    try:
        content = _small(parts, FILE)
        manifest = parse(content)
        _verify(parts, manifest)
        with parts.open("moments.npz") as file:
            release = read_release(file, "moments.npz")
        if not agree(manifest, release):
            raise InputError(f"{FILE} contradicts moments.npz; one of them was edited")
        if manifest["haplotypes"] and release.plan.rows_per_person < 2:
            raise InputError("a person owns two haplotypes, but the plan states one row per person")
        _check_words(parts, manifest, release)
        variants = None
        if (text := _text(parts, "variants.tsv")) is not None:
            variants = read_variants(text, haplotypes=bool(manifest["haplotypes"]))
        config = _text(parts, "config.toml")
    except InputError as error:
        raise InputError(
            f"{str(place)!r} is refused: ",
            error.message,
            argument=error.argument,
            value=error.value,
            remedy=error.remedy,
        ) from None
    except OSError as error:
        raise unreadable(place, error) from None
    return Bundle(
        path=place,
        manifest=manifest,
        digest=hashlib.sha256(content).hexdigest(),
        release=release,
        variants=variants,
        config=config,
        _parts=parts,
    )


def _verify(parts: Parts, manifest: dict[str, Any]) -> None:
    listed = manifest["parts"]
    missing = [name for name in listed if name not in parts.sizes]
    if missing:
        raise InputError(f"{missing[0]} is missing")
    extra = sorted(set(parts.sizes) - set(listed) - {FILE})
    if extra:
        raise InputError(f"{extra[0]!r} is there but not in {FILE}")
    for name, part in listed.items():
        if parts.sizes[name] != part["bytes"]:
            raise InputError(f"{name} has {parts.sizes[name]} bytes, not {part['bytes']}")
        with parts.open(name) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != part["sha256"]:  # type: ignore[arg-type]
                raise InputError(f"{name} was changed: its SHA-256 is not the one in {FILE}")


def _check_words(parts: Parts, manifest: dict[str, Any], release: Release) -> None:
    """Refuse a statement or a plan that was rewritten, its hashes included."""
    if manifest["primo"] != version("primo-dp"):
        return  # another version may have other words
    expected = {"statement.txt": statement_text(release), "plan.json": plan_text(release.plan)}
    for name, text in expected.items():
        if _text(parts, name) != text:
            raise InputError(f"{name} contradicts moments.npz; it was edited")


def _small(parts: Parts, name: str) -> bytes:
    if name not in parts.sizes:
        raise InputError(f"{name} is missing; this is not a bundle")
    if parts.sizes[name] > MOST_BYTES:
        raise InputError(f"{name} has more than {MOST_BYTES} bytes")
    with parts.open(name) as file:
        return file.read()


def _text(parts: Parts, name: str) -> str | None:
    if name not in parts.sizes:
        return None
    with parts.open(name) as file:
        try:
            return file.read().decode()
        except UnicodeDecodeError:
            raise InputError(f"{name} is not UTF-8 text") from None


def _parts(place: Path) -> Parts:
    if place.is_dir():
        return _Folder(place)
    if not place.exists():
        raise InputError(f"there is no bundle at {str(place)!r}")
    return _Zip(place)


class _Folder:
    """Parts as files of a folder; links are not followed."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.sizes: dict[str, int] = {}
        for entry in os.scandir(place):
            found = entry.stat(follow_symlinks=False)
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"{str(place)!r} is refused: {entry.name!r} is not a plain file")
            self.sizes[entry.name] = found.st_size

    def open(self, name: str) -> BinaryIO:
        return open(self._place / name, "rb")


class _Zip:
    """Parts as members of a .zip, stored without compression; nothing is ever extracted."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.sizes: dict[str, int] = {}
        try:
            with zipfile.ZipFile(place) as archive:
                members = archive.infolist()
        except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
            raise InputError(f"{str(place)!r} is neither a folder nor a .zip bundle") from None
        for member in members:
            name = member.filename
            if name not in {FILE, *CONTENT} or name in self.sizes:
                raise InputError(
                    f"{str(place)!r} is refused: {name!r} is not a part of a bundle, or is there twice"
                )
            if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
                raise InputError(
                    f"{str(place)!r} is refused: {name} is compressed or encrypted, which a bundle "
                    "is not; unpack it and read the folder"
                )
            self.sizes[name] = member.file_size
        if sum(self.sizes.values()) > place.stat().st_size:
            raise InputError(f"{str(place)!r} is refused: its members overlap")

    def open(self, name: str) -> BinaryIO:
        try:
            with zipfile.ZipFile(self._place) as archive:
                return io.BytesIO(archive.read(name))
        except (zipfile.BadZipFile, KeyError, NotImplementedError, ValueError, EOFError):
            raise InputError(f"{name} is damaged") from None
