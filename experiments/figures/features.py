"""Named sets of features: the user's files, what lies in `../shared/data`, or a stand-in.

Columns are centred by their own means, and SNPs are chosen by their frequency in the data themselves:
both are taken to be public here, as in the paper's experiments. On private data they are not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.data import SHARED, kg_haplotypes, mnist_images
from experiments.figures.files import common_snps
from experiments.figures.packed import CACHE, PackedSnps, Tell, tell_stderr
from experiments.figures.stand_ins import dbgap_like, kg_like
from primo.errors import InputError

__all__ = [
    "FEATURES",
    "Data",
    "MissingData",
    "dbgap_snps",
    "draw_features",
    "kg_snps",
    "prepare",
    "rows_of",
    "source_of",
]

Matrix = NDArray[np.float64]


class MissingData(Exception):  # noqa: N818 - a reason to skip a study, not an error of anybody's
    """Data that cannot be simulated are not on this machine; the message says which."""


@dataclass(frozen=True, kw_only=True)
class Data:
    """The user's own files, if there are any, and the folder for data that are made from them."""

    kg: Path | None = None  # phased VCF or BCF, or a VCF Zarr store
    dbgap: Path | None = None  # prefix of a PLINK fileset
    mnist: Path | None = None  # folder of IDX files
    cache: Path = CACHE


def draw_features(
    name: str, *, n: int, d: int, data: Data, rng: np.random.Generator, tell: Tell = tell_stderr
) -> Matrix:
    """Draw n rows of d features and centre the columns.

    Parameters
    ----------
    name
        One of `FEATURES`.
    n, d
        Rows and features are chosen at random, without replacement, where the data have more.
    data
        Where the user's files are.

    Returns
    -------
    ndarray (n, d)

    Raises
    ------
    MissingData
        If the data are not here and have no stand-in.
    """
    try:
        drawing = FEATURES[name]
    except KeyError:
        raise InputError(
            f"features {name!r} are unknown; known are {', '.join(FEATURES)}"
        ) from None
    rows = drawing(n, d, data, rng, tell)
    means = rows.mean(axis=0)
    if rows.dtype == np.float64:
        rows -= means  # in place: a million rows are 200 MB
        return rows
    return np.asarray(rows - means)


def rows_of(name: str, data: Data) -> int | None:
    """Return how many rows a set of features has, or None where any number can be drawn."""
    counts: dict[str, Callable[[], int]] = {
        "1kg": lambda: kg_snps(data).n,
        "1kg-real": lambda: len(_real_haplotypes()),
        "dbgap": lambda: dbgap_snps(data).n,
        "mnist": lambda: len(_mnist(data)),
    }
    return counts[name]() if name in counts else None


def source_of(name: str, data: Data) -> str:
    """Return a text that identifies the user's file and its state; empty without one."""
    given = {"1kg": data.kg, "dbgap": data.dbgap, "gan": data.dbgap, "mnist": data.mnist}
    path = given.get(name.removesuffix("-quick"))
    if path is None:
        return ""
    states = [p.stat() for p in sorted(path.parent.glob(path.name + "*"))]
    return f" {path.resolve()} {[(s.st_size, s.st_mtime_ns) for s in states]}"


def prepare(name: str, *, data: Data, tell: Tell = tell_stderr) -> None:
    """Do the work of the first call of `draw_features` now, before processes share the rest."""
    if name == "1kg":
        kg_snps(data, tell=tell)
    elif name == "dbgap":
        dbgap_snps(data, tell=tell)
    elif name in ("gan", "gan-quick"):
        _sampler(data, name == "gan-quick", tell)


def kg_snps(data: Data, *, tell: Tell = tell_stderr) -> PackedSnps:
    """Return the common SNPs of the user's 1000 Genomes file, or of the stand-in."""
    if data.kg is not None:
        return common_snps(data.kg, cache=data.cache, tell=tell)
    return kg_like(data.cache, tell=tell)


def dbgap_snps(data: Data, *, tell: Tell = tell_stderr) -> PackedSnps:
    """Return the common SNPs of the user's dbGaP files, or of the stand-in."""
    if data.dbgap is not None:
        return common_snps(data.dbgap, cache=data.cache, tell=tell)
    return dbgap_like(data.cache, tell=tell)


Drawing = Callable[[int, int, Data, np.random.Generator, Tell], NDArray[Any]]


def _kg(n: int, d: int, data: Data, rng: np.random.Generator, tell: Tell) -> NDArray[np.int8]:
    return _draw_snps(kg_snps(data, tell=tell), n, d, rng)


def _dbgap(n: int, d: int, data: Data, rng: np.random.Generator, tell: Tell) -> NDArray[np.int8]:
    return _draw_snps(dbgap_snps(data, tell=tell), n, d, rng)


def _draw_snps(snps: PackedSnps, n: int, d: int, rng: np.random.Generator) -> NDArray[np.int8]:
    columns = choose(snps.snps, d, rng, "SNPs")
    return snps.columns(columns)[choose(snps.n, n, rng, "rows")]


def _kg_real(n: int, d: int, data: Data, rng: np.random.Generator, tell: Tell) -> NDArray[np.int8]:
    haplotypes = _real_haplotypes()
    columns = choose(haplotypes.shape[1], d, rng, "SNPs")
    return haplotypes[:, columns][choose(len(haplotypes), n, rng, "rows")]


@functools.lru_cache(maxsize=1)
def _real_haplotypes() -> NDArray[np.int8]:
    path = SHARED / "kg_haplotypes_5008"
    if not path.exists():
        raise MissingData(f"real haplotypes of 1000 Genomes are not at {path}")
    return kg_haplotypes()


def _gan(
    n: int, d: int, data: Data, rng: np.random.Generator, tell: Tell, *, quick: bool = False
) -> NDArray[np.int8]:
    sampler = _sampler(data, quick, tell)
    drawn: NDArray[np.int8] = sampler.draw(choose(sampler.snps, d, rng, "SNPs"), n, rng)
    return drawn


@functools.lru_cache(maxsize=2)
def _sampler(data: Data, quick: bool, tell: Tell) -> Any:
    from experiments.figures.gan import load_or_train

    snps = dbgap_snps(data, tell=tell)
    if snps.copies != 1:
        raise MissingData(
            "the GAN learns haplotypes, and a .bed file has unphased genotypes; without --dbgap it is "
            "trained on the simulated stand-in"
        )
    return load_or_train(snps.columns(slice(None)), cache=data.cache, quick=quick)


def _gaussian(n: int, d: int, data: Data, rng: np.random.Generator, tell: Tell) -> Matrix:
    return rng.standard_normal((n, d))


def _mnist_rows(n: int, d: int, data: Data, rng: np.random.Generator, tell: Tell) -> Matrix:
    pixels = _mnist(data)
    columns = choose(pixels.shape[1], d, rng, "pixels")
    return pixels[choose(len(pixels), n, rng, "rows")][:, columns] / 255.0


def _mnist(data: Data) -> NDArray[np.uint8]:
    folder = data.mnist if data.mnist is not None else SHARED / "mnist"
    if data.mnist is None and not folder.exists():
        raise MissingData(
            f"MNIST is not at {folder}; give a folder of its IDX files, for example "
            "--mnist ~/data/mnist with train-images-idx3-ubyte.gz in it"
        )
    return mnist_images(folder)


FEATURES: dict[str, Drawing] = {
    "1kg": _kg,
    "1kg-real": _kg_real,
    "dbgap": _dbgap,
    "gan": _gan,
    "gan-quick": functools.partial(_gan, quick=True),
    "gaussian": _gaussian,
    "mnist": _mnist_rows,
}


def choose(available: int, wanted: int, rng: np.random.Generator, what: str) -> NDArray[np.int64]:
    """Choose some of the available ones at random, or take all of them in order."""
    if wanted > available:
        raise InputError(f"{wanted} {what} were asked for, but there are only {available}")
    if wanted == available:
        return np.arange(available)
    return np.asarray(rng.choice(available, size=wanted, replace=False))
