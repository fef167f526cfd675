"""Centred moments of features in blocks: what the estimators of this package are given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.released.blocks import ReleasedBlocks
from primo.released.estimate.means import shrunk_means

__all__ = ["BlockMoments", "Centring", "check_borders"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockMoments:
    """Released second moments of centred data with a covariance inside blocks; all of it is public.

    Features of different blocks are taken to be uncorrelated in the population. In one sample they are
    not quite, which is part of the sampling error: what other blocks explain counts as residual.
    """

    n: int
    starts: NDArray[np.intp]  # (m + 1,) borders of the blocks
    covariance: tuple[Floats, ...]  # m symmetric (w, w), sums over rows, with noise
    sigma: Floats  # (m,) noise scale on a block's diagonal, σ/√2 off it
    association: Floats  # (d, l) with noise
    noise_variance: Floats  # (l,) of an entry of the association
    variation: Floats  # (l,) Σ(y − ȳ)² without `row_noise`; positive
    row_noise: float = 0.0  # variance of noise on every row's outcomes, where it is added to them

    def __post_init__(self) -> None:
        """Check that all parts describe the same features and outcomes."""
        d, l = self.association.shape
        check_borders(self.starts, self.covariance, d)
        if self.sigma.shape != (len(self.covariance),):
            raise InputError("every block needs a noise scale: the release is damaged")
        if self.noise_variance.shape != (l,) or self.variation.shape != (l,):
            raise InputError(f"noise and variation must be given for each of {l} outcomes")
        numbers = (self.association, self.sigma, self.noise_variance, self.variation)
        if not all(np.isfinite(part).all() for part in (*numbers, *self.covariance)):
            raise InputError("the moments contain NaN or infinity: the release is damaged")
        if (self.sigma < 0).any() or (self.noise_variance < 0).any() or not self.row_noise >= 0:
            raise InputError("noise scales must not be negative: the release is damaged")

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of features and outcomes, (d, l)."""
        d, l = self.association.shape
        return d, l


def check_borders(starts: NDArray[np.intp], covariance: tuple[Floats, ...], features: int) -> None:
    """Refuse blocks that are not a partition of the features into the sizes of the matrices."""
    widths = np.diff(starts)
    if len(starts) < 2 or starts[0] != 0 or starts[-1] != features or (widths < 1).any():
        raise InputError(f"the blocks do not cover {features} features, each once")
    if [part.shape for part in covariance] != [(w, w) for w in widths]:
        raise InputError("the covariance of a block does not have the size of the block")


@dataclass(frozen=True, kw_only=True, eq=False)
class Centring:
    """Means of features and outcomes in scaled units, and moments about them.

    Released sums are shrunk toward the public centres (`estimate.means`): where these are the true
    means already, centring adds no noise.
    """

    feature_means: Floats  # (d,)
    outcome_means: Floats  # (l,)
    moments: BlockMoments

    @classmethod
    def of(
        cls,
        blocks: ReleasedBlocks,
        *,
        n: int,
        association: Floats,
        association_sigma: float,
        outcome_sums: Floats | None,
        outcome_sums_sigma: float,
        variation: Floats,
        row_noise: float = 0.0,
    ) -> Centring:
        """Take the means out of raw moments.

        Parameters
        ----------
        blocks
            Covariance and sums as released, in scaled units.
        n
            Rows.
        association
            Σ x yᵀ, (d, l), with noise `association_sigma`.
        outcome_sums
            Σ y, (l,), with noise `outcome_sums_sigma`; None without an intercept.
        variation
            Σ(y − ȳ)² of each outcome, (l,), about its mean already.
        row_noise
            Variance of noise on every row's outcomes, which the association has in it.
        """
        d, l = association.shape
        noise = np.full(l, association_sigma**2)
        if outcome_sums is None:
            moments = BlockMoments(
                n=n,
                starts=blocks.starts,
                covariance=blocks.covariance,
                sigma=blocks.sigma,
                association=association,
                noise_variance=noise,
                variation=variation,
                row_noise=row_noise,
            )
            return cls(feature_means=np.zeros(d), outcome_means=np.zeros(l), moments=moments)
        means, spread = shrunk_means(blocks.sums / n, blocks.sums_sigma / n)
        outcome_means = outcome_sums / n
        covariance = tuple(
            part - n * (np.outer(means[a:b], means[a:b]) + np.diag(spread[a:b]))
            for part, a, b in zip(
                blocks.covariance, blocks.starts[:-1], blocks.starts[1:], strict=True
            )
        )
        # Errors of a mean of one side are multiplied by the sum of the other.
        noise += n**2 * outcome_means**2 * float(spread.mean())
        noise += outcome_sums_sigma**2 * float(np.mean(means**2))
        moments = BlockMoments(
            n=n,
            starts=blocks.starts,
            covariance=covariance,
            sigma=blocks.sigma,
            association=association - n * np.outer(means, outcome_means),
            noise_variance=noise,
            variation=variation,
            row_noise=row_noise,
        )
        return cls(feature_means=means, outcome_means=outcome_means, moments=moments)

    def offset(self, coefficients: Floats) -> Floats:
        """Return the intercepts (l,) that go with coefficients (d, l), in scaled units."""
        return np.asarray(self.outcome_means - self.feature_means @ coefficients)
