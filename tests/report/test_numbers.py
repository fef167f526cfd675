"""Each number of the page is the library's."""

import dataclasses
import math

import numpy as np
import pytest

import primo
from primo.forecast.forecast import predict
from primo.privacy.calibration import delta_of
from primo.released import uncertainty
from primo.released.uncertainty.system import system_of
from primo.report.contents import (
    MOST_COEFFICIENTS,
    MOST_OUTCOMES,
    Findings,
    choose,
    find,
    shrunk_only,
    threshold,
)
from primo.report.guessing import for_person, found_at_most, right_at_most
from primo.report.outlook import Outlook, outlook_of, plan_at
from primo.report.placing import place
from primo.report.results import doubts_of
from primo.report.strength import blocks_of, directions_of

close = pytest.approx


@pytest.mark.parametrize("mu", [0.84, 3.0])
def test_a_guess_is_limited_by_the_privacy_curve(mu):
    """Φ(μ/2) from total variation, and the trade-off from all (ε, δ(ε)) together."""
    assert right_at_most(mu) == close((1 + delta_of(mu, 0.0)) / 2, abs=1e-12)
    for rate in (0.01, 0.05, 0.3):
        curve = [math.exp(e) * rate + delta_of(mu, e) for e in np.linspace(-9, 9, 361)]
        assert found_at_most(mu, rate) == close(min(curve), rel=2e-3)
        assert found_at_most(mu, rate) <= min(curve) + 1e-12


@pytest.mark.parametrize("kind", ["plain", "extension", "sampled", "paper"])
def test_what_counts_for_a_person(releases, kind):
    plan = releases(kind).plan
    one = for_person(plan)
    assert one.mu == plan.total_mu
    assert one.epsilon == (plan.total_epsilon if plan.earlier_mu else plan.epsilon)
    two = for_person(dataclasses.replace(plan, rows_per_person=2))
    assert two.mu == close(2 * one.mu)
    assert two.epsilon > 1.5 * one.epsilon
    if not plan.sampled:  # exact, from the whole curve
        assert delta_of(two.mu, two.epsilon) == close(plan.budget.delta, rel=1e-3)


@pytest.mark.parametrize("kind", ["plain", "features", "outcomes", "noisy"])
def test_signal_and_noise(releases, kind):
    release = releases(kind)
    plan = release.plan
    covariance, association, outcome = blocks_of(release)
    assert association.noise == close(plan.association_sigma, rel=0.2)
    assert (covariance.noise == 0) == (not plan.protection.features_private)
    assert (outcome.noise == 0) == (not plan.protection.outcomes_private)
    if covariance.noise:
        off_diagonal = plan.covariance_sigma / math.sqrt(2)
        assert off_diagonal < covariance.noise < 1.3 * plan.covariance_sigma
    if kind == "plain":  # unit variances: Σy² is about n·Var(y), which is 1 to 2
        assert plan.n < outcome.signal < 3 * plan.n
        assert covariance.signal == close(plan.n / math.sqrt(plan.d), rel=0.15)
        assert association.ratio > 3
        assert association.signal == association.ratio * association.noise


@pytest.mark.parametrize("kind", ["blocks", "diagonal", "perturbed"])
def test_signal_and_noise_without_a_whole_covariance(releases, pages, kind):
    release = releases(kind)
    plan = release.plan
    covariance, association, outcome = blocks_of(release)
    unit = plan.features.scale[0] * plan.outcomes.scale[0]  # the same for all columns
    assert plan.n < outcome.signal * plan.outcomes.scale[0] ** 2 < 3 * plan.n
    assert association.signal * unit > 0.1 * plan.n
    assert association.ratio > 3
    if release.row_variance:  # about the means a feature of unit variance has length √n
        expected = plan.row_sigma * math.sqrt(plan.n) / plan.features.scale[0]
        assert association.noise == close(expected, rel=0.1)
        assert covariance.noise == 0
    else:
        assert association.noise == close(plan.association_sigma, rel=0.2)
        off_diagonal = release.covariance_sigma / math.sqrt(2)
        assert 0.5 * off_diagonal < covariance.noise <= 1.01 * release.covariance_sigma
        assert covariance.signal > 3 * covariance.noise
    page = pages(kind)
    assert "No released block carries noise" not in page
    assert "the public features are not attached" not in page
    # Why there are no intervals of joint effects: nothing that is not so is said.
    assert "single coefficients are not determined by the data" not in page  # 6 features, 4000 rows
    assert ("the diagonal of the covariance only" in page) == (kind == "diagonal")
    assert ("holds the covariance inside blocks" in page) == (kind == "blocks")
    assert ("were summed inside blocks only" in page) == (kind == "perturbed")


def test_directions_are_those_of_the_intervals(releases):
    directions = directions_of(releases("noisy"))
    assert directions.lost == int(np.sum(~system_of(releases("noisy")).well_determined)) > 0
    assert directions_of(releases("outcomes")) is None


@pytest.mark.parametrize("kind", ["plain", "features", "outcomes", "projected", "extension", "one"])
def test_the_outlook_is_the_forecast_of_the_plan(releases, kind):
    plan = releases(kind).plan
    outlook = outlook_of(plan)
    assert outlook.chosen == predict(plan, association=plan.association)
    assert dict(outlook.curve)[plan.budget.epsilon] == outlook.chosen
    epsilons = [epsilon for epsilon, _ in outlook.curve]
    assert epsilons == sorted(epsilons)
    assert len(epsilons) > 8
    assert outlook.curve[-1][1].r2 > outlook.curve[0][1].r2


@pytest.mark.parametrize("kind", ["plain", "features", "outcomes", "extension"])
def test_the_curve_passes_through_the_plan(releases, kind):
    plan = releases(kind).plan
    again = plan_at(plan, plan.budget.epsilon)
    for name in ("covariance_sigma", "association_sigma", "outcome_sigma"):
        assert getattr(again, name) == close(getattr(plan, name), rel=1e-6), name
    half = plan_at(plan, plan.budget.epsilon / 2)
    assert half.association_sigma > 1.5 * plan.association_sigma


def test_a_stated_signal_is_used(releases):
    plan = releases("plain").plan
    assert outlook_of(plan, primo.Signal(r2=0.8)).chosen.r2 > outlook_of(plan).chosen.r2 + 0.2


@pytest.mark.parametrize(("kind", "reason"), [("paper", "paper"), ("sampled", "sampled")])
def test_what_is_not_forecast_has_a_reason(releases, kind, reason):
    assert reason in outlook_of(releases(kind).plan)


def test_places_on_the_genome(releases, variants):
    release, known = releases("genomic"), variants(30)
    axis = place(release.feature_names, known)
    assert axis.genomic
    assert [s.label for s in axis.stretches] == [
        *sorted({c[3:] for c in known.chromosome}),
        "other",
    ]
    assert ((axis.places > 0) & (axis.places < 1)).all()
    assert (np.diff(axis.places[np.lexsort((known.position, known.chromosome))]) >= 0).all()
    assert (axis.stretch[28:] == len(axis.stretches) - 1).all()
    plain = place(release.feature_names, None)
    assert not plain.genomic
    assert (np.diff(plain.places) > 0).all()


def test_chromosomes_in_their_order():
    names = tuple("abcdef")
    known = primo.variants.Variants(
        names=names,
        chromosome=("X", "10", "2", "MT", "chr1", "scaffold7"),
        position=np.arange(6),
        counted=("A",) * 6,
        other=("C",) * 6,
    )
    labels = [s.label for s in place(names, known).stretches]
    assert labels == ["1", "2", "10", "X", "MT", "scaffold7"]


def test_the_page_carries_what_fits():
    rank = np.arange(100_000.0)
    chosen = choose(rank, np.ones(25))
    assert len(chosen.outcomes) == MOST_OUTCOMES
    assert chosen.outcomes[0] == 99_999
    assert len(chosen.detailed) * len(chosen.features) <= MOST_COEFFICIENTS
    assert (chosen.detailed == chosen.outcomes[: len(chosen.detailed)]).all()
    wide = choose(np.ones(3), np.arange(80_000.0))
    assert len(wide.detailed) * len(wide.features) <= MOST_COEFFICIENTS
    assert (np.diff(wide.features) == 1).all()  # ascending, the strongest
    assert wide.features[-1] == 79_999
    small = choose(np.ones(2), np.ones(4))
    assert len(small.detailed) == 2
    assert len(small.features) == 4


@pytest.mark.parametrize("kind", ["plain", "one", "noisy", "extension", "features", "many"])
def test_coefficients_of_the_page(releases, pages, numbers_in, kind):
    release, data = releases(kind), numbers_in(pages(kind))
    table = uncertainty.tidy(release).set_index(["outcome", "feature"])
    names = data["outcomes"]["name"][: data["detailed"]]
    features = data["features"]["name"]
    rows = table.loc[[(outcome, feature) for outcome in names for feature in features]]
    cells = data["cells"]
    half = (rows["shrunk_upper"] - rows["shrunk_lower"]) / 2
    flags = 1 * ~rows["trusted"] + 2 * ~rows["shrunk_trusted"]
    for name, column in (
        ("estimate", rows["estimate"]),
        ("error", rows["standard_error"]),
        ("lower", rows["lower"]),
        ("upper", rows["upper"]),
        ("z", rows["z"]),
        ("q", rows["q"]),
        ("shrunk", rows["shrunk"]),
        ("half", half),
        ("flags", flags),
    ):
        shown = np.array([np.nan if x is None else x for x in cells[name]], dtype=float)
        expected = np.where(np.isfinite(column), column, np.nan)
        np.testing.assert_allclose(shown, expected, rtol=6e-3 if name in ("q", "half") else 6e-5)


@pytest.mark.parametrize("kind", ["plain", "many"])
def test_outcomes_of_the_page(releases, pages, numbers_in, kind):
    release, data = releases(kind), numbers_in(pages(kind))
    fit = uncertainty.goodness_of_fit(release)
    at = [release.outcome_names.index(name) for name in data["outcomes"]["name"]]
    shown = data["outcomes"]
    published = uncertainty.published_r_squared(release)
    for name, column in (
        ("r2", np.where(fit.trusted, fit.r_squared, np.nan)),
        ("lower", fit.lower),
        ("upper", fit.upper),
        ("statistic", fit.statistic),
        ("published", np.where(published.trusted, published.r_squared, np.nan)),
    ):
        told = np.array(shown[name], dtype=float)  # null is NaN
        np.testing.assert_allclose(told, column[at], rtol=1e-2 if name == "published" else 1e-4)
    untrusted = ~fit.trusted[at]
    assert (np.array(shown["lower"])[untrusted] == 0).all()
    assert (np.array(shown["upper"])[untrusted] == 1).all()
    np.testing.assert_allclose(shown["p"], fit.p[at], rtol=1e-2)
    assert (np.array(shown["found"]) == fit.found[at]).all()
    assert (np.array(shown["trusted"]) == fit.trusted[at]).all()
    assert shown["statistic"] == sorted(shown["statistic"], reverse=True)


def test_the_line_of_false_discoveries(releases):
    found = find(releases("plain"), level=0.95, fdr=0.05)
    passed = found.tests.p[found.tests.q <= 0.05]
    assert 10 ** -threshold(found, 0.05) == close(passed.max())
    assert threshold(found, 0.0) is None


def test_what_the_published_coefficients_explain(releases):
    """The estimate against new rows, which only a test has."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((14000, 8))
    Y = X @ (0.3 * rng.standard_normal((8, 40))) + rng.standard_normal((14000, 40))
    model = primo.PrimoRegressor(
        epsilon=2, delta=1e-6, feature_bounds=5.0, outcome_bounds=10.0
    ).fit(X[:4000], Y[:4000])
    X, Y = X[4000:], Y[4000:]
    truth = 1 - np.sum((Y - model.predict(X)) ** 2) / np.sum((Y - Y.mean(axis=0)) ** 2)
    assert find(model.release_, level=0.95, fdr=0.05).published.pooled == close(truth, abs=0.06)


def test_without_a_noise_law_only_the_coefficients_are_known(releases):
    release = releases("projected")
    assert "projected" in find(release, level=0.95, fdr=0.05)
    scales = release.plan.features.scale[:, None] / release.plan.outcomes.scale
    np.testing.assert_allclose(shrunk_only(release), primo.coefficients(release).slopes * scales)


def test_findings_count_intervals_that_depend_on_the_prior(releases):
    found = find(releases("one"), level=0.95, fdr=0.05)
    assert isinstance(found, Findings)
    shrunk = uncertainty.coefficient_intervals(releases("one"), kind="posterior")
    if not found.few_for_prior:
        assert found.mostly_prior == int(np.sum(~shrunk.trusted[:-1]))


def test_few_coefficients_with_a_clear_signal_are_not_said_to_depend_on_the_prior():
    """The prior is fitted to few of them, which is said; it hardly moves their intervals."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 8))
    y = X @ np.linspace(0.5, 1, 8) + rng.standard_normal(20_000)
    model = primo.PrimoRegressor(epsilon=5, delta=1e-6, feature_bounds=5.0, outcome_bounds=8.0)
    release = model.fit(X, y).release_
    found = find(release, level=0.95, fdr=0.05)
    assert found.few_for_prior
    assert found.mostly_prior == 0
    said = " ".join(doubts_of(release, found))
    assert "was fitted to 8 coefficients only (at least 20 are asked for)" in said
    assert "depends on the assumed spread" not in said


def test_outlook_says_its_assumption(releases):
    outlook = outlook_of(releases("plain").plan)
    assert isinstance(outlook, Outlook)
    assert outlook.signal.r2 == 0.3
    assert outlook.signal.feature_spread == 0.5  # of a norm about which nothing else is known
    assert outlook.assumptions[0].startswith("the features explain 30% of each outcome's variance")
