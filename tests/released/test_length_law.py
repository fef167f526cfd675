"""Noise never decides: laws of lengths and norms near the fewest rows for which they are looked for."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from primo.planning.make import make_plan
from primo.planning.plan import Plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.privacy.lengths import BINS, bin_of_squared
from primo.privacy.norm_search import ENOUGH, ENOUGH_ALONE
from primo.released.found_centres import plan_for_sums
from primo.released.found_norms import found_norms, settled_plan
from primo.released.length_law import _one_peak as one_peak
from primo.released.length_law import denoised, guessed_lengths
from primo.released.moments import ReleasedLengths

Floats = NDArray[np.float64]

N = 1200
DRAWS = 125  # of each of 16 shapes: 2000 in all


def _even(rng: np.random.Generator, columns: int) -> Floats:
    return np.asarray(np.linalg.norm(rng.standard_normal((N, columns)), axis=1))


def _multiplied(rng: np.random.Generator, rows: int, by: float) -> Floats:
    lengths = _even(rng, 10)
    lengths[:rows] *= by
    return lengths


#: Lengths of rows of many kinds.
SHAPES = {
    "constant": lambda rng: np.full(N, 1.7),
    "one column": lambda rng: _even(rng, 1),
    "three columns": lambda rng: _even(rng, 3),
    "ten columns": lambda rng: _even(rng, 10),
    "a hundred columns": lambda rng: _even(rng, 100),
    "columns with tails": lambda rng: np.linalg.norm(rng.standard_t(2.1, (N, 10)), axis=1),
    "rows with tails": lambda rng: _even(rng, 10) / np.sqrt(rng.chisquare(3, N) / 3),
    "rows with heavy tails": lambda rng: _even(rng, 25) / np.sqrt(rng.chisquare(1.5, N)),
    "lognormal": lambda rng: np.exp(rng.standard_normal(N)),
    "two halves": lambda rng: _multiplied(rng, N // 2, 8),
    "a fifth far off": lambda rng: _multiplied(rng, N // 5, 30),
    "a third zeros": lambda rng: _multiplied(rng, N // 3, 0),
    "most of them zeros": lambda rng: _multiplied(rng, N * 7 // 10, 0),
    "one outlier": lambda rng: _multiplied(rng, 1, 1e9),
    "a few enormous": lambda rng: _multiplied(rng, N // 20, 1000),
    "a few long": lambda rng: _multiplied(rng, N // 20, 5),
}


def noisy(lengths: Floats, sigma: float, rng: np.random.Generator) -> Floats:
    counts = np.bincount(bin_of_squared(lengths**2), minlength=BINS)
    return np.asarray(counts + sigma * rng.standard_normal(BINS))


def usual(lengths: Floats) -> tuple[float, float]:
    """Return short and long lengths among rows that are not zeros."""
    low, high = np.quantile(lengths[lengths > 0], (0.02, 0.99))
    return float(low), float(high)


@pytest.mark.parametrize("name", SHAPES)
def test_a_law_that_is_told_is_where_the_rows_are(name: str) -> None:
    """Also with so few rows that most draws tell none: noise must not be taken for rows."""
    rng = np.random.default_rng(17)
    lengths = SHAPES[name](rng)
    low, high = usual(lengths)
    for draw in range(DRAWS):
        sigma = N / (ENOUGH, ENOUGH_ALONE, 50.0)[draw % 3]
        law = denoised(noisy(lengths, sigma, rng), sigma=sigma, n=N)
        if law is None:
            continue
        assert law.shares.sum() == pytest.approx(1)
        held = law.shares[law.lengths > 0]
        middle = law.quantile(1 - held.sum() / 2)
        assert low / 2 < middle < 2 * high
        assert law.norm_above(0.9) < 16 * high


@pytest.mark.parametrize("name", ["ten columns", "columns with tails", "constant", "a few long"])
def test_laws_of_several_columns_are_told_where_a_plan_relies_on_them(name: str) -> None:
    rng = np.random.default_rng(18)
    sigma = N / ENOUGH_ALONE
    lengths = SHAPES[name](rng)
    told = [denoised(noisy(lengths, sigma, rng), sigma=sigma, n=N) is not None for _ in range(40)]
    assert sum(told) >= 34


@pytest.mark.parametrize("share", [0.0, 0.04, 0.12])
def test_a_tail_that_no_bell_is_sure_of_is_counted(share: float) -> None:
    """Rows that spread over two octaves above the others: each of their bins is lost in noise."""
    rng = np.random.default_rng(20)
    n, sigma = 5000, 59.0
    lengths = np.linalg.norm(rng.standard_normal((n, 10)), axis=1)
    tail = int(share * n)
    lengths[:tail] = 4.5 * 2 ** rng.uniform(0, 1.3, tail)
    true = float(np.mean(lengths > 5))
    found = []
    for _ in range(40):
        law = denoised(noisy(lengths, sigma, rng), sigma=sigma, n=n)
        assert law is not None
        found.append(float(law.shares[law.lengths > 5].sum()))
    assert np.mean(found) == pytest.approx(true, abs=0.03)


def test_noise_alone_tells_nothing() -> None:
    rng = np.random.default_rng(19)
    for _ in range(300):
        assert denoised(rng.standard_normal(BINS), sigma=1.0, n=30) is None


@pytest.mark.parametrize("name", ["one column", "lognormal", "most of them zeros"])
def test_a_guess_does_no_harm(name: str) -> None:
    """The longest plausible length is not far too short, and the shortest is not far too long."""
    rng = np.random.default_rng(20)
    sigma = N / ENOUGH_ALONE
    lengths = SHAPES[name](rng)
    low, high = usual(lengths)
    for _ in range(100):
        counts = noisy(lengths, sigma, rng)
        shortest, longest = guessed_lengths(counts, sigma=sigma, n=N)
        assert longest > low / 4
        assert shortest < 4 * high


def _plan(scale: float) -> Plan:
    bounds = Bounds(centre=0, scale=scale, norm="auto")
    settings = Settings(epsilon=1.0, delta=1e-6, feature_bounds=bounds, outcome_bounds=bounds)
    return make_plan(settings, n=N, d=22, l=19)


def test_norms_of_wrong_units_are_never_absurd() -> None:
    """The cliff of a thousandth: a norm of 1.5 for rows of length 3500, and slopes without limit."""
    plan = _plan(1.0)
    assert plan.norm_search is not None
    sigma = plan.norm_search.sigma
    rng = np.random.default_rng(21)
    rows = rng.standard_t(4, (N, 22)) * np.exp(0.3 * rng.standard_normal((N, 1)))
    x = 1000 * np.linalg.norm(rows, axis=1)
    y = 1000 * np.linalg.norm(rows[:, :19], axis=1)
    near = 0
    for _ in range(100):
        lengths = ReleasedLengths(features=noisy(x, sigma, rng), outcomes=noisy(y, sigma, rng))
        found = settled_plan(plan, lengths)
        norms = found.features.norm, found.outcomes.norm
        assert norms[0] > np.quantile(x, 0.01)  # shorter ones make slopes too long
        assert norms[1] < 4 * np.quantile(y, 0.99)  # longer ones are noise without limit
        near += norms[0] < 4 * np.quantile(x, 0.99) and norms[1] > np.quantile(y, 0.01)
    assert near >= 95


def test_rows_of_zeros_leave_harmless_norms() -> None:
    """Features are shortened by nothing plausible, outcomes to the least that is."""
    plan = _plan(1.0)
    rng = np.random.default_rng(22)
    zeros = np.zeros(N)
    noise = ReleasedLengths(features=noisy(zeros, 38.0, rng), outcomes=noisy(zeros, 38.0, rng))
    found = settled_plan(plan, noise)
    assert found.features.norm > 1e6
    assert found.outcomes.norm < 1e-6


def test_a_centre_from_counts_that_tell_nothing_stays_near_the_stated_one() -> None:
    bounds = Bounds(lower=-1000, upper=1000, norm="auto")
    settings = Settings(epsilon=1.0, delta=1e-7, feature_bounds=bounds, outcome_bounds=bounds)
    plan = make_plan(settings, n=3000, d=4, l=1)
    assert plan.centre_search is not None
    rng = np.random.default_rng(23)
    noise = ReleasedLengths(
        features=50 * rng.standard_normal(BINS), outcomes=50 * rng.standard_normal(BINS)
    )
    short = plan_for_sums(plan, noise)
    assert short.features.norm <= 0.13 * plan.features.norm  # its noise is a part of that
    assert short.outcomes.norm <= 0.13 * plan.outcomes.norm


def test_norms_of_ranges_do_no_harm_where_counts_hardly_tell_them() -> None:
    """Not the norm of the sums, which may be next to nothing: as few rows as are asked for, l = 2."""
    bounds = Bounds(lower=-1000, upper=1000, norm="auto")
    settings = Settings(epsilon=0.5, delta=1e-7, feature_bounds=bounds, outcome_bounds=bounds)
    plan = make_plan(settings, n=2200, d=4, l=2)
    assert plan.centre_search is not None
    assert plan.norm_search is not None
    rng = np.random.default_rng(25)
    unsure = 0
    for _ in range(100):
        x, y = (np.linalg.norm(0.25 * rng.standard_normal((2200, k)), axis=1) for k in (4, 2))
        first, last = (
            ReleasedLengths(features=noisy(x, sigma, rng), outcomes=noisy(y, sigma, rng))
            for sigma in (plan.centre_search.counts.sigma, plan.norm_search.sigma)
        )
        found = settled_plan(plan_for_sums(plan, first), last)
        assert found.features.norm > np.quantile(x, 0.1)
        assert found.outcomes.norm > np.quantile(y, 0.1)
        assert found.outcomes.norm <= found.outcomes.longest
        unsure += not found_norms(plan, last).outcomes.found
    assert unsure > 10  # or the test shows nothing


def test_no_guess_is_longer_than_ranges_allow() -> None:
    rng = np.random.default_rng(26)
    for limit in (1e-3, 1.0, 1e3):
        guess = guessed_lengths(rng.standard_normal(BINS), sigma=50.0, n=3000, limit=limit)
        assert limit / 2.1 < guess[1] <= limit


def test_one_peak_is_the_nearest_of_its_kind() -> None:
    counts = np.random.default_rng(24).integers(0, 4, size=4).astype(float)
    found = one_peak(counts)
    rises = np.diff(found) >= -1e-12
    assert not any(not a and b for a, b in itertools.pairwise(rises[np.diff(found) != 0]))
    grid = np.arange(0, 3.01, 0.5)
    least = min(
        float(np.sum((np.array(tried) - counts) ** 2))
        for tried in itertools.product(grid, repeat=4)
        if any(all(np.diff(tried[: p + 1]) >= 0) and all(np.diff(tried[p:]) <= 0) for p in range(4))
    )
    error = float(np.sum((found - counts) ** 2))
    assert error <= least + 1e-9
    assert error > least - 0.5
