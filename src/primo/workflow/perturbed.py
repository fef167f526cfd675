"""A release with noise on the outcomes themselves: collect, draw noise, then read public features."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from primo.errors import Argument, InputError, Message
from primo.planning.plan import CovarianceOrigin, Plan
from primo.released.moments import ReleasedLengths, expect_release
from primo.released.perturbed_release import perturbed_release
from primo.released.release import Release
from primo.rows.outcome_rows import (
    OutcomesOnly,
    PublicMoments,
    WithNoisyOutcomes,
    fold_noisy_outcomes,
    fold_outcome_rows,
    public_order,
    reads_features_alone,
    row_keys,
)
from primo.rows.public_block import PublicRows
from primo.rows.sources.arrays.memory import ArraySource
from primo.rows.sources.base import Source
from primo.rows.walk import Folding, S
from primo.wall import mechanism
from primo.wall.noise import RandomBits
from primo.wall.sealing import moments_digest

__all__ = ["MODERATE", "perturbed_outcomes", "release_perturbed"]

#: Rows up to which the features are kept, and their row space found, where they outnumber the rows.
MODERATE = 2**13

_BLOCK_NUMBERS = 2**22  # of features, whose keys are computed at a time


class Walk(Protocol):
    """Reads every row of a source once and returns what a folding sums."""

    @property
    def source(self) -> Source:
        """Where the rows come from."""
        ...

    def over(self, source: Source) -> Walk:
        """Return the same for another source."""
        ...

    def __call__(
        self,
        folding: Folding[S],
        plan: Plan,
        *,
        collect: PublicRows | None = None,
        description: str = ...,
    ) -> S:
        """Fold all rows under a plan."""
        ...


def release_perturbed(
    walk: Walk,
    plan: Plan,
    *,
    bits: RandomBits,
    backend: str,
    threads: int,
    lengths: ReleasedLengths | None = None,
    starts: NDArray[np.int64] | None = None,
) -> tuple[Release, NDArray[Any] | None]:
    """Release the outcomes with noise, and the moments that follow from them and public features.

    Also returned are the public features, if they have to be kept: they outnumber the rows, and these
    are not too many for a matrix of their products. With `starts`, borders of blocks of features, their
    covariance inside blocks is summed instead, and attached.

    Guarantee: that of `wall.mechanism.release_outcome_rows`; after it no private column is read.
    Cost: a pass over the outcomes and one over the features. Memory of the outcomes, of the moments and
    of some blocks; features that cannot be read without the outcomes are kept from the first pass.
    """
    source = walk.source
    names = source.feature_names, source.outcome_names
    first, kept, features = walk, None, None
    if reads_features_alone(source):
        first = walk.over(OutcomesOnly(source=source))
    elif isinstance(source, ArraySource):
        features = source.features
    else:
        kept = PublicRows("features")
    collected = first(fold_outcome_rows, plan, collect=kept)
    if bits.unbound:  # of a resumable release: tied to what is released
        bits = bits.bound(moments_digest(collected, plan))
    noisy = mechanism.release_outcome_rows(
        collected, plan, bits=bits, backend=backend, threads=threads
    )
    del collected
    # From here on everything is computed from the noisy outcomes and public features.
    if kept is not None:
        features = kept.rows()
    if features is not None:
        source = ArraySource(
            features=features, outcomes=noisy, feature_names=names[0], outcome_names=names[1]
        )
    wanted = plan.covariance_origin is CovarianceOrigin.ROW_SPACE and plan.n <= MODERATE
    wanted = wanted and starts is None
    keep = PublicRows("features") if wanted and features is None else None
    second = walk.over(WithNoisyOutcomes(source=source, noisy=noisy))
    folding: Folding[PublicMoments] = partial(fold_noisy_outcomes, starts=starts)
    found = second(folding, plan, collect=keep, description="reading public features")
    moments = found.moments
    release = perturbed_release(
        plan,
        noisy[public_order(found.row_keys(), noisy)],
        covariance=moments.covariance,
        squares=found.squares,
        sums=found.sums,
        association=moments.association,
        outcome=moments.outcome,
        feature_names=names[0],
        outcome_names=names[1],
        reproducible=bits.reproducible,
        backend=backend,
        lengths=lengths,
        starts=starts,
        inside=found.inside,
    )
    if keep is not None:
        features = keep.rows()
    return release, features if wanted else None


def perturbed_outcomes(release: Release, features: ArrayLike) -> NDArray[np.float64]:
    """Return the released outcomes with noise, in the data's own units and the order of `features`.

    `features` (n, d) are the public ones that the release was made with, in any order of the rows. Rows
    whose features are equal cannot be told apart: they get the noisy outcomes of each other.

    Guarantee: post-processing; costs no privacy, whatever is computed from it: the effects of other
    public features of the same rows, for example. Cost: one pass over the features.

    Examples
    --------
    >>> import numpy as np
    >>> import primo
    >>> rng = np.random.default_rng(0)
    >>> X, other = rng.uniform(-1, 1, size=(500, 2)), rng.uniform(-1, 1, size=(500, 100))
    >>> y = X[:, 0]
    >>> model = primo.PrimoRegressor(
    ...     epsilon=5, delta=1e-6, protection="outcomes", association="perturbed",
    ...     outcome_bounds=(-1, 1),
    ... )
    >>> noisy = primo.perturbed_outcomes(model.fit(X, y).release_, X)
    >>> (other.T @ noisy).shape
    (100, 1)
    """
    plan = expect_release(release).plan
    if release.perturbed is None:
        raise InputError(
            "this release has noise on moments, not on the outcomes themselves",
            remedy=Message.of("release with ", Argument("association", "perturbed")),
        )
    rows = np.asarray(features)
    if rows.shape != (plan.n, plan.d):
        raise InputError(f"features have shape {rows.shape}, not ({plan.n}, {plan.d})")
    step = max(1, _BLOCK_NUMBERS // plan.width)
    keys = np.concatenate(
        [row_keys(rows[start : start + step], plan) for start in range(0, plan.n, step)]
    )
    ordered = np.empty((plan.n, plan.l))
    # Published rows are sorted by key: those of `features`, sorted, are the same rows.
    ordered[np.lexsort(keys.T[::-1])] = release.perturbed
    return plan.outcomes.centre + plan.outcomes.scale * (ordered * plan.row_step)
