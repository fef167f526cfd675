"""`make_release`: read the rows under a plan, once for each stage, and release."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo._util.progress import row_progress
from primo.errors import InputError
from primo.planning.plan import CovarianceOrigin, Plan
from primo.planning.reference import with_constant
from primo.released.moments import PublicFeatures
from primo.released.projection import (
    Projected,
    project_onto_features,
    project_onto_outcomes,
)
from primo.released.release import Release
from primo.released.round_release import pooled_release
from primo.released.row_space import row_space
from primo.rows.block_moments import fold_blocks
from primo.rows.moments import fold
from primo.rows.public_block import (
    PublicColumns,
    PublicRows,
    in_public_order,
    public_block,
    public_means,
)
from primo.rows.sources.arrays.memory import ArraySource
from primo.rows.sources.base import Source
from primo.rows.walk import Folding, S
from primo.wall import mechanism
from primo.wall.blocks import release_blocks
from primo.wall.noise import RandomBits
from primo.wall.sealing import moments_digest
from primo.workflow.perturbed import release_perturbed
from primo.workflow.rounds import RoundRecord, release_rounds
from primo.workflow.stages import find_bounds

__all__ = ["make_release", "with_public_features"]

Matrix = NDArray[np.float64]

_MANY = 2**20  # numbers, from which a second thread for their noise pays


def make_release(
    source: Source,
    plan: Plan,
    *,
    bits: RandomBits,
    covariance: Matrix | None = None,
    backend: str = "primo",
    threads: int | None = None,
    client: Any = None,
    show_progress: bool = False,
    record: RoundRecord | None = None,
    public_blocks: NDArray[np.int64] | None = None,
) -> Release:
    """Read the rows of `source` and release their moments under `plan`.

    `covariance`, in scaled units, is given where the plan does not take it from the rows. `client`, of
    dask.distributed, reads the rows on its workers (`primo.rows.cluster`); the result is the same.
    `record` keeps what a release of several rounds has released so far (`primo.workflow.rounds`).
    `public_blocks` are borders of blocks inside which public features are summed, where outcomes have
    noise themselves.

    Guarantee: (`plan.epsilon`, `plan.budget.delta`)-DP for `plan.protection`, provided `bits` are
    fresh; nothing else that depends on private rows leaves this function.
    Cost: one pass for each round, O(n·d² + n·d·l), O(n·Σw² + n·d·l) with blocks of w features; up to
    four passes of O(n·(d + l)) before it where norms, centres and scales are to be found.
    """
    if source.n != plan.n:
        raise InputError(
            f"the plan was made for {plan.n} rows but the source has {source.n}; "
            "n is public and must be right before the release"
        )
    walk = _Walk(source=source, threads=threads, client=client, show_progress=show_progress)
    lengths = None
    if plan.counted:
        planned = plan
        plan, lengths = find_bounds(walk, planned, bits=bits, backend=backend)
        if covariance is not None and plan.intercept:
            covariance = with_constant(covariance, plan.constant / planned.constant)
    noise_threads = threads or (2 if plan.width * plan.l > _MANY else 1)
    if plan.rounds is not None:
        feature_names, outcome_names = source.feature_names, source.outcome_names
        rounds = release_rounds(
            walk, plan, bits=bits, backend=backend, threads=noise_threads, record=record
        )
        # As below: no row is read again.
        return pooled_release(
            plan,
            rounds,
            feature_names=feature_names,
            outcome_names=outcome_names,
            reproducible=bits.reproducible,
            backend=backend,
            lengths=lengths,
        )
    if plan.blocks is not None:
        inside = walk(fold_blocks, plan)
        if bits.unbound:
            bits = bits.bound(moments_digest(inside, plan))
        return release_blocks(
            inside,
            plan,
            feature_names=source.feature_names,
            outcome_names=source.outcome_names,
            bits=bits,
            lengths=lengths,
            backend=backend,
            threads=noise_threads,
        )
    if plan.perturbation is not None:
        made, features = release_perturbed(
            walk,
            plan,
            bits=bits,
            backend=backend,
            threads=threads or (2 if plan.n * plan.l > _MANY else 1),
            lengths=lengths,
            starts=public_blocks,
        )
        return made if features is None else with_public_features(made, features)
    sample = None
    if plan.draws_sample:
        sample = bits.subset(plan.n, plan.sampled or plan.n, label="sample")
    block = public_block(plan)
    # Rows in memory need not be collected.
    collect = None if block is None or isinstance(source, ArraySource) else PublicRows(block)
    public = getattr(source, block) if block and isinstance(source, ArraySource) else None
    moments = walk(fold, plan, sample=sample, collect=collect)
    if collect is not None:
        public = collect.rows()
    if bits.unbound:  # of a resumable release: tied to what is released
        bits = bits.bound(moments_digest(moments, plan))
    release = mechanism.release(
        moments,
        plan,
        feature_names=source.feature_names,
        outcome_names=source.outcome_names,
        bits=bits,
        covariance=covariance,
        lengths=lengths,
        backend=backend,
        threads=noise_threads,
    )
    # From here on everything is computed from the release and the public block: no row is read again.
    if plan.covariance_origin is CovarianceOrigin.ROW_SPACE and public is not None:
        release = with_public_features(release, public)
    return _projected(release, public) if plan.association == "projection" else release


@dataclass(frozen=True, kw_only=True)
class _Walk:
    """How rows are read: by threads of this process, or on a cluster."""

    source: Source
    threads: int | None
    client: Any
    show_progress: bool

    def over(self, source: Source) -> _Walk:
        """Return the same way to read another source."""
        return dataclasses.replace(self, source=source)

    def __call__(
        self,
        folding: Folding[S],
        plan: Plan,
        *,
        sample: NDArray[np.bool_] | None = None,
        collect: PublicRows | None = None,
        description: str = "reading rows",
    ) -> S:
        """Read every row once and return what `folding` sums."""
        with row_progress(plan.n, show=self.show_progress, description=description) as progress:
            if self.client is None:
                return folding(
                    self.source,
                    plan,
                    sample=sample,
                    threads=self.threads,
                    progress=progress,
                    collect=collect,
                )
            from primo.rows.cluster import fold_on_cluster

            return fold_on_cluster(
                folding,
                self.source,
                plan,
                client=self.client,
                sample=sample,
                progress=progress,
                collect=collect,
            )


def with_public_features(release: Release, features: NDArray[Any]) -> Release:
    """Attach the public features that a release with more features than rows is estimated with.

    Cost: O(n²·d + n³); memory of three n×n matrices and a block of columns.

    Examples
    --------
    With more public features than rows, a loaded release needs the features again:

    >>> import numpy as np
    >>> import primo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20, 30))
    >>> y = X[:, 0]
    >>> model = primo.PrimoRegressor(
    ...     epsilon=5, delta=1e-6, protection="outcomes", outcome_bounds=(-1, 1)
    ... )
    >>> path = primo.save_release(model.fit(X, y).release_, "wide.npz")
    >>> release = primo.with_public_features(primo.load_release(path), X)
    >>> primo.coefficients(release).slopes.shape
    (30, 1)
    """
    plan = release.plan
    if plan.covariance_origin is not CovarianceOrigin.ROW_SPACE:
        raise InputError("only a release with more public features than rows needs them")
    if features.shape != (plan.n, plan.d):
        raise InputError(f"features have shape {features.shape}, not ({plan.n}, {plan.d})")
    features = in_public_order(features)  # a copy: no table that it was cut from stays alive
    means = public_means(features, plan.features) if plan.intercept else np.zeros(plan.d)
    columns = PublicColumns.of(features, plan.features, means=means)
    space = row_space(columns, n=plan.n, width=plan.d)
    return dataclasses.replace(
        release, public_features=PublicFeatures(means=means, row_space=space)
    )


def _projected(release: Release, outcomes: NDArray[Any] | None) -> Release:
    """Project the noisy association onto what the public block allows (GaussProj).

    `outcomes` are given where they are public; public features are in the covariance.
    """
    plan = release.plan
    root = math.sqrt(plan.n)
    association = release.association
    if outcomes is None:
        found = project_onto_features(
            association, release.covariance, radius=root * plan.outcomes.norm
        )
    else:
        columns = PublicColumns.of(in_public_order(outcomes), plan.outcomes)
        found = project_onto_outcomes(
            association[: plan.d], columns, n=plan.n, radius=root * plan.features.norm
        )
        # The row of the constant, the sums of public outcomes, is exact already.
        whole = np.vstack([found.association, association[plan.d :]])
        found = Projected(association=whole, noise_left=found.noise_left)
    return dataclasses.replace(release, projected=found)
