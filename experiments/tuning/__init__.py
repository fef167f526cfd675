"""Hyperparameters of DP-SGD, tuned on simulated data that no experiment is evaluated on.

`python -m experiments.tuning` draws data of the kind of each study (haplotypes of another region, images
that are not MNIST), tries points of `grid.toml`, and writes the best of each cell to `tuned.toml` and
all scores to `scores.parquet`. Tuning on the evaluated rows themselves would cost privacy that is seldom
counted; on separate data it costs none, only time, and `tuned.toml` states how much.
"""

from experiments.tuning.hyperparameters import Hyperparameters, tuned

__all__ = ["Hyperparameters", "tuned"]
