"""Norms, centres and columns from noisy histograms: sensible for every shape of data."""

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from primo.privacy import values as signed_grid
from primo.privacy.centre_search import centring_pays
from primo.privacy.column_search import columns_speak
from primo.privacy.lengths import BINS, bin_of_squared
from primo.privacy.norm_search import speaks
from primo.released.found_centres import found_centre
from primo.released.found_columns import find_columns
from primo.released.length_law import FAR, QUIET, denoised, lit_bins, nearest_shares
from primo.released.norms import DIRECTED, ChosenNorms, LengthHistogram, choose_norms

Floats = NDArray[np.float64]

N, SIGMA = 5000, 45.0  # about ε = 1 with 5 % of the budget


def counted(lengths: Floats, sigma: float = SIGMA, seed: int = 0) -> LengthHistogram:
    exact = np.bincount(bin_of_squared(lengths**2), minlength=BINS)
    noise = np.random.default_rng(seed).standard_normal(BINS)
    return LengthHistogram(counts=exact + sigma * noise, sigma=sigma)


def choose(
    x: LengthHistogram | None,
    y: LengthHistogram | None,
    *,
    n: int = N,
    d: int = 10,
    l: int = 1,
    loud: float = 1.0,
    centred: tuple[str, ...] = (),
) -> ChosenNorms:
    return choose_norms(
        features=x,
        outcomes=y,
        feature_norm=7.0,
        outcome_norm=9.0,
        n=n,
        d=d,
        l=l,
        covariance_scale=8 * loud,
        association_scale=8 * loud,
        outcome_scale=8 * loud,
        intercept=True,
        centred=centred,
    )


def normal(columns: int, n: int = N, seed: int = 1) -> Floats:
    rows = np.random.default_rng(seed).standard_normal((n, columns))
    return np.asarray(np.linalg.norm(rows, axis=1))


def rms(lengths: Floats) -> float:
    return float(np.sqrt(np.mean(lengths**2)))


@pytest.mark.parametrize("seed", range(5))
def test_norms_of_normal_rows_are_near_their_typical_length(seed: int) -> None:
    x, y = normal(10), normal(1, seed=2)
    found = choose(counted(x, seed=seed), counted(y, seed=seed + 100))
    assert 0.7 < found.features.norm / rms(x) < 1.6
    assert 0.9 < found.outcomes.norm / rms(y) < 4.5  # the predicted error is flat there
    assert found.features.found
    assert found.outcomes.found


@pytest.mark.parametrize("scale", [1e-3, 1 / 30, 30.0, 1000.0])
def test_a_common_wrong_scale_changes_nothing_but_the_unit(scale: float) -> None:
    x, y = normal(10), normal(1, seed=2)
    right = choose(counted(x), counted(y))
    wrong = choose(counted(scale * x), counted(scale * y))
    assert wrong.features.norm / scale == pytest.approx(right.features.norm, rel=0.25)
    # The least predicted error of one normal outcome is flat: any of these norms serves.
    assert wrong.outcomes.norm / scale == pytest.approx(right.outcomes.norm, rel=0.6)
    assert lost(wrong) == pytest.approx(lost(right), abs=0.01)


def lost(found: ChosenNorms) -> float:
    """Predicted loss of the norms that were chosen."""
    pair = found.features.norm, found.outcomes.norm
    (own,) = (o for o in found.options if (o.feature_norm, o.outcome_norm) == pair)
    return own.lost


def test_a_few_enormous_rows_do_not_move_the_norm() -> None:
    x, y = normal(10), normal(1, seed=2)
    usual = choose(counted(x), counted(y))
    x[:20] *= 1e5
    y[:20] = np.inf
    found = choose(counted(x), counted(y))
    assert found.features.norm == pytest.approx(usual.features.norm, rel=0.2)
    assert found.outcomes.norm == pytest.approx(usual.outcomes.norm, rel=0.2)


def test_heavy_tails_are_cut() -> None:
    rng = np.random.default_rng(3)
    x = np.linalg.norm(rng.standard_t(1.5, size=(N, 10)), axis=1)
    found = choose(counted(x), counted(normal(1)))
    assert found.features.norm < np.quantile(x, 0.99)
    assert 0.01 < found.features.shortened < 0.7


def test_a_long_tail_of_outcomes_is_told_where_counts_are_quiet() -> None:
    """Numbers of visits: one row of twenty is longer than four medians, and tells most."""
    rng = np.random.default_rng(8)
    y = np.exp(rng.standard_normal(N))
    y[: N // 20] = 6.0
    median = float(np.median(y))
    longest = {}
    for quiet in (True, False):
        sigma = (0.5 if quiet else 2.0) * QUIET * N
        for long_tail in (True, False):
            law = denoised(counted(y, sigma=sigma).counts, sigma=sigma, n=N, long_tail=long_tail)
            assert law is not None
            longest[quiet, long_tail] = law.longest / median
    assert longest[True, True] > 5.5
    assert longest[True, False] == pytest.approx(FAR, rel=0.1)
    assert longest[False, True] == longest[False, False]


def test_a_long_tail_lengthens_the_norm_of_outcomes_alone() -> None:
    y = np.exp(1.2 * np.random.default_rng(8).standard_normal(N))
    plain, quiet = counted(y, sigma=2 * QUIET * N), counted(y, sigma=0.02 * QUIET * N)
    x = counted(normal(10), sigma=1.0)
    assert choose(x, quiet, loud=0.2).outcomes.norm > choose(x, plain, loud=0.2).outcomes.norm
    assert choose(quiet, x, loud=0.2).features.norm <= FAR * 1.1 * float(np.median(y))


def test_constant_lengths_are_not_cut() -> None:
    found = choose(counted(np.full(N, 1.7)), counted(np.full(N, 0.3)))
    assert 1.7 <= found.features.norm < 1.7 * 1.25
    assert 0.3 <= found.outcomes.norm < 0.3 * 1.25
    assert found.features.shortened == pytest.approx(0, abs=0.02)
    assert found.outcomes.shortened == pytest.approx(0, abs=0.02)


def test_one_column_far_off_its_centre_is_not_cut() -> None:
    """With x in 5 to 7 about 0 every length is signal, and a norm of 5 would leave none of it."""
    x = np.random.default_rng(4).uniform(5, 7, size=N)
    found = choose(counted(x), counted(normal(1)), d=1)
    assert 6.5 < found.features.norm < 8.5


def test_the_longer_of_two_populations_is_seen() -> None:
    x = np.concatenate([normal(10, n=N // 2), 8 * normal(10, n=N // 2, seed=5)])
    law = denoised(counted(x).counts, sigma=SIGMA, n=N)
    assert law is not None
    assert law.shares[law.lengths > 10].sum() == pytest.approx(0.5, abs=0.1)
    found = choose(counted(x), counted(normal(1)))
    assert x.min() < found.features.norm < x.max() * 1.2


@pytest.mark.parametrize(
    ("share", "whole"), [(0.5, True), (0.3, True), (0.1, False), (0.04, False)]
)
def test_a_population_that_is_not_small_is_not_cut(share: float, whole: bool) -> None:
    """Slopes would be several times too long: half of the rows 50 times as long gave an R² of -10."""
    x, y = normal(10), normal(1)
    x[: int(share * N)] *= 50
    typical = float(np.median(x[: int(share * N)]))
    found = choose(counted(x, sigma=20.0), counted(y, sigma=20.0))
    assert (found.features.norm > 0.8 * typical) == whole
    assert found.features.norm < 2 * typical


def test_rows_of_zeros_are_counted_apart() -> None:
    x = normal(10)
    x[: N // 2] = 0
    law = denoised(counted(x).counts, sigma=SIGMA, n=N)
    assert law is not None
    assert law.lengths[0] == 0
    assert law.shares[0] == pytest.approx(0.5, abs=0.1)
    found = choose(counted(x), counted(normal(1)))
    assert 2 < found.features.norm < 7


@pytest.mark.parametrize("lengths", [np.zeros(N), np.zeros(1), np.ones(1), np.empty(0)])
def test_a_histogram_that_says_nothing_keeps_the_stated_norm(lengths: Floats) -> None:
    found = choose(counted(lengths), counted(lengths), n=max(len(lengths), 1))
    assert (found.features.norm, found.outcomes.norm) == (7.0, 9.0)
    assert not found.features.found
    assert found.features.factor == found.outcomes.factor == 1.0


def test_all_noise_says_nothing() -> None:
    silent = [
        denoised(counted(np.empty(0), seed=seed).counts, sigma=SIGMA, n=N) for seed in range(40)
    ]
    assert sum(law is not None for law in silent) <= 1


def test_a_block_without_histogram_keeps_its_norm() -> None:
    found = choose(None, counted(normal(1)))
    assert found.features.norm == 7.0
    assert not found.features.found
    assert found.outcomes.found


def test_more_noise_never_loosens_the_norms() -> None:
    x, y = counted(normal(25), sigma=1.0), counted(normal(11), sigma=1.0)
    quiet = choose(x, y, d=25, l=11, loud=0.2)
    loud = choose(x, y, d=25, l=11, loud=5.0)
    assert loud.features.norm <= quiet.features.norm
    assert loud.outcomes.norm <= quiet.outcomes.norm


def test_factors_are_what_shortening_does_to_slopes_of_normal_rows() -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((20_000, 12))
    w = rng.standard_normal((12, 6))
    y = x @ w / 4 + rng.standard_normal((20_000, 6))
    lengths = [np.linalg.norm(block, axis=1) for block in (x, y)]
    found = choose_norms(
        features=counted(lengths[0], sigma=1.0),
        outcomes=counted(lengths[1], sigma=1.0),
        feature_norm=1.0,
        outcome_norm=1.0,
        n=20_000,
        d=12,
        l=6,
        covariance_scale=200.0,
        association_scale=200.0,
        outcome_scale=200.0,
        intercept=False,
    )
    whole = np.linalg.lstsq(x, y, rcond=None)[0]
    for block, choice in (("x", found.features), ("y", found.outcomes)):
        assert choice.shortened > 0.1
        left, right = (
            rows * np.minimum(1, choice.norm / length)[:, None] if name == block else rows
            for name, rows, length in zip("xy", (x, y), lengths, strict=True)
        )
        slopes = np.linalg.lstsq(left, right, rcond=None)[0]
        factor = float(np.sum(slopes * whole) / np.sum(whole**2))
        power = DIRECTED if block == "x" else 1.0
        assert choice.factor ** (1 / power) == pytest.approx(factor, rel=0.05)
        assert (factor > 1) == (block == "x")


def test_options_bracket_the_choice() -> None:
    found = choose(counted(normal(10)), counted(normal(1)))
    norms = [option.feature_norm for option in found.options]
    assert norms == sorted(norms)
    chosen = [o for o in found.options if o.feature_norm == found.features.norm]
    assert min(o.lost for o in found.options) == min(o.lost for o in chosen)


def test_the_choice_is_quick() -> None:
    x, y = counted(normal(10)), counted(normal(1))
    choose(x, y)
    start = time.perf_counter()
    for _ in range(5):
        choose(x, y)
    assert (time.perf_counter() - start) / 5 < 0.5  # a millisecond or two on an idle machine


def test_speaks_is_a_matter_of_public_numbers() -> None:
    assert speaks(5000, 45)
    assert not speaks(400, 110)
    assert speaks(2500, 100)  # a range gives a norm where none is found
    assert not speaks(2500, 100, alone=True)
    assert speaks(3500, 100, alone=True, columns=3)
    assert not speaks(3500, 100, alone=True, columns=1)


def test_lit_bins_do_not_light_their_empty_neighbours() -> None:
    counts = np.zeros(100)
    counts[40:44] = 1000.0
    lit = lit_bins(counts, sigma=10.0, windows=(1, 2, 4, 8), least=0.0, certain=4.5)
    np.testing.assert_array_equal(np.flatnonzero(lit), np.arange(40, 44))


def test_nearest_shares_are_a_projection() -> None:
    found = nearest_shares(np.array([0.5, 0.7, -0.2, 0.1]))
    np.testing.assert_allclose(found, [0.4, 0.6, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(nearest_shares(found), found)


def test_a_mean_within_its_noise_is_the_public_centre() -> None:
    noise = np.random.default_rng(7).standard_normal(50)
    assert np.linalg.norm(found_centre(noise, sigma=1.2)) < 3
    far = noise + 30
    np.testing.assert_allclose(found_centre(far, sigma=1.0), far, rtol=0.01)
    np.testing.assert_array_equal(found_centre(np.zeros(3), sigma=1.0), np.zeros(3))


def test_centring_pays_where_the_mean_is_told() -> None:
    assert centring_pays(n=5000, columns=25, sigma=60.0)
    assert not centring_pays(n=400, columns=100, sigma=60.0)


def test_columns_are_found_in_units_of_their_own() -> None:
    rng = np.random.default_rng(8)
    centre, spread = np.array([50.0, -3.0, 0.0, 2e5]), np.array([12.0, 1.0, 1e-3, 6e4])
    values = centre + spread * rng.standard_normal((N, 4))
    counts = np.array(
        [np.bincount(signed_grid.bin_of(v), minlength=signed_grid.BINS) for v in values.T]
    )
    found = find_columns(counts + 60 * rng.standard_normal(counts.shape), sigma=60.0, n=N)
    assert found.found.all()
    assert (np.abs(found.centre - centre) < 0.6 * spread).all()
    assert (np.abs(np.log2(found.scale / spread)) < 0.7).all()


def test_a_column_that_is_not_found_takes_the_usual_scale() -> None:
    counts = np.zeros((2, signed_grid.BINS))
    counts[0, signed_grid.ZERO + 170] = N
    found = find_columns(counts, sigma=60.0, n=N)
    np.testing.assert_array_equal(found.found, [True, False])
    assert found.scale[1] == found.scale[0] > 0
    assert found.centre[1] == 0


def test_columns_speak_where_rows_outnumber_noise() -> None:
    assert columns_speak(5000, 75.0)
    assert not columns_speak(1500, 234.0)


def test_noise_in_a_far_bin_does_not_make_a_scale() -> None:
    """Most rows in one bin leave no distance to draw others in by; a far bin lit by noise must not."""
    for seed in range(20):
        noise = np.random.default_rng(seed).standard_normal((36, signed_grid.BINS))
        counts = 40 * noise
        counts[:, signed_grid.bin_of(np.array([-1e-3]))[0]] += 0.77 * N
        counts[:, signed_grid.ZERO] += 0.23 * N
        found = find_columns(counts, sigma=40.0, n=N)
        assert found.found.all()
        np.testing.assert_allclose(found.scale, 4.2e-4, rtol=0.3)


def test_rare_codes_far_off_belong_to_the_scale() -> None:
    """One row in seven has 13 or 17, the others 0, 1 or 2: without them they would be 20 scales long."""
    sigma = 70.0  # of a count: a rare code is 5 of these high
    counts = sigma * np.random.default_rng(9).standard_normal((40, signed_grid.BINS))
    for value, share in ((0.0, 0.4), (1.0, 0.25), (2.0, 0.21), (13.0, 0.07), (17.0, 0.07)):
        counts[:, signed_grid.bin_of(np.array([value]))[0]] += share * N
    found = find_columns(counts, sigma=sigma, n=N)
    assert np.mean(found.scale > 1.2) > 0.8  # 0.8 without them
    assert (found.scale < 5.4).all()  # their standard deviation
