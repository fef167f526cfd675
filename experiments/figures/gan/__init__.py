"""A GAN that learns haplotypes and draws as many simulated people as are asked for.

It is trained without any privacy, on data that are simulated or taken to be public: its rows are input
of experiments about speed and accuracy at large n, never a private release.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from experiments.figures.gan.sampler import Sampler
from experiments.figures.gan.settings import FULL, QUICK, Settings

if TYPE_CHECKING:
    from experiments.figures.gan.check import Match

__all__ = ["FULL", "QUICK", "Sampler", "Settings", "load_or_train", "match_of"]


def load_or_train(
    haplotypes: NDArray[np.int8], *, cache: Path, quick: bool = False, progress: bool = True
) -> Sampler:
    """Return a sampler of rows like these: from the cache, or trained now and put there.

    Parameters
    ----------
    haplotypes
        0/1, (rows, snps). A fixed fifth of the rows is held out for the check.
    cache
        Folder of the checkpoint, whose name is a digest of the rows, the settings and the version.
    quick
        Train a small GAN on the first SNPs only, for tests.
    progress
        Show a bar with the time left, where standard error is a terminal.

    Cost: minutes on two cores at 6042 × 16 721, seconds when quick. The same rows, settings, torch and
    kind of processor give the same checkpoint.
    """
    from experiments.figures.gan.train import load_or_train as load

    return load(haplotypes, QUICK if quick else FULL, cache=cache, progress=progress)


def match_of(
    haplotypes: NDArray[np.int8], *, cache: Path, quick: bool = False, progress: bool = True
) -> Match:
    """Compare the GAN's rows with those it learned from and with those held out; save the table.

    Files `gan-….json` and `gan-….parquet` go beside the checkpoint.
    """
    from experiments.figures.gan.check import check

    return check(haplotypes, QUICK if quick else FULL, cache=cache, progress=progress)
