"""Published attacks on noise and sums in floating point: they work on the naive way, not on ours.

The naive implementations are what one would write in five minutes; they are kept here, and only here.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.rows.moments import fold
from primo.rows.quantise import feature_quantiser, outcome_quantiser
from primo.rows.sources.arrays.memory import ArraySource
from primo.wall import mechanism
from primo.wall.noise import RandomBits

ULP = 2.0**-53  # step of a uniform float64 draw


def naive_gaussian(exact: float, sigma: float, uniform):
    """Add Gaussian noise to a number, by the inverse of its distribution function."""
    return exact + sigma * ndtri(uniform)


def uniform(size: int, seed: int = 0):
    return (np.random.default_rng(seed).integers(1, 2**53, size=size)) * ULP


class TestPorousNoise:
    """Mironov (2012): floats that noise around one value can reach have holes around another."""

    SIGMA = 1.0
    WINDOW = np.arange(-24, 25)  # uniform draws around the one that exact arithmetic asks for

    def reachable(self, seen, exact: float):
        """Whether any uniform draw at all gives this output for this exact value."""
        near = np.rint(ndtr((seen - exact) / self.SIGMA) / ULP)
        tried = np.clip(near[:, None] + self.WINDOW, 1, 2**53 - 1) * ULP
        return (naive_gaussian(exact, self.SIGMA, tried) == seen[:, None]).any(axis=1)

    def middle(self, seen):
        """Leave the far tails out: there many draws share an output and the window may miss some."""
        return seen[(seen > -1.0) & (seen < 2.0)]

    @pytest.mark.parametrize(("truth", "neighbour"), [(0.0, 1.0), (1.0, 0.0)])
    def test_naive_noise_gives_its_data_set_away(self, truth, neighbour):
        seen = self.middle(naive_gaussian(truth, self.SIGMA, uniform(20_000)))
        assert self.reachable(seen, truth).all()
        impossible = ~self.reachable(seen, neighbour)
        # Each such output is proof, not evidence: at any stated ε, δ is at least this share.
        assert impossible.mean() > 0.5

    def test_ours_reaches_every_integer_from_every_integer(self):
        """The support of the noise is all integers, so no output is impossible for a neighbour.

        The proof is that of the sampler; this looks at a scale where all integers nearby can be seen.
        """
        for exact in (0, 1):
            values = np.full(400_000, exact, dtype=np.int64)
            mechanism.add_noise(values, variance_bits=4, bits=RandomBits.seeded(exact), label="a")
            assert np.isin(np.arange(-12, 14), values).all()


class TestPrecision:
    """Haney et al. (2022): a sum of floats is rounded to the precision of its larger term.

    It works against perfect samples too: here every draw is the float nearest to a true Gaussian.
    """

    def test_naive_sum_shows_its_exact_value(self):
        noise = np.random.default_rng(3).normal(size=20_000)
        from_zero, from_one = 0.0 + noise, 1.0 + noise

        def finer_than_ulp(seen):
            """Bits below 2⁻⁵³: noise of size 1/2 or more, which 1 + noise near 0 needs, has none."""
            near = np.abs(seen) < 0.25
            return near & (np.rint(seen / ULP) * ULP != seen)

        assert finer_than_ulp(from_zero).mean() > 0.05  # proof that the exact value was not 1
        assert not finer_than_ulp(from_one).any()

    @staticmethod
    def released(size: float, seeds):
        """Integers that releases were made of, of rows of one size."""
        plan = plan_for(n=40, norm=1024.0, l=50)
        source = as_source(np.full((40, 1), size), np.full((40, 50), size / 50**0.5))
        moments = fold(source, plan)
        step = plan.feature_step * plan.outcome_step
        found = []
        for seed in seeds:
            released = mechanism.release(
                moments,
                plan,
                feature_names=source.feature_names,
                outcome_names=source.outcome_names,
                bits=RandomBits.seeded(seed),
            )
            steps = np.rint(released.association / step)
            # Nothing lies between two points of the lattice, which is public.
            assert np.array_equal(steps * step, released.association)
            found.append(steps.ravel().astype(np.int64))
        return np.concatenate(found)

    def test_ours_lies_on_one_lattice_with_the_same_last_bits(self):
        none, much = self.released(0.0, range(100)), self.released(1000.0, range(100, 200))
        assert abs(np.median(much)) > 20 * abs(np.median(none))  # sizes differ, as they should
        for shift in (0, 4, 8):
            table = [np.bincount((steps >> shift) & 15, minlength=16) for steps in (none, much)]
            assert stats.chi2_contingency(table).pvalue > 1e-4
            for counts in table:  # and the bits are uniform, in both
                assert stats.chisquare(counts).pvalue > 1e-4


class TestOrderOfSummation:
    """Casacuberta et al. (2022): rounding makes the sensitivity of a sum far larger than it is.

    At 2²⁴ the spacing of float32 doubles. A sum that stands just above sheds nothing when 0.75 is taken
    off, again and again; one that stands at 2²⁴ loses 1 each time. One row decides which. In float64 the
    same happens at 2⁵³, with about 2²⁷ rows.
    """

    NORM = 1024.0  # the bound of a row: the ideal sensitivity of the sum is 2·NORM
    LATER = 200_000

    def rows(self, odd: float):
        return np.concatenate([np.full(2**14, self.NORM), [odd], np.full(self.LATER, -0.75)])

    @staticmethod
    def naive_sum(rows):
        return float(np.cumsum(rows, dtype=np.float32)[-1])

    def test_naive_sum_moves_by_far_more_than_its_sensitivity(self):
        one, other = self.rows(2.0), self.rows(0.0)
        assert (one != other).sum() == 1
        assert np.abs(one).max() <= self.NORM
        assert abs(one.sum() - other.sum()) == 2.0
        moved = abs(self.naive_sum(one) - self.naive_sum(other))
        assert moved > 90 * 2 * self.NORM
        # Noise calibrated to the ideal sensitivity at ε = 1 leaves the two this many scales apart.
        assert moved / (2 * self.NORM * 4.22) > 20

    def test_naive_sum_depends_on_the_order(self):
        rows = self.rows(2.0)
        assert abs(self.naive_sum(rows) - self.naive_sum(rows[::-1])) > self.LATER / 2

    def test_ours_moves_by_its_sensitivity_in_any_order(self):
        one, other = self.rows(2.0), self.rows(0.0)
        plan = plan_for(n=len(one), norm=self.NORM)
        ones = np.ones((len(one), 1))

        def association(rows):
            return int(fold(as_source(rows[:, None], ones), plan, threads=1).association[0, 0])

        exact = association(one) - association(other)
        x, y = np.empty((1, 1)), np.empty((1, 1))
        feature_quantiser(plan)(np.array([[2.0]]), x)
        outcome_quantiser(plan)(np.array([[1.0]]), y)
        assert exact == int(x[0, 0]) * int(y[0, 0])  # the row's own product, no more
        order = np.random.default_rng(0).permutation(len(one))
        assert association(one[order]) == association(one)
        assert association(one[::-1]) == association(one)


def plan_for(*, n: int, norm: float, l: int = 1):
    return make_plan(
        Settings(
            epsilon=1.0,
            delta=1e-6,
            fit_intercept=False,
            feature_bounds=Bounds(norm=norm),
            outcome_bounds=Bounds(norm=norm),
        ),
        n=n,
        d=1,
        l=l,
    )


def as_source(features, outcomes):
    return ArraySource(
        features=features,
        outcomes=outcomes,
        feature_names=("x",),
        outcome_names=tuple(f"y{j}" for j in range(outcomes.shape[1])),
    )
