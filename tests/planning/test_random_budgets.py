"""Random settings: what all stages and rounds spend, recounted as fractions, is never above mu²."""

from collections import Counter
from fractions import Fraction

import numpy as np

from factories import planned
from primo.errors import PrimoError
from primo.planning.guarantee import check_plan
from primo.planning.plan import CovarianceOrigin
from primo.privacy import lengths, values
from primo.privacy.bounds import Bounds
from primo.privacy.calibration import lattice_margin
from primo.privacy.grid import SMALLEST_VARIANCE_BITS

BOUNDS = (
    Bounds(norm="auto"),
    Bounds(norm="auto", lower=-1.0, upper=2.0),
    Bounds(norm="auto", scale=2.0),
    Bounds(norm=1.7),
    Bounds(lower=-1.0, upper=2.0),
)


def one_of(rng, values):
    return values[rng.integers(len(values))]


def some_settings(rng):
    d, l = one_of(rng, (1, 2, 5, 20, 21, 60)), one_of(rng, (1, 2, 20, 40, 600))
    return {
        "n": int(10 ** rng.uniform(2, 6.5)),
        "d": d,
        "l": l,
        "epsilon": float(10 ** rng.uniform(-2, 2)),
        "delta": one_of(rng, (1e-7, 1e-9, 1e-20)),
        "protection": one_of(rng, ("both", "features", "outcomes")),
        "feature_bounds": one_of(rng, BOUNDS),
        "outcome_bounds": one_of(rng, BOUNDS),
        "fit_intercept": bool(rng.random() < 0.8),
        "norm_share": float(one_of(rng, (0.001, 0.05, 0.2, 0.5))),
        "rounds": one_of(rng, (1, 2, 3, 50, 256)),
        "split": one_of(rng, (None, 2.0, 0.5)),
    }


def searched(plan):
    """Squared mu and number of released numbers of the stages that find bounds, recounted."""
    spent, numbers = Fraction(0), len(plan.auto_norms) * lengths.BINS
    if (norms := plan.norm_search) is not None:
        spent += Fraction(2 * (norms.features + norms.outcomes) * norms.unit**2, 2**60)
    if (centres := plan.centre_search) is not None:
        blocks = centres.features + centres.outcomes
        spent += Fraction(2 * blocks * centres.count_unit**2, 2**60)
        spent += Fraction(blocks * (2 * 2**20 * centres.unit) ** 2, 2**80)
        numbers += blocks * lengths.BINS + centres.features * plan.d + centres.outcomes * plan.l
    if (columns := plan.column_search) is not None:
        count = columns.features * plan.d + columns.outcomes * plan.l
        spent += Fraction(2 * count * columns.unit**2, 2**60)
        numbers += count * values.BINS
    return spent, numbers


def largest_distance(p, q, s):
    """The largest of 2p(1 - a²) + 2q(1 - ab) + 2s(1 - b²) over a and b from -1 to 1."""
    found = [2 * p + 2 * q + 2 * s] if 4 * p * s >= q * q else []
    for own in (p, s):  # the other cosine is -1
        a = min(Fraction(1), q / (2 * own)) if own else Fraction(1)
        found.append(2 * own * (1 - a * a) + 2 * q * (1 + a))
    return max(found)


def test_all_stages_and_rounds_stay_within_mu():
    rng = np.random.default_rng(0)
    made, most = Counter(), Fraction(0)
    for i in range(150):
        settings = some_settings(rng)
        try:
            plan = planned(**settings)
        except PrimoError:  # too few rows, or too small a budget, for what was asked
            made["refused"] += 1
            continue
        spent, numbers = searched(plan)
        if plan.centre_search is not None or plan.column_search is not None:
            assert 2 * spent <= Fraction(plan.mu) ** 2
        noisy = plan.protection.features_private
        assert plan.covariance_origin in (CovarianceOrigin.ROWS, CovarianceOrigin.ROW_SPACE)
        grids = (plan.grid,) if plan.rounds is None else plan.rounds.grids
        for grid in grids:
            spent += largest_distance(grid.p if noisy else Fraction(0), grid.q, grid.s)
        assert spent <= Fraction(plan.mu) ** 2, settings
        most = max(most, spent / Fraction(plan.mu) ** 2)
        width, l = plan.width, plan.l
        squares = l * (l + 1) // 2 if plan.full_outcome_moments else l
        numbers += len(grids) * (width * (width + 1) // 2 + width * l + squares)
        assert plan.margin >= lattice_margin(numbers, SMALLEST_VARIANCE_BITS) * (1 - 1e-12)
        if i % 10 == 0:
            check_plan(plan)
        for name in ("norm_search", "centre_search", "column_search", "rounds"):
            made[name] += getattr(plan, name) is not None
    assert most > 1 - 1e-9  # nothing is given away either
    assert min(made[name] for name in ("norm_search", "centre_search", "column_search")) > 5
    assert made["rounds"] > 30
    assert made["refused"] < 75
