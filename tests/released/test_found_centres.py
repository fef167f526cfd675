"""Centres and scales follow from released numbers, and are near what they stand for."""

import dataclasses

import numpy as np
import pytest

import primo
from factories import array_source
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy import values
from primo.privacy.bounds import Bounds
from primo.released.found_centres import GRID_BITS, centred_plan, found_centre, plan_for_sums
from primo.released.found_columns import find_columns, plan_with_columns
from primo.released.moments import ReleasedColumns, ReleasedLengths, ReleasedSums
from primo.rows.lengths import fold_lengths
from primo.rows.sums import fold_sums
from primo.rows.values import fold_values

N = 6000


def rows(seed=0):
    """Columns off their centres, of unlike units."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 4)) * [12, 3e4, 1e-3, 0.5] + [40, 1e5, 0, -7]
    z = (x - [40, 1e5, 0, -7]) / [12, 3e4, 1e-3, 0.5]
    y = 500 + 20 * (z @ [1.0, -1.0, 0.5, 0.7] + rng.normal(size=N))
    return x, y


def plan(bounds, **changes):
    settings = Settings(
        epsilon=2.0, delta=1e-8, feature_bounds=bounds, outcome_bounds=bounds, **changes
    )
    return make_plan(settings, n=N, d=4, l=1)


def test_columns_are_found_without_knowing_anything():
    x, y = rows()
    made = plan(Bounds(norm="auto"))
    counts = fold_values(array_source(x, y[:, None]), made, threads=1)
    rng = np.random.default_rng(1)

    def noisy(part):
        return part + made.column_search.sigma * rng.standard_normal(part.shape)

    released = ReleasedColumns(features=noisy(counts.features), outcomes=noisy(counts.outcomes))
    found = plan_with_columns(made, released)
    sd = x.std(axis=0)
    ratio = found.features.scale / sd
    assert ((ratio > 0.5) & (ratio < 2)).all()
    assert (np.abs(found.features.centre - x.mean(axis=0)) < sd).all()
    assert 10 < found.outcomes.scale[0] < 150  # a bin about 500 is 90 wide
    again = plan_with_columns(made, released)
    np.testing.assert_array_equal(again.features.centre, found.features.centre)


def test_columns_that_noise_hides_have_the_scale_of_the_others():
    counts = np.zeros((3, values.BINS))
    counts[0, values.ZERO + 160] = counts[1, values.ZERO + 200] = 1000
    found = find_columns(counts, sigma=1.0, n=1000)
    np.testing.assert_array_equal(found.found, [True, True, False])
    assert found.centre[2] == 0
    assert found.scale[2] == pytest.approx(np.median(found.scale[:2]))


@pytest.mark.parametrize(
    "bounds",
    [Bounds(lower=0, upper=1000, norm="auto"), Bounds(centre=0, scale=100, norm="auto")],
    ids=["ranges", "scales"],
)
def test_centres_are_near_the_means(bounds):
    rng = np.random.default_rng(2)
    x, y = 300 + 10 * rng.normal(size=(N, 4)), 700 + rng.normal(size=(N, 1))
    made = plan(bounds)
    source = array_source(x, y)
    counted = fold_lengths(source, made, threads=1)
    short = plan_for_sums(
        made, ReleasedLengths(features=counted.features * 1.0, outcomes=counted.outcomes * 1.0)
    )
    lengths = np.linalg.norm((x - made.features.centre) / made.features.scale, axis=1)
    assert 0.8 < np.mean(lengths <= short.features.norm) <= 1.0  # most rows are left whole
    sums = fold_sums(source, short, threads=1)
    released = ReleasedSums(features=sums.features / 2**20, outcomes=sums.outcomes / 2**20)
    found = centred_plan(short, released)
    np.testing.assert_allclose(found.features.centre, 300, atol=5)
    np.testing.assert_allclose(found.outcomes.centre, 700, atol=10)
    step = 2.0 ** (np.ceil(np.log2(short.features.norm)) - GRID_BITS)
    offset = (found.features.centre - made.features.centre) / made.features.scale / step
    np.testing.assert_allclose(offset, np.round(offset), atol=1e-6)


def test_a_mean_that_is_no_longer_than_its_noise_stays_at_the_centre():
    np.testing.assert_array_equal(found_centre(np.full(4, 0.9), sigma=1.0), np.zeros(4))
    np.testing.assert_array_equal(found_centre(np.zeros(4), sigma=1.0), np.zeros(4))
    np.testing.assert_allclose(found_centre(np.full(4, 10.0), sigma=1.0), 9.9)


class TestRelease:
    """End to end, through the shell."""

    def fit(self, x, y, **limits):
        return primo.PrimoRegressor(1, 1e-8, random_state=3, **limits).fit(x, y)

    def r2(self, model, x, y):
        return 1 - np.var(y - model.predict(x)) / np.var(y)

    @pytest.mark.filterwarnings("ignore::primo.errors.ReproducibleNoiseWarning")
    def test_a_raw_table_of_unlike_columns(self):
        """One column would drown the others: with one norm for raw values R² is near 0.3."""
        x, y = rows()
        model = self.fit(
            x, y, feature_bounds=Bounds(norm="auto"), outcome_bounds=Bounds(norm="auto")
        )
        assert self.r2(model, x, y) > 0.68  # 0.73 without privacy
        said = " ".join(model.release_.statement().split())
        assert "centres and scales of the features and outcomes were found" in said
        assert "all together 8.0% of mu squared" in said

    @pytest.mark.filterwarnings("ignore::primo.errors.ReproducibleNoiseWarning")
    def test_rows_far_off_the_middle_of_their_ranges(self, tmp_path):
        rng = np.random.default_rng(4)
        x = 20 + 3 * rng.normal(size=(N, 4))
        y = x @ [1.0, -1.0, 2.0, 0.5] + 3 * rng.normal(size=N)
        limits = {
            "feature_bounds": Bounds(lower=0, upper=100, norm="auto"),
            "outcome_bounds": Bounds(lower=-500, upper=500, norm="auto"),
        }
        model = self.fit(x, y, **limits)
        assert self.r2(model, x, y) > 0.8  # 0.86 without privacy, below 0 about the middle
        release = model.release_
        read = primo.load_release(primo.save_release(release, tmp_path / "r.npz"))
        np.testing.assert_array_equal(read.plan.features.middle, release.plan.features.middle)
        assert read.plan.centre_search == release.plan.centre_search
        np.testing.assert_array_equal(read.coefficients().slopes, release.coefficients().slopes)
        assert "centres of the features and outcomes were found" in " ".join(
            release.statement().split()
        )
        bad = dataclasses.replace(
            release, plan=dataclasses.replace(release.plan, centre_search=None)
        )
        path = primo.save_release(bad, tmp_path / "bad.npz")
        with pytest.raises(primo.errors.PrimoError):
            primo.load_release(path)
