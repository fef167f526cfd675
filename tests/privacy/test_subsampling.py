"""The accounting of a sub-sampled covariance against brute force and dp_accounting."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from primo.errors import InputError
from primo.privacy.budget import Budget
from primo.privacy.calibration import delta_of, epsilon_of, lattice_margin, mu_of, split_ratio
from primo.privacy.grid import make_grid
from primo.privacy.sensitivity import joint_distance
from primo.privacy.subsampling import (
    SampledScales,
    calibrate,
    least_epsilon,
    true_delta,
    true_epsilon,
)

DELTA = 1 / 5008**2
SETTINGS = [
    SampledScales(rows=rows, sampled=sampled, covariance=covariance, association=association)
    for rows, sampled, covariance, association in [
        (5008, 2504, 1.5, 2.5),
        (5008, 500, 1.5, 2.5),
        (5008, 500, 0.5, 25.0),
        (5008, 50, 0.4, 2.5),
        (5008, 500, 3.0, 3.0),
        (500_000, 500, 0.3, 3.0),
        (100, 99, 2.0, 9.0),
    ]
]


def accountant_epsilon(scales, delta):
    """Return dp_accounting's epsilon: Rényi, Wang, Balle & Kasiviswanathan (2019), composed.

    Its `noise_multiplier` under REPLACE_ONE is noise over *replace-one* sensitivity (theorem 27 starts
    from the Rényi divergence α/2σ² of neighbours of equal size): √2·b_x² for the covariance and
    √joint_distance(0, q, s) for the rest.
    """
    dp_accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    p, q, s = scales.squares
    accountant = rdp.RdpAccountant(
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE
    )
    if p > 0:
        covariance = dp_accounting.GaussianDpEvent(1 / math.sqrt(2 * p))
        accountant.compose(
            dp_accounting.SampledWithoutReplacementDpEvent(scales.rows, scales.sampled, covariance)
        )
    rest = math.sqrt(joint_distance(0.0, q, s))
    if rest > 0:
        accountant.compose(dp_accounting.GaussianDpEvent(1 / rest))
    return float(accountant.get_epsilon(delta))


def only_covariance(rows, sampled, covariance):
    return SampledScales(rows=rows, sampled=sampled, covariance=covariance, association=math.inf)


def mixture_delta(rate, shift, epsilon):
    """Hockey-stick of (1-γ)N(0, 1) + γN(shift, 1) against N(0, 1), by quadrature of densities."""

    def excess(t):
        first = (1 - rate) * norm.pdf(t) + rate * norm.pdf(t - shift)
        return max(0.0, first - math.exp(epsilon) * norm.pdf(t))

    # The integrand is zero left of the crossing, where the likelihood ratio is e^ε.
    start = (math.log((math.exp(epsilon) - 1 + rate) / rate) + shift**2 / 2) / shift
    return quad(excess, start, start + 12, epsabs=0, epsrel=1e-10, limit=200)[0]


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("covariance", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_covariance_alone_is_exact_against_the_worst_pair(rate, covariance, epsilon):
    """All other rows equal x′ ⟂ x: the laws differ by √2·b_x² if the row is drawn, not at all if not.

    Equality to 1e-6 rejects a sensitivity wrong by √2 or 2 in either direction.
    """
    exact = mixture_delta(rate, math.sqrt(2) / covariance, epsilon)
    scales = only_covariance(1000, round(1000 * rate), covariance)
    assert exact * (1 - 1e-9) <= true_delta(scales, epsilon) <= exact * (1 + 1e-6)
    for factor in (math.sqrt(2), 1 / math.sqrt(2)):
        wrong = only_covariance(1000, round(1000 * rate), covariance * factor)
        assert abs(true_delta(wrong, epsilon) / exact - 1) > 0.05


@pytest.mark.parametrize("covariance", [0.5, 1.0])
def test_other_rows_that_are_zero_do_not_beat_the_bound(covariance):
    """(1-γ)N(0) + γN(u) against (1-γ)N(0) + γN(u′), u ⟂ u′, on a grid in the plane."""
    rate, epsilon = 0.2, 0.7
    t = np.linspace(-8, 8 + 1 / covariance, 1500)
    centre, moved = norm.pdf(t), norm.pdf(t - 1 / covariance)
    shared = (1 - rate) * np.outer(centre, centre)
    first, second = shared + rate * np.outer(moved, centre), shared + rate * np.outer(centre, moved)
    found = np.maximum(0, first - math.exp(epsilon) * second).sum() * (t[1] - t[0]) ** 2
    assert 0 < found <= true_delta(only_covariance(1000, 200, covariance), epsilon)


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize(("covariance", "association"), [(1.0, 3.0), (0.6, 2.0), (3.0, 2.0)])
def test_composition_lies_between_brute_force_and_the_bound(rate, covariance, association):
    scales = SampledScales(
        rows=1000, sampled=round(1000 * rate), covariance=covariance, association=association
    )
    delta = 1e-3
    low, high = least_epsilon(scales, delta), true_epsilon(scales, delta)
    assert 0 < low <= high <= 1.2 * low
    t = np.linspace(-7, 10, 1200)
    attained = []
    for a in np.linspace(0, 1, 11):
        shift, rest = math.sqrt(2 - 2 * a * a) / covariance, math.sqrt(2 + 2 * a) / association
        mixture = (1 - rate) * norm.pdf(t) + rate * norm.pdf(t - shift)
        first = np.outer(mixture, norm.pdf(t - rest))
        second = np.outer(norm.pdf(t), norm.pdf(t))
        cell = (t[1] - t[0]) ** 2
        at_low, at_high = (
            np.maximum(0, first - math.exp(epsilon) * second).sum() * cell
            for epsilon in (low, high)
        )
        attained.append(at_low)
        assert at_high <= delta * (
            1 + 1e-4
        )  # the grid's own error; at a = 1 the bound can be exact
    assert max(attained) >= delta * (1 - 1e-3)


def test_no_small_data_set_beats_the_bound():
    """Exact mixtures over all draws of 2 of 4 rows, hockey-stick by Monte Carlo, random neighbours."""
    rng = np.random.default_rng(3)
    draws = list(itertools.combinations(range(4), 2))
    tightest = 0.0
    for trial in range(40):
        covariance, association = rng.uniform(0.5, 3, size=2)
        x, y = rng.normal(size=(5, 2)), rng.normal(size=(5, 1))
        if trial % 2:  # the worst kind: others equal to the new row, outcomes negated
            x[1:4] = x[4]
            y[4] = -y[0]
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        y /= np.abs(y)

        def law(rows, x=x, y=y, scales=(covariance, association)):
            squares = np.einsum("ni,nj->nij", x[rows], x[rows])
            gram = [squares[list(draw)].sum(axis=0) for draw in draws]
            svec = [(g[0, 0], g[1, 1], math.sqrt(2) * g[0, 1]) for g in gram]
            cross = x[rows].T @ y[rows][:, 0] / scales[1]
            return np.array([[*(np.array(v) / scales[0]), *cross] for v in svec])  # (6, 5)

        first, second = law([0, 1, 2, 3]), law([4, 1, 2, 3])
        count = 20_000
        points = first[rng.integers(6, size=count)] + rng.normal(size=(count, 5))

        def log_density(centres, points=points):
            squared = ((points[:, None, :] - centres) ** 2).sum(axis=2)
            return np.log(np.exp(-squared / 2).mean(axis=1))

        loss = log_density(first) - log_density(second)
        scales = SampledScales(rows=4, sampled=2, covariance=covariance, association=association)
        for epsilon in (0.1, 0.5, 1.5):
            values = np.maximum(0, 1 - np.exp(epsilon - loss))
            error = 4 * values.std() / math.sqrt(count)
            bound = true_delta(scales, epsilon)
            assert values.mean() <= bound + error
            tightest = max(tightest, values.mean() / bound)
    assert tightest > 0.8  # so the bound is not passed by being far away


@pytest.mark.parametrize("scales", SETTINGS, ids=str)
def test_tighter_than_the_accountant_and_than_basic_composition(scales):
    epsilon = true_epsilon(scales, DELTA)
    assert least_epsilon(scales, DELTA) <= epsilon <= accountant_epsilon(scales, DELTA)
    # (log(1 + γ(e^ε₀ - 1)), γδ₀) for the covariance and (ε₂, δ₂) for the association, added up.
    half = DELTA / 2
    inner = epsilon_of(math.sqrt(2) / scales.covariance, half / scales.rate)
    amplified = math.log1p(scales.rate * math.expm1(inner))
    assert epsilon <= amplified + epsilon_of(2 / scales.association, half)


def test_accountant_counts_in_replace_one_sensitivity():
    """Its noise multiplier is σ/(√2·b_x²): its whole Rényi bound stays above the exact curve."""
    for covariance in (0.5, 1.0, 2.0):
        scales = only_covariance(1000, 100, covariance)
        assert 1 <= accountant_epsilon(scales, 1e-6) / true_epsilon(scales, 1e-6) < 1.4
        # Read against b_x² (√2 more noise than there is) it would claim less than the exact pair shows.
        misread = only_covariance(1000, 100, covariance * math.sqrt(2))
        assert accountant_epsilon(misread, 1e-6) < least_epsilon(scales, 1e-6)


@pytest.mark.parametrize("association", [1.0, 2.5, 10.0])
def test_all_rows_drawn_is_the_joint_release(association):
    scales = SampledScales(rows=50, sampled=50, covariance=2.0, association=association)
    assert true_epsilon(scales, DELTA) == pytest.approx(
        epsilon_of(scales.public_mu, DELTA), rel=1e-9
    )
    assert true_epsilon(scales, DELTA) >= epsilon_of(scales.public_mu, DELTA)


def test_known_value_by_hand():
    """μ = √2/σ₁ = 1, ε₀ = 2: δ₀ = Φ(-3/2) - e²Φ(-5/2), at ε = log(1 + (e² - 1)/10) for s = n/10."""
    scales = only_covariance(10, 1, math.sqrt(2))
    delta = 0.1 * (norm.cdf(-1.5) - math.exp(2) * norm.cdf(-2.5))
    assert true_delta(scales, math.log(1 + (math.exp(2) - 1) / 10)) == pytest.approx(
        delta, rel=1e-8
    )


def test_without_a_covariance_only_the_association_counts():
    scales = SampledScales(rows=100, sampled=7, covariance=math.inf, association=2.5)
    assert true_epsilon(scales, DELTA) == pytest.approx(epsilon_of(0.8, DELTA), rel=1e-6)


def test_the_covariance_is_free_at_ratio_two_whatever_the_sample():
    for sampled in (1, 50, 100):
        scales = SampledScales(
            rows=100, sampled=sampled, covariance=3.0, association=3 / math.sqrt(2), outcome=3.0
        )
        assert scales.split == pytest.approx(2)
        # A small sample is bounded by the composition, which may come out above the association.
        assert true_epsilon(scales, DELTA) == pytest.approx(
            epsilon_of(2 * math.sqrt(2) / 3, DELTA), rel=1e-6
        )


def test_epsilon_grows_with_the_sample_and_falls_with_noise():
    def at(sampled=300, covariance=1.0, association=3.0, outcome=math.inf):
        return true_epsilon(
            SampledScales(
                rows=1000,
                sampled=sampled,
                covariance=covariance,
                association=association,
                outcome=outcome,
            ),
            1e-6,
        )

    for curve in (
        [at(sampled=s) for s in (1, 10, 100, 500, 900, 1000)],
        [at(covariance=c) for c in (9, 3, 1, 0.5)],
        [at(association=a) for a in (99, 9, 3, 1)],
        [at(outcome=o) for o in (9, 3, 1)],
    ):
        assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(curve))
        assert curve[0] < curve[-1]


@pytest.mark.parametrize(
    ("epsilon", "sampled", "l"),
    [(5, 50, 1), (5, 500, 1001), (5, 2504, 11), (1, 500, 1), (1, 5008, 11), (0.2, 1000, 1001)],
)
def test_calibrated_scales_spend_the_budget_and_no_more(epsilon, sampled, l):
    budget = Budget(epsilon=epsilon, delta=DELTA)
    scales = calibrate(budget, rows=5008, sampled=sampled, l=l)
    assert true_delta(scales, epsilon) <= DELTA
    assert true_epsilon(scales, DELTA) >= 0.9999 * epsilon
    # Nobody could have stated much less: the noise is not padded.
    assert least_epsilon(scales, DELTA) >= 0.8 * epsilon
    # Never worse than a full budget for the joint release with a public draw, at its own split.
    assert scales.public_mu >= mu_of(budget) * (1 - 1e-9)


def test_calibration_without_sampling_is_that_of_one_gaussian():
    budget = Budget(epsilon=5, delta=DELTA)
    scales = calibrate(budget, rows=5008, sampled=5008, l=1001, split=2.0)
    mu = mu_of(budget)
    assert scales.public_mu <= mu
    assert scales.association == pytest.approx(2 / mu, rel=1e-9)
    assert scales.covariance == pytest.approx(2 * math.sqrt(2) / mu, rel=1e-9)


@pytest.mark.parametrize(("l", "split"), [(1, 1.0), (11, math.sqrt(2)), (1001, 2.0)])
def test_the_split_of_a_sample_of_all_rows_is_that_without_sampling(l, split):
    """The nearest of the list: both weigh the covariance's noise by r/2."""
    assert split_ratio(l) == pytest.approx(split, rel=0.06)
    scales = calibrate(Budget(epsilon=5, delta=DELTA), rows=5008, sampled=5008, l=l)
    assert scales.split == pytest.approx(split, rel=1e-9)


def test_smaller_samples_get_less_noise_per_row_but_more_in_all():
    budget = Budget(epsilon=5, delta=DELTA)
    found = [calibrate(budget, rows=5008, sampled=s, l=101, split=0.5) for s in (5008, 1000, 100)]
    noise = [scales.covariance for scales in found]
    assert noise == sorted(noise, reverse=True)
    scaled = [scales.covariance / scales.rate for scales in found]
    assert scaled == sorted(scaled)


@pytest.mark.parametrize("sampled", [100, 2504])
def test_the_integer_grid_spends_no_more(sampled):
    margin = lattice_margin(10**5, 58)
    budget = Budget(epsilon=2, delta=1e-8)
    scales = calibrate(budget, rows=5008, sampled=sampled, l=11, margin=margin)
    p, q, _ = scales.squares
    grid = make_grid(p=p, q=q, n=5008)
    on_grid = SampledScales(
        rows=5008,
        sampled=sampled,
        covariance=1 / math.sqrt(grid.p),
        association=1 / math.sqrt(grid.q),
        outcome=1 / math.sqrt(grid.s),
    )
    assert true_delta(on_grid, 2 - 2 * margin) <= 1e-8 * math.exp(-2 * margin)
    assert on_grid.association == pytest.approx(scales.association, rel=1e-6)


def test_outcome_moments_cost_nothing():
    scales = calibrate(Budget(epsilon=2, delta=1e-8), rows=1000, sampled=200, l=11)
    without = SampledScales(
        rows=1000, sampled=200, covariance=scales.covariance, association=scales.association
    )
    assert true_epsilon(scales, 1e-8) == pytest.approx(true_epsilon(without, 1e-8), rel=1e-9)


def test_unusual_budgets_calibrate():
    for epsilon, delta in ((1e-3, 1e-12), (50.0, 1e-3), (1.0, 1e-20)):
        scales = calibrate(Budget(epsilon=epsilon, delta=delta), rows=1000, sampled=100, l=5)
        assert 0.99 * delta <= true_delta(scales, epsilon) <= delta


def test_bounds_agree_with_fifty_digits_at_rate_one():
    """The quadrature's pieces against `delta_of`, through the composed bound of two Gaussians."""
    scales = SampledScales(rows=1000, sampled=999, covariance=2.0, association=3.0)
    composed = math.sqrt(2 / 4 + 4 / 9)
    for epsilon in (0.5, 2.0, 5.0):
        assert true_delta(scales, epsilon) <= delta_of(composed, epsilon)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sampled": 0}, "sampled=0"),
        ({"sampled": 11}, "sampled=11"),
        ({"covariance": 0.0}, "covariance=0.0"),
        ({"association": -1.0}, "association=-1.0"),
        ({"outcome": math.nan}, "outcome=nan"),
    ],
)
def test_absurd_scales_are_refused_by_value(change, message):
    with pytest.raises(InputError, match=message):
        SampledScales(**{"rows": 10, "sampled": 5, "covariance": 1.0, "association": 1.0, **change})


def test_absurd_splits_and_margins_are_refused():
    budget = Budget(epsilon=1, delta=1e-6)
    with pytest.raises(InputError, match="split=3"):
        calibrate(budget, rows=10, sampled=5, l=1, split=3)
    with pytest.raises(InputError, match="too small"):
        calibrate(budget, rows=10, sampled=5, l=1, margin=1.0)
