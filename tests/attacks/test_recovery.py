"""Recovery of genotypes: exact statistics of many outcomes give them away, releases hardly anything."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import norm

from experiments.data import SHARED
from experiments.membership.people import People, human_genotypes, split
from experiments.membership.releases import publish
from experiments.recovery import figure, page
from experiments.recovery import study as study_module
from experiments.recovery.estimates import CODES, Posterior, ReleaseAttack
from experiments.recovery.measure import accuracy_bound, frequencies, identified
from experiments.recovery.programs import feasible, likeliest, nearest
from experiments.recovery.study import FULL, QUICK, draw_study, plan_for, run
from experiments.recovery.summaries import equations, rounded, summarise
from experiments.recovery.tally import Tally
from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of

N, D = 80, 20
#: Measured shares of 1600 genotypes scatter by about 1.2 points; the seeds are fixed.
CHANCE = 0.03


def study_of(ratio, *, d=D, seed=1):
    """Members, others and panel whose genotypes are in Hardy–Weinberg proportions."""
    rng = np.random.default_rng(seed)
    genotypes = rng.binomial(2, rng.uniform(0.05, 0.5, d), size=(6 * N, d)).astype(float)
    outcomes = rng.standard_normal((len(genotypes), round(ratio * N)))
    return split(People(features=genotypes, outcomes=outcomes), N, rng)


def known(study, digits=None):
    outcomes = study.members.outcomes
    return [
        equations(summarise(x, outcomes, digits=digits), outcomes) for x in study.members.features.T
    ]


def solutions(study, solve, digits=None):
    return np.column_stack([solve(one) for one in known(study, digits)])


def share(study, guesses):
    return float((np.rint(guesses) == study.members.features).mean())


def guessing(study):
    common = [frequencies(x).argmax() for x in study.panel.features.T]
    return float((study.members.features == common).mean())


# --- What summary statistics say --------------------------------------------------------------------


@pytest.mark.parametrize("digits", [None, 6])
def test_slopes_errors_and_frequency_give_the_sums_back(digits):
    study = study_of(0.5)
    y = study.members.outcomes - study.members.outcomes.mean(axis=0)
    for x, one in zip(study.members.features.T, known(study, digits), strict=True):
        assert one.values[-1] == x.sum()
        assert (np.abs(one.values[:-1] - x @ y) <= one.slack[:-1] + 1e-9).all()
    assert digits is not None or not one.slack.any()


def test_digits_that_are_not_printed_become_slack():
    study = study_of(0.5)
    x, outcomes = study.members.features[:, 0], study.members.outcomes
    one = equations(summarise(x, outcomes, digits=2), outcomes)
    y = outcomes - outcomes.mean(axis=0)
    off = np.abs(one.values - np.append(x @ y, x.sum()))
    assert (one.slack > 0).all()
    # The sum of squares is known roughly, so a few may be off by a little more.
    assert (off <= 1.5 * one.slack).all()
    np.testing.assert_allclose(
        rounded(np.array([0.12345, -98.76, 0.1, 0.0]), 2), [0.12, -99, 0.1, 0]
    )


# --- Exact statistics -------------------------------------------------------------------------------


@pytest.mark.parametrize("solve", [feasible, likeliest])
def test_exact_statistics_of_many_outcomes_give_every_genotype_away(solve):
    study = study_of(0.95)
    assert share(study, solutions(study, solve)) == 1.0


def test_the_program_succeeds_from_where_theory_says():
    """The truth is the only point of the box from l/n = (1 + h)/2 on, h the heterozygous share."""
    rng = np.random.default_rng(2)
    n, tried = 120, 5
    for heterozygous in (0.1, 0.5):
        x = np.repeat([0.0, 2.0, 1.0], [n // 2, n // 2 - round(heterozygous * n), 0])
        x = np.append(x, np.ones(n - len(x)))
        for shift, expected in ((-0.15, False), (0.15, True)):
            l = round(n * ((1 + heterozygous) / 2 + shift))
            for _ in range(tried):
                y = rng.standard_normal((n, l))
                solution = feasible(equations(summarise(x, y), y))
                assert np.allclose(solution, x, atol=1e-6) == expected


def test_frequencies_make_the_program_stronger():
    study = study_of(0.6)
    plain, better = (share(study, solutions(study, s)) for s in (feasible, likeliest))
    assert guessing(study) + 0.1 < plain < better - 0.02


def test_rounding_does_not_protect():
    study = study_of(0.95)
    assert share(study, solutions(study, likeliest, digits=4)) == 1.0
    assert share(study, solutions(study, likeliest, digits=2)) > 0.95


def test_few_outcomes_lead_from_a_genome_to_its_row():
    study = study_of(0.2, d=200)
    values = np.column_stack([one.values for one in known(study)])
    posterior = Posterior.of(known(study)[0].rows / 1e-3)
    beliefs = posterior.beliefs(values / 1e-3, study.panel.features)
    assert share(study, beliefs.guesses) > guessing(study)
    found = identified(beliefs.means, study.members.features, study.panel.features)
    assert found.mean() > 0.9


# --- The estimate and its limit ---------------------------------------------------------------------


def test_beliefs_are_bayes_rule_where_everybody_is_seen_apart():
    """With one equation a person and one variant, nothing has to be untangled."""
    rng = np.random.default_rng(3)
    panel = rng.binomial(2, 0.3, size=(400, 1)).astype(float)
    x, precision = rng.binomial(2, 0.3, size=(N, 1)).astype(float), 1.7
    seen = precision * x + rng.standard_normal((N, 1))
    beliefs = Posterior.of(precision * np.eye(N)).beliefs(seen, panel)
    expected = frequencies(panel[:, 0]) * norm.pdf(seen, loc=precision * CODES)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(beliefs.chances[:, 0], expected, atol=1e-9)


def test_beliefs_that_saw_nothing_are_the_frequencies():
    panel = np.random.default_rng(4).binomial(2, 0.3, size=(400, 3)).astype(float)
    beliefs = Posterior.of(np.zeros((1, N))).beliefs(np.zeros((1, 3)), panel)
    for variant in range(3):
        shares = frequencies(panel[:, variant])
        np.testing.assert_allclose(beliefs.chances[:, variant], np.tile(shares, (N, 1)), atol=1e-9)


def test_an_estimate_that_says_nothing_recognises_nobody():
    study = study_of(0.2)
    means = np.tile(study.panel.features.mean(axis=0), (N, 1))
    assert identified(means, study.members.features, study.panel.features).sum() <= 1


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_the_limit_is_reached_where_two_genotypes_lie_mu_apart(mu):
    shares = np.array([0.7, 0.3])
    # The best rule for N(0, 1) against N(mu, 1) says 1 above this threshold.
    threshold = mu / 2 + math.log(0.7 / 0.3) / mu
    best = 0.7 * norm.cdf(threshold) + 0.3 * norm.sf(threshold - mu)
    assert accuracy_bound(shares, mu) == pytest.approx(best, rel=1e-12)


def test_the_limit_grows_from_guessing_to_certainty():
    shares = np.array([0.5, 0.4, 0.1])
    limits = [accuracy_bound(shares, mu) for mu in (1e-3, 0.5, 1.0, 2.0, 20.0)]
    assert limits == sorted(limits)
    assert limits[0] == pytest.approx(0.5, abs=1e-3)
    assert limits[-1] == pytest.approx(1.0, abs=1e-6)


# --- primo's releases -------------------------------------------------------------------------------


def attacked(study, plan, seed):
    """Let the estimate loose on one release."""
    release = publish(study.members, plan, seed)
    beliefs = ReleaseAttack.of(study.members, plan).beliefs(release, study.panel.features)
    tally = Tally(plan.mu)
    tally.believed(study, beliefs)
    return tally.success(resamples=50), tally.bound


@pytest.mark.parametrize("protection", ["features", "both"])
@pytest.mark.parametrize("ratio", [0.2, 1.0, 5.0])
def test_a_release_hardly_says_more_than_the_frequencies(protection, ratio):
    study = study_of(ratio)
    found, bound = attacked(study, plan_for(study, 1.0, protection), seed=5)
    assert abs(found.gain) < CHANCE
    assert found.recovered < bound + CHANCE
    assert found.identified < 0.1


@pytest.mark.parametrize("protection", ["features", "both"])
def test_no_attack_on_a_single_variant_exceeds_the_limit(protection):
    for epsilon in (1.0, 10.0):
        study = study_of(5.0, d=1)
        plan = plan_for(study, epsilon, protection, single=True)
        found = [attacked(study, plan, seed) for seed in range(20)]
        recovered = np.mean([success.recovered for success, _ in found])
        # Of the study's own shares: its people are the only ones.
        shares = np.bincount(study.members.features[:, 0].astype(int), minlength=3) / N
        assert recovered < accuracy_bound(shares, plan.mu) + 0.01
        assert epsilon == 1.0 or recovered > shares.max() + CHANCE


def test_the_attack_on_releases_is_no_straw_man():
    """Where there is little noise it finds much: so the tests above can fail."""
    study = study_of(5.0, d=5)
    gains, known = [], []
    for epsilon in (1.0, 100.0):
        found, _ = attacked(study, plan_for(study, epsilon, "features"), seed=5)
        gains.append(found.gain)
        known.append(found.correlation)
    assert gains[0] < CHANCE
    assert gains[1] > 0.2
    assert known[0] < 0.2
    assert known[1] > 0.8


def test_the_program_for_noisy_numbers_believes_the_noise():
    study = study_of(1.0, d=6)
    rows = study.members.outcomes.T
    exact = np.column_stack([nearest(rows, rows @ x) for x in study.members.features.T])
    assert share(study, exact) == 1.0
    plan = plan_for(study, 1.0, "features")
    attack = ReleaseAttack.of(study.members, plan)
    values = attack.values(publish(study.members, plan, seed=5))
    noisy = np.column_stack([nearest(attack.posterior.rows, one) for one in values.T])
    assert share(study, noisy) < guessing(study)


def test_the_attacker_reads_the_release_rightly():
    """Its equations hold for the true genotypes, up to noise of variance 1."""
    study = study_of(5.0)
    for protection in ("features", "both"):
        plan = plan_for(study, 10.0, protection)
        attack = ReleaseAttack.of(study.members, plan)
        values = attack.values(publish(study.members, plan, seed=5))
        # Rows that the bounds shorten are not what the attacker thinks: leave none of them.
        features = study.members.features - plan.features.centre
        length = np.linalg.norm(features, axis=1, keepdims=True)
        kept = features * np.minimum(1, plan.features.norm / length) + plan.features.centre
        left = values - attack.posterior.rows @ kept
        # 8000 squares: five standard deviations, wrong once in two million times.
        assert (left**2).mean() == pytest.approx(1.0, abs=5 * math.sqrt(2 / left.size))


# --- Real genotypes ---------------------------------------------------------------------------------


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data (1000 Genomes)")
def test_genotypes_of_real_people_are_recovered_and_protected():
    genotypes, _ = human_genotypes()
    settings = dataclasses.replace(QUICK, n=100, d=10)
    study = draw_study(genotypes, settings, 0.85, seed=1)
    assert share(study, solutions(study, likeliest)) > 0.99
    found, bound = attacked(study, plan_for(study, 1.0, "features"), seed=5)
    assert abs(found.gain) < CHANCE
    assert found.recovered < bound + CHANCE


# --- The page ---------------------------------------------------------------------------------------


def test_the_page_holds_the_budgets_and_ratios_of_the_program():
    text = page.PAGE.read_text(encoding="utf-8")
    assert text.count(page.START) == text.count(page.END) == 1
    part = text.split(page.START)[1].split(page.END)[0]
    for epsilon in FULL.epsilons:
        mu = mu_of(Budget(epsilon=epsilon, delta=1 / FULL.n**2))
        assert f"| {epsilon:g} | {mu:.3f} |" in part
    for ratio in FULL.ratios:
        assert f"| {ratio:g} | {round(ratio * FULL.n)} |" in part
    assert page.PAGE.with_suffix(".svg").name in part


def test_the_figure_has_no_date():
    assert "<dc:date>" not in page.PAGE.with_suffix(".svg").read_text(encoding="utf-8")


def test_the_whole_study_runs_small_and_fills_the_page(monkeypatch, tmp_path):
    rng = np.random.default_rng(6)
    people = rng.binomial(2, rng.uniform(0.1, 0.5, 30), size=(300, 30)).astype(np.int8)
    monkeypatch.setattr(study_module, "human_genotypes", lambda *, simulated: (people, "nobody"))
    settings = dataclasses.replace(
        QUICK, n=30, d=5, many=10, ratios=(0.15, 0.85), release_ratios=(0.15, 1.0), resamples=20
    )
    findings = run(settings)
    text = page.generated(findings)
    assert "nan" not in text
    assert text.count("\n| 0.15 | 4 |") == 3  # two tables of exact statistics and one of releases
    assert all(f"\n| {epsilon:g} | " in text for epsilon in settings.epsilons)
    monkeypatch.setattr(figure, "PAGE", tmp_path / "recovery.md")
    figure.draw(findings)
    first = (tmp_path / "recovery.svg").read_bytes()
    figure.draw(findings)
    assert (tmp_path / "recovery.svg").read_bytes() == first
