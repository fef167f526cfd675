"""Writing a bundle: whole or not at all."""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import secrets
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from primo._util.atomic import new_file, new_folder, publish
from primo.errors import Argument, InputError
from primo.released.bundle.describe import plan_text, statement_text
from primo.released.bundle.manifest import CONTENT, FILE, encode, has_slope_intervals, make_manifest
from primo.released.bundle.tables import variants_text, write_tables
from primo.released.coefficients import estimate_coefficients
from primo.released.estimation import Estimation
from primo.released.ld.panel import LdPanel, linked_or_not
from primo.released.moments import expect_release
from primo.released.release import Release
from primo.released.release_file import write_release
from primo.released.uncertainty.system import check_level
from primo.variants import Variants

__all__ = ["check_release_id", "file_digest", "new_release_id", "write_bundle"]


def write_bundle(
    release: Release,
    path: str | os.PathLike[str],
    *,
    config: str | None = None,
    variants: Variants | None = None,
    ld_panel: LdPanel | None = None,
    release_id: str | None = None,
    estimation: Estimation | None = None,
    level: float = 0.95,
    created: datetime.date | None = None,
    workspace: Path | None = None,
    approve: Callable[[str], object] | None = None,
) -> Path:
    """Write everything that may be published about a release to a new folder, or to a new .zip.

    Parameters
    ----------
    path
        Where to; one file if the name ends in .zip. Nothing may be there yet.
    config
        The configuration it was made with, as text; kept as config.toml. It will be public.
    variants
        What is known of the genetic features; other features may be among them.
    ld_panel
        For a release that holds the diagonal (``covariance="panel"``): public correlations that the
        slopes are estimated with. The manifest says how they were used; moments.npz stays as released.
        A panel whose allele frequencies are not those of the cohort is not used, and the manifest says
        that.
    release_id
        The name under which the ledger was charged; random if left out.
    estimation
        How the slopes are estimated; `primo.Estimation()` if left out.
    level
        Coverage of the intervals.
    created
        Date of the bundle; today in UTC if left out.
    workspace
        Folder for temporary files, on the same file system; beside `path` if left out.
    approve
        Called with the digest of the finished bundle before it appears; an error keeps it from
        appearing.

    Notes
    -----
    Guarantee: post-processing of the release and public choices; costs no privacy. Names, order, keys
    and the size of every file follow from the plan (with the norms that were found), the names,
    which ends of intervals are infinite, and, with `ld_panel`, how its correlations were used; only
    released numbers and their hashes depend on rows.
    Dates, the files' included, have no time of day.
    The bundle appears in one atomic step, after its bytes are on the disk.
    Cost: O(d²·l) and two tables of d·l lines; memory of a block of outcomes and d·l numbers.

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
    >>> path.name
    'first.zip'
    """
    release, target = expect_release(release), Path(path)
    release_id = check_release_id(release_id or new_release_id())
    created = created or datetime.datetime.now(datetime.UTC).date()
    estimation, level = estimation or Estimation(), check_level(level)
    linked, linkage = release, None
    if ld_panel is not None:
        linked, linkage = linked_or_not(release, variants, ld_panel)
    fitted = estimate_coefficients(linked, estimation)
    with new_folder(target, workspace=workspace) as folder:
        made = folder / "bundle"
        made.mkdir()
        write_tables(
            made,
            release,
            fitted,
            estimation=estimation,
            variants=variants,
            level=level,
            slope_intervals=has_slope_intervals(release.plan, estimation),
        )
        with new_file(made / "moments.npz") as file:
            write_release(release, file)
        texts = {
            "statement.txt": statement_text(release),
            "plan.json": plan_text(release.plan),
            "variants.tsv": None if variants is None else variants_text(variants),
            "config.toml": config,
        }
        for name, text in texts.items():
            if text is not None:
                _put(made / name, text.encode())
        manifest = make_manifest(
            release,
            parts={file.name: file_digest(file) for file in made.iterdir()},
            release_id=release_id,
            created=created,
            estimation=estimation,
            level=level,
            variants=variants,
            linkage=linkage,
        )
        _put(made / FILE, encode(manifest))
        if approve is not None:
            approve(file_digest(made / FILE)[0])
        if target.suffix == ".zip":
            made = _zipped(made, folder / "bundle.zip")
        _date(made, created)
        publish(made, target)
    return target


def new_release_id() -> str:
    """Return a name that no other release has."""
    return secrets.token_hex(16)


def check_release_id(release_id: str) -> str:
    """Return the release id; refuse one that a manifest or a ledger cannot hold."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", release_id):
        raise InputError(
            Argument("release_id", release_id),
            ": use up to 128 letters, digits, dots, dashes and underscores, "
            "a letter or digit first",
        )
    return release_id


def file_digest(path: Path) -> tuple[str, int]:
    """Return the SHA-256 and the size of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), os.fstat(file.fileno()).st_size


def _put(path: Path, content: bytes) -> None:
    with new_file(path) as file:
        file.write(content)


def _zipped(folder: Path, path: Path) -> Path:
    """Pack a folder without compression and without times, so that equal parts give equal bytes."""
    with new_file(path) as whole, zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        for name in (FILE, *CONTENT):
            if not (folder / name).exists():
                continue
            member = zipfile.ZipInfo(name)  # dated 1980-01-01
            member.create_system = 3
            member.external_attr = 0o644 << 16
            with (
                open(folder / name, "rb") as file,
                archive.open(member, "w", force_zip64=True) as out,
            ):
                shutil.copyfileobj(file, out, 2**20)
    return path


def _date(made: Path, created: datetime.date) -> None:
    """Give files the date of the release, so that they do not show when the run ended."""
    midnight = datetime.datetime.combine(created, datetime.time(), datetime.UTC).timestamp()
    for path in (*(made.iterdir() if made.is_dir() else ()), made):
        os.utime(path, (midnight, midnight))
