"""Coefficients from a covariance inside blocks of features only, with one prior for all of them."""

from primo.released.estimate.blocks.fit import BlockFit, fit_blocks
from primo.released.estimate.blocks.problem import BlockMoments

__all__ = ["BlockFit", "BlockMoments", "fit_blocks"]
