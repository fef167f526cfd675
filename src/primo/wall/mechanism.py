"""The Gaussian mechanism on all moments at once (ReuseCov of the paper's Algorithm 1, joint)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError, PrivacyError
from primo.planning.plan import CovarianceOrigin, Plan
from primo.planning.residuals import ResidualGrid
from primo.privacy.protection import Protection
from primo.released.moments import ReleasedLengths
from primo.released.release import Release
from primo.released.rounds import ReleasedRound
from primo.rows.lengths import Lengths
from primo.rows.moments import Moments
from primo.rows.outcome_rows import OutcomeRows
from primo.wall.noise import RandomBits, add_noise

__all__ = ["release", "release_lengths", "release_outcome_rows", "release_round"]

Integers = NDArray[np.int64]


def release_lengths(
    lengths: Lengths, plan: Plan, *, bits: RandomBits, backend: str = "primo"
) -> ReleasedLengths:
    """Add noise to the histograms of row lengths that a plan asks for, and return what is public.

    A private block gets the noise of `plan.norm_search`; a public one is counted exactly.

    Guarantee: √`plan.norm_search.spent`-GDP for `plan.protection` under replace-one, if `lengths` were
    counted with `plan`.
    Cost: one discrete Gaussian per bin.
    """
    if lengths.rows != plan.n:
        raise InputError("these lengths do not belong to this plan: the number of rows differs")
    search, released = plan.norm_search, {}
    for block in plan.counted:
        counts: NDArray[np.int64] = getattr(lengths, block)
        if not plan.is_private(block):
            released[block] = counts.astype(np.float64)
            continue
        if search is None or not getattr(search, block):
            raise PrivacyError(
                f"the {block} are private, and the plan has no noise for their lengths"
            )
        scaled = counts * search.unit
        add_noise(
            scaled,
            variance_bits=search.variance_bits,
            bits=bits,
            label=f"lengths of {block}",
            backend=backend,
        )
        released[block] = scaled / search.unit
    return ReleasedLengths(features=released.get("features"), outcomes=released.get("outcomes"))


def release(
    moments: Moments,
    plan: Plan,
    *,
    feature_names: tuple[str, ...],
    outcome_names: tuple[str, ...],
    bits: RandomBits,
    covariance: NDArray[np.float64] | None = None,
    lengths: ReleasedLengths | None = None,
    backend: str = "primo",
    threads: int = 1,
) -> Release:
    """Add noise to every private block and return what may be published.

    `covariance` is given where the plan does not take it from the rows: of a reference panel or an
    earlier release, in scaled units. `lengths` are those that the plan's norms were found from.

    Guarantee: the result is `plan.mu`-GDP for `plan.protection` under replace-one (module
    `privacy.sensitivity`), and (`plan.epsilon`, `plan.budget.delta`)-DP, if `moments` were folded with
    `plan`. The names are schema and taken to be public.
    Cost: one discrete Gaussian per released number, O(d² + d·l), in bounded memory.

    The paper draws covariance and association separately at (ε/2, δ/2); one joint release with split
    ratio 2 gives the covariance for nothing (mathematics.md section 2).
    """
    _check_rows(moments, plan)
    if (lengths is not None) != bool(plan.counted):
        raise InputError("the plan finds norms from row lengths; release those first")
    elsewhere = plan.covariance_origin in (CovarianceOrigin.REFERENCE, CovarianceOrigin.EARLIER)
    if elsewhere != (covariance is not None):
        raise InputError(
            f"the plan takes its covariance from: {plan.covariance_origin}; "
            + ("give that covariance" if elsewhere else "no other one can be given")
        )
    if covariance is None:
        _check_covariance(plan)
    gram, association, outcome = _with_noise(
        moments, plan, bits=bits, backend=backend, threads=threads
    )
    if covariance is None:
        covariance = gram.astype(np.float64) * (plan.feature_step**2 * plan.sampling_factor)
    return Release(
        plan=plan,
        feature_names=feature_names,
        outcome_names=outcome_names,
        covariance=covariance,
        association=association.astype(np.float64) * (plan.feature_step * plan.outcome_step),
        outcome_moments=outcome.astype(np.float64) * plan.outcome_step**2,
        reproducible=bits.reproducible,
        backend=backend,
        lengths=lengths,
    )


def release_outcome_rows(
    rows: OutcomeRows,
    plan: Plan,
    *,
    bits: RandomBits,
    backend: str = "primo",
    threads: int = 1,
) -> NDArray[np.int32]:
    """Add noise to every entry of the outcomes, and return what is public: (n, l) in `plan.row_step`.

    Guarantee: `plan.mu`-GDP (less what finding norms has spent) for `plan.protection` under replace-one
    (module `privacy.perturbation`), if `rows` were collected with `plan`. Every entry has noise of its
    own. Rounding to the published step comes after the noise.
    Cost: one discrete Gaussian per entry, O(n·l).
    """
    noise = plan.perturbation
    if rows.rows != plan.n or rows.outcomes.shape != (plan.n, plan.l):
        raise InputError("these outcomes do not belong to this plan: the number of rows differs")
    if noise is None or plan.protection is not Protection.OUTCOMES:
        raise PrivacyError("the plan has no noise for the outcomes themselves")
    noisy = np.multiply(rows.outcomes, noise.unit, order="C")
    add_noise(
        noisy.reshape(-1),
        variance_bits=noise.variance_bits,
        bits=bits,
        label="outcome rows",
        backend=backend,
        threads=threads,
    )
    noisy += 1 << (noise.dropped_bits - 1)  # the shift rounds down
    noisy >>= noise.dropped_bits
    return noisy.astype(np.int32)  # 2**60 at the most before the noise, so 2**24 now


def release_round(
    moments: Moments,
    plan: Plan,
    *,
    number: int,
    residuals: ResidualGrid | None,
    bits: RandomBits,
    backend: str = "primo",
    threads: int = 1,
) -> ReleasedRound:
    """Add noise to the moments of one round, and return what is public of it.

    `plan` is that of the round (`planning.rounds.round_plan`), `residuals` what the moments were folded
    with; None in the first round (`number` 0), which takes the outcomes as they are.

    Guarantee: `plan.mu`-GDP for `plan.protection` under replace-one, whatever earlier rounds released,
    if `moments` were folded with `plan` and `residuals`. The noise has labels of its own, so it is never
    that of another round.
    Cost: as `release`.
    """
    _check_rows(moments, plan)
    _check_covariance(plan)
    # Residuals of public outcomes depend on private features.
    if residuals is not None and residuals.of_features and not plan.protection.outcomes_private:
        raise PrivacyError("the features are private, and the plan has no noise for residuals")
    gram, association, outcome = _with_noise(
        moments,
        plan,
        bits=bits,
        backend=backend,
        threads=threads,
        prefix=f"round {number + 1} ",
    )
    zeros = np.zeros((plan.width, plan.l))
    return ReleasedRound(
        coefficients=zeros if residuals is None else residuals.coefficients(plan),
        clip=plan.outcomes.norm,
        covariance=gram.astype(np.float64) * plan.feature_step**2,
        association=association.astype(np.float64) * (plan.feature_step * plan.outcome_step),
        outcome_moments=outcome.astype(np.float64) * plan.outcome_step**2,
        covariance_sigma=plan.covariance_sigma,
        association_sigma=plan.association_sigma,
        outcome_sigma=plan.outcome_sigma,
    )


def _check_rows(moments: Moments, plan: Plan) -> None:
    if moments.rows != plan.n:
        raise InputError("these moments do not belong to this plan: the number of rows differs")
    if plan.rounds is not None:
        raise PrivacyError("a plan of several rounds is released round by round")
    if plan.perturbation is not None:
        raise PrivacyError("the noise of this plan is for the outcomes, not for moments")


def _check_covariance(plan: Plan) -> None:
    if plan.protection.features_private and not plan.covariance_noisy:
        raise PrivacyError(
            "the features are private, and the plan has no noise for their covariance"
        )


def _with_noise(
    moments: Moments,
    plan: Plan,
    *,
    bits: RandomBits,
    backend: str,
    threads: int,
    prefix: str = "",
) -> tuple[Integers, Integers, Integers]:
    """Return covariance, association and outcome moments in grid units, with the plan's noise."""

    def noisy(values: Integers, variance_bits: int, label: str) -> None:
        add_noise(
            values,
            variance_bits=variance_bits,
            bits=bits,
            label=prefix + label,
            backend=backend,
            threads=threads,
        )

    def noisy_symmetric(values: Integers, variance_bits: int, label: str) -> None:
        """Svec noise: full variance on the diagonal, half of it off the diagonal."""
        diagonal = np.diagonal(values).copy()
        noisy(diagonal, variance_bits, f"{label} diagonal")
        lower = np.tril_indices(len(values), -1)
        off = values[lower]
        noisy(off, variance_bits - plan.triangle_bits, label)
        values[lower] = off
        values.T[lower] = off
        np.fill_diagonal(values, diagonal)

    grid = plan.grid
    gram = moments.covariance.copy()
    association = np.array(moments.association, order="C")
    outcome = moments.outcome.copy()
    if plan.covariance_noisy:
        noisy_symmetric(gram, grid.covariance_variance_bits, "covariance")
        if plan.intercept:
            gram[-1, -1] = moments.covariance[-1, -1]  # rows·c²: public, needs no noise
    noisy(association.reshape(-1), grid.association_variance_bits, "association")
    if plan.intercept and not plan.protection.outcomes_private:
        association[-1] = moments.association[-1]  # c·Σy of public outcomes needs none either
    if plan.protection.outcomes_private:
        if plan.full_outcome_moments:
            noisy_symmetric(outcome, grid.outcome_variance_bits, "outcome")
        else:
            noisy(outcome, grid.outcome_variance_bits, "outcome diagonal")
    return gram, association, outcome
