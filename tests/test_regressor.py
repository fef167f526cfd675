"""The scikit-learn shell: conventions, containers, messages, and what it refuses."""

import copy
import gc
import pickle
import types
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

import primo
from primo.released.public_means import public_means


@pytest.mark.filterwarnings("ignore::primo.ReproducibleNoiseWarning")
@parametrize_with_checks(
    [
        # The checks score on the rows they fitted, so these have to be declared public. One asks for
        # R² > 0.5 from 200 rows, so epsilon is one at which no estimator passes or fails by its noise.
        primo.PrimoRegressor(
            20.0, 1e-6, feature_bounds=5.0, outcome_bounds=3.0, score_public_rows=True
        )
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def cohort(n=3000, d=4, l=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, (n, d)).astype(float)
    w = rng.normal(size=(d, l))
    return x, (x - 1) @ w + 2 + 0.3 * rng.normal(size=(n, l)), w


def model(**changes):
    settings = {
        "epsilon": 8.0,
        "delta": 1e-6,
        "feature_bounds": (0, 2),
        "outcome_bounds": primo.Bounds(lower=-8, upper=12, norm=1.0),
    }
    return primo.PrimoRegressor(**{**settings, **changes})


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
@pytest.mark.parametrize("estimator", ["auto", "ridge", "filter", "two-sided"])
def test_recovers_the_truth_where_there_is_enough_data(protection, estimator):
    x, y, w = cohort(n=60_500)
    held_x, held_y, x, y = x[:500], y[:500], x[500:], y[500:]
    public = {"outcomes": {"feature_bounds": None}, "features": {"outcome_bounds": None}}
    fitted = model(
        protection=protection,
        estimator=estimator,
        score_public_rows=True,
        **public.get(protection, {}),
    ).fit(x, y)
    assert fitted.coef_.shape == (3, 4)
    np.testing.assert_allclose(fitted.coef_, w.T, atol=0.06)
    np.testing.assert_allclose(fitted.predict(np.ones((1, 4)))[0], 2, atol=0.1)
    assert fitted.score(held_x, held_y) > 0.9


def test_without_intercept_the_line_passes_through_the_public_centres():
    x, y, _ = cohort()
    fitted = model(fit_intercept=False).fit(x, y)
    np.testing.assert_allclose(fitted.predict(np.ones((1, 4)))[0], 2)
    assert fitted.release_.covariance.shape == (4, 4)


def test_one_dimensional_outcomes_stay_one_dimensional():
    x, y, _ = cohort()
    fitted = model().fit(x, y[:, 0])
    assert fitted.coef_.shape == (4,)
    assert isinstance(fitted.intercept_, float)
    assert fitted.predict(x).shape == (len(x),)


def test_data_frames_name_features_and_outcomes():
    x, y, _ = cohort()
    columns, outcomes = ["a", "b", "c", "e"], ["height", "weight", "pulse"]
    expected = model(random_state=1)
    with pytest.warns(primo.ReproducibleNoiseWarning):
        expected.fit(x, y)
    frames = [
        (pd.DataFrame(x, columns=columns), pd.DataFrame(y, columns=outcomes)),
        (pl.DataFrame(x, schema=columns), pl.DataFrame(y, schema=outcomes)),
    ]
    for features, targets in frames:
        fitted = model(random_state=1)
        with pytest.warns(primo.ReproducibleNoiseWarning):
            fitted.fit(features, targets)
        assert fitted.release_.feature_names == tuple(columns)
        assert fitted.release_.outcome_names == tuple(outcomes)
        assert fitted.outcome_names_.tolist() == outcomes
        np.testing.assert_array_equal(fitted.release_.association, expected.release_.association)
        np.testing.assert_allclose(fitted.coef_, expected.coef_, rtol=1e-7, atol=1e-10)
    series = model().fit(frames[0][0], frames[0][1]["pulse"])
    assert series.release_.outcome_names == ("pulse",)


def test_works_in_a_pipeline_and_clones():
    x, y, _ = cohort()
    pipeline = make_pipeline(PolynomialFeatures(1, include_bias=False), model())
    assert pipeline.fit(x, y).predict(x).shape == y.shape
    twin = clone(pipeline[-1])
    assert twin.get_params()["feature_bounds"] == (0, 2)
    assert not hasattr(twin, "coef_")


def test_two_fits_draw_different_noise_and_a_seed_the_same():
    x, y, _ = cohort()
    one, two = (model().fit(x, y).release_.association for _ in range(2))
    assert not np.array_equal(one, two)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
        a, b, c = (
            model(random_state=seed, n_jobs=jobs).fit(x, y)
            for seed, jobs in ((1, 1), (1, 2), (2, 1))
        )
    np.testing.assert_array_equal(a.release_.association, b.release_.association)
    np.testing.assert_array_equal(a.release_.covariance, b.release_.covariance)
    assert not np.array_equal(a.release_.association, c.release_.association)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_seeded_release_says_that_it_is_not_for_publication(rounds):
    x, y, _ = cohort()
    with pytest.warns(primo.ReproducibleNoiseWarning, match="not private"):
        fitted = model(random_state=3, rounds=rounds).fit(x, y)
    assert not fitted.release_.publishable
    assert "reproducible: not for publication" in repr(fitted.release_)
    assert model(rounds=rounds).fit(x, y).release_.publishable


def test_the_statement_says_what_a_steward_asks():
    x, y, _ = cohort()
    statement = repr(model(protection="features", outcome_bounds=None).fit(x, y).release_)
    for words in (
        "features of every row",
        "epsilon = 8, delta = 1e-06",
        "Gaussian DP",
        "replacing one row",
        "3000",
        "a range per column",
        "sigma",
        "all outcomes",
        "exact (public)",
    ):
        assert words in statement, words


def test_score_is_refused_unless_the_rows_are_declared_public():
    x, y, _ = cohort()
    fitted = model().fit(x, y)
    for rows in (slice(None), slice(0, 1500), slice(None, None, -1)):
        with pytest.raises(primo.PrivacyError, match="score_public_rows=True"):
            fitted.score(x[rows], y[rows])
    with pytest.raises(primo.PrivacyError):
        cross_val_score(model(), x, y, error_score="raise")
    assert 0.5 < fitted.set_params(score_public_rows=True).score(x, y) < 1


def test_nothing_of_the_rows_is_kept():
    """Neither values nor memory of the rows can be reached from the fitted object."""
    x, y, _ = cohort()
    sentinel = 1.2345678901234567
    x[17, 2], y[17, 1] = sentinel, -sentinel
    fitted = model().fit(x, y)
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(twin.coef_, fitted.coef_)
    assert np.float64(sentinel).tobytes() not in pickle.dumps(fitted)
    reached, todo = set(), [fitted]
    while todo:
        thing = todo.pop()
        if id(thing) in reached or isinstance(thing, type | types.ModuleType | types.FunctionType):
            continue
        reached.add(id(thing))
        if isinstance(thing, np.ndarray):
            assert not np.shares_memory(thing, x)
            assert not np.shares_memory(thing, y)
        todo.extend(gc.get_referents(thing))


def test_more_public_features_than_rows_do_not_keep_the_table_they_were_cut_from():
    table = np.random.default_rng(0).normal(size=(20, 60))
    fitted = model(protection="outcomes", feature_bounds=None).fit(table[:, :50], table[:, 50:])
    kept = fitted.release_.public_features.row_space.columns.rows
    assert not np.shares_memory(kept, table)
    pickle.dumps(fitted)


@pytest.mark.parametrize("where", ["X", "y"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda table: _with(table.astype(object), "HIV positive, J. Smith"),
        lambda table: _with(table.astype(object), {"secret": 31415}),
        lambda table: _with(table.astype(object), 10**400 + 31415),
        lambda table: table + 31415j,
        lambda table: (table * 31415).astype("datetime64[s]"),
        lambda table: pd.DataFrame(table).assign(note="HIV positive, J. Smith"),
        lambda table: pl.DataFrame(table).with_columns(note=pl.lit("HIV positive, J. Smith")),
    ],
)
@pytest.mark.parametrize("call", ["fit", "score", "predict", "extend"])
def test_messages_never_show_a_cell(where, spoil, call):
    x, y, _ = cohort(n=100)
    fitted = model(score_public_rows=True).fit(x, y)
    bad_x, bad_y = (spoil(x), y) if where == "X" else (x, spoil(y))
    calls = {
        "fit": lambda: model().fit(bad_x, bad_y),
        "score": lambda: fitted.score(bad_x, bad_y),
        "predict": lambda: fitted.predict(bad_x if where == "X" else spoil(x)),
        "extend": lambda: primo.extend(
            fitted.release_,
            bad_x,
            bad_y,
            protection="both",
            epsilon=1,
            delta=1e-6,
            outcome_bounds=3.0,
        ),
    }
    with pytest.raises(primo.InputError) as caught:
        calls[call]()
    error = caught.value
    while error is not None:
        for word in ("HIV", "Smith", "secret", "31415"):
            assert word not in str(error)
        error = error.__cause__ or error.__context__


def _with(table, cell):
    table[3, 1] = cell
    return table


def test_nullable_columns_and_numbers_in_strings_are_understood():
    x, y, _ = cohort()
    nullable = pd.DataFrame(x).astype("Int64")
    nullable.iloc[5, 1] = pd.NA
    assert model(missing="centre").fit(nullable, y.astype(str)).coef_.shape == (3, 4)


def test_bounds_read_off_a_private_block_are_refused():
    x, y, _ = cohort()
    with pytest.raises(primo.BoundsError, match="from_reference"):
        model(feature_bounds=primo.Bounds.from_public(x)).fit(x, y)
    panel = np.random.default_rng(9).integers(0, 3, (500, 4))
    assert model(feature_bounds=primo.Bounds.from_reference(panel)).fit(x, y).coef_.shape == (3, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feature_bounds": None}, "features are private and have no bounds"),
        ({"outcome_bounds": None}, "outcomes are private and have no bounds"),
        ({"epsilon": -2}, "epsilon=-2"),
        ({"delta": 0}, "delta=0"),
        ({"protection": "rows"}, r'"rows".*both.*features.*outcomes'),
        ({"estimator": "lasso"}, '"lasso".*auto, ridge'),
        ({"association": "magic"}, '"magic".*gauss'),
        ({"backend": "numpy"}, "'numpy'"),
        ({"random_state": "x"}, 'random_state="x"'),
        ({"feature_bounds": "wide"}, '"wide"'),
        ({"feature_bounds": (2, 0)}, "feature_bounds: lower=2.0 is not below upper=0.0"),
        ({"feature_bounds": [(0, 2)] * 4}, "per column"),
        ({"split": "a"}, 'split="a"'),
        ({"fit_intercept": "no"}, '"no"'),
    ],
)
def test_bad_parameters_are_refused_by_value(changes, message):
    x, y, _ = cohort(n=100)
    with pytest.raises(primo.PrimoError, match=message):
        model(**changes).fit(x, y)


def test_missing_values_are_refused_without_saying_where_and_can_be_centred():
    x, y, _ = cohort()
    y[1234, 1] = np.nan
    with pytest.raises(primo.InputError) as caught:
        model().fit(x, y)
    assert "1234" not in str(caught.value)
    assert 'missing="centre"' in str(caught.value)
    assert np.isfinite(model(missing="centre").fit(x, y).coef_).all()


def test_rows_that_do_not_belong_together_are_refused():
    x, y, _ = cohort()
    with pytest.raises(primo.InputError, match="features have 2999 and the outcomes 3000"):
        model().fit(x[:-1], y)
    frame, shuffled = pd.DataFrame(x), pd.DataFrame(y).sample(frac=1, random_state=0)
    with pytest.raises(primo.InputError, match="another order"):
        model().fit(frame, shuffled)
    twice = pd.DataFrame(x, columns=["a", "b", "a", "c"])
    with pytest.raises(primo.InputError, match="'a' appears more than once"):
        model().fit(twice, y)


@pytest.mark.parametrize("table", [lambda x: x[:, 0], lambda x: x[0, 0], lambda x: x[None]])
def test_features_must_be_a_table_and_the_message_shows_no_value(table):
    x, y, _ = cohort(n=50)
    x[0, 0] = 31415
    with pytest.raises(primo.InputError, match="Reshape your data") as caught:
        model().fit(table(x), y)
    assert "31415" not in str(caught.value)


def test_masks_count_as_missing_and_predict_honours_missing():
    x, y, _ = cohort()
    masked = np.ma.masked_array(x, mask=x > 1.5)
    with pytest.raises(primo.InputError, match="NaN"):
        model().fit(masked, y)
    fitted = model(missing="centre").fit(masked, y)
    row = np.array([[0.0, np.nan, 2.0, 1.0]])
    mean = public_means(fitted.release_)[1]
    assert 0 < mean < 1  # values above 1.5 were missing, so the mean is not the middle
    np.testing.assert_allclose(fitted.predict(row), fitted.predict(np.nan_to_num(row, nan=mean)))
    with pytest.raises(ValueError, match="NaN"):
        model().fit(x, y).predict(row)


def test_a_delta_above_one_in_n_is_pointed_out():
    x, y, _ = cohort()
    with pytest.warns(primo.WeakGuaranteeWarning, match="1/n"):
        model(delta=0.01).fit(x, y)


def test_columns_that_a_frame_declares_as_text_are_named():
    people = pd.DataFrame({"age": [1.0, 2.0], "town": ["secret-a", "secret-b"]})
    model = primo.PrimoRegressor(
        epsilon=1, delta=1e-6, feature_bounds=(0, 9), outcome_bounds=(0, 1)
    )
    with pytest.raises(primo.NotNumericError, match="Declared as text: 'town'") as refused:
        model.fit(people, [0.0, 1.0])
    assert "secret" not in str(refused.value)
