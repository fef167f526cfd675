"""Coefficients from a covariance inside blocks of features only, with one prior for all of them."""

from primo.released.estimate.blocks.fit import MIXTURES, BlockFit, fit_blocks, fit_priors
from primo.released.estimate.blocks.problem import BlockMoments

__all__ = ["MIXTURES", "BlockFit", "BlockMoments", "fit_blocks", "fit_priors"]
