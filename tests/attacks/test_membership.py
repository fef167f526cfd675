"""Membership inference: it works on exact coefficients, and stays within (ε, δ) on releases."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import norm

from experiments.cohort import simulate_haplotypes
from experiments.data import SHARED
from experiments.membership import page
from experiments.membership.coefficients import CoefficientAttack, least_squares
from experiments.membership.measure import auc_bound, success, tpr_bound
from experiments.membership.people import People, draw_outcomes, pruned, soybean, split
from experiments.membership.releases import (
    Published,
    View,
    exact_sums,
    knowing_panel,
    plan_for,
    publish,
)
from experiments.membership.study import FULL, extreme_pair, informed, worst_case
from primo.privacy.budget import Budget
from primo.privacy.calibration import epsilon_of, mu_of

N, D = 500, 100
#: An interval that is wrong once in a hundred times; the seeds are fixed, so not by turns.
SURE = {"level": 0.99, "resamples": 500}


@pytest.fixture(scope="module")
def genotypes():
    """Genotypes of 1500 simulated people."""
    drawn = simulate_haplotypes(n=2400, panel=600, megabases=1.0)
    haplotypes = np.vstack([drawn.cohort, drawn.panel])
    return haplotypes[0::2] + haplotypes[1::2]


def study_of(genotypes, l, *, d=D, seed=1, explained=None):
    rng = np.random.default_rng(seed)
    features = pruned(genotypes, d, rng).astype(float)
    outcomes = draw_outcomes(features, l, rng, explained=explained)
    return split(People(features=features, outcomes=outcomes), N, rng)


def attack_on(study, coefficients):
    return CoefficientAttack(coefficients=coefficients, n=N, panel=study.panel)


def outcome_known(study, **options):
    attack = attack_on(study, least_squares(study.members))
    return success(
        attack.knowing_outcomes(study.members), attack.knowing_outcomes(study.others), **options
    )


# --- The measures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_the_bounds_are_those_of_two_gaussians(mu):
    scores = np.random.default_rng(0).normal(size=(2, 100_000))
    found = success(scores[0] + mu, scores[1], resamples=20)
    assert found.auc == pytest.approx(auc_bound(mu), abs=0.006)
    assert found.tpr == pytest.approx(tpr_bound(mu), abs=0.015)


def test_ties_count_half():
    assert success(np.zeros(10), np.zeros(5), resamples=5).auc == 0.5


# --- Exact coefficients -----------------------------------------------------------------------------


def test_exact_coefficients_betray_members_the_more_the_more_outcomes(genotypes):
    found = [outcome_known(study_of(genotypes, l), resamples=50) for l in (1, 10, 100, 1000)]
    aucs = [f.auc for f in found]
    assert aucs == sorted(aucs)
    assert aucs[2] > 0.9
    assert aucs[3] > 0.999
    assert found[3].tpr > 0.98


def test_the_attack_is_as_strong_as_its_theory(genotypes):
    """Scores grow like h·√(2l) standard deviations, h = d/n being the mean leverage."""
    found = outcome_known(study_of(genotypes, 30), resamples=50)
    assert found.auc == pytest.approx(norm.cdf(D / N * np.sqrt(2 * 30) / np.sqrt(2)), abs=0.04)


def test_genotypes_alone_betray_members_of_many_faint_outcomes(genotypes):
    lower = []
    for l in (10, 1000):
        study = study_of(genotypes, l, explained=0.01)
        attack = attack_on(study, least_squares(study.members))
        found = success(
            attack.knowing_genotypes(study.members), attack.knowing_genotypes(study.others), **SURE
        )
        lower.append(found.auc_interval[0])
    assert lower[1] > max(lower[0], 0.65)


def test_people_who_were_never_members_look_alike(genotypes):
    study = study_of(genotypes, 1000)
    attack = attack_on(study, least_squares(study.members))
    half = len(study.others) // 2
    for score in (attack.knowing_outcomes, attack.knowing_genotypes):
        scores = score(study.others)
        low, high = success(scores[:half], scores[half:], **SURE).auc_interval
        assert low < 0.5 < high


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data (soybean lines)")
def test_real_outcomes_of_real_lines_betray_them():
    rng = np.random.default_rng(1)
    study = split(soybean(100, rng), N, rng)
    assert outcome_known(study, **SURE).auc_interval[0] > 0.8


# --- primo's releases -------------------------------------------------------------------------------


@pytest.mark.parametrize("l", [3, 600])  # all of YᵀY, or its diagonal
def test_inner_products_are_those_of_the_moments(genotypes, l):
    study = study_of(genotypes, l, d=7)
    plan = plan_for(study, 5.0)
    people = study.members.of(slice(4))
    view = View.of(people, plan)

    def moments(i):
        """Φ(i), written out."""
        x, y = view.x[i], view.y[i]
        outcome = np.outer(y, y) if plan.full_outcome_moments else y**2
        return np.concatenate(
            [
                np.outer(x, x).ravel() / plan.covariance_sigma,
                np.outer(x, y).ravel() / plan.association_sigma,
                outcome.ravel() / plan.outcome_sigma,
            ]
        )

    phi = np.array([moments(i) for i in range(4)])
    np.testing.assert_allclose(view.products(view), phi @ phi.T, rtol=1e-10)
    np.testing.assert_allclose(view.paired(view), np.diag(phi @ phi.T), rtol=1e-10)
    sums = exact_sums(people, dataclasses.replace(plan, n=4))
    np.testing.assert_allclose(view.against(sums), phi @ phi.sum(axis=0), rtol=1e-10)


def every_attack(study, plan, seed):
    """Scores of members and others by each attacker on one release."""
    seen = Published.of(publish(study.members, plan, seed))
    for outcomes in (False, True):
        members, others, panel = (
            View.of(people, plan, outcomes=outcomes)
            for people in (study.members, study.others, study.panel)
        )
        yield knowing_panel(seen, members, panel), knowing_panel(seen, others, panel)
    yield informed(study, plan, seen)


@pytest.mark.parametrize("epsilon", [1.0, 5.0, 10.0])
def test_no_attack_on_a_release_exceeds_the_bound(genotypes, epsilon):
    study = study_of(genotypes, 100)
    plan = plan_for(study, epsilon)
    for members, others in every_attack(study, plan, seed=3):
        found = success(members, others, **SURE)
        assert found.auc_interval[0] <= auc_bound(plan.mu)
        assert found.tpr_interval[0] <= tpr_bound(plan.mu)


def test_attacks_on_a_generous_release_are_no_straw_men(genotypes):
    study = study_of(genotypes, 100)
    plan = plan_for(study, 10.0)
    lower = [success(*scores, **SURE).auc_interval[0] for scores in every_attack(study, plan, 3)]
    assert lower[0] > 0.5  # genotypes and a panel
    assert lower[1] > 0.55  # outcomes as well
    assert lower[2] > 0.65  # everybody else as well


@pytest.mark.parametrize("epsilon", [1.0, 5.0, 10.0])
def test_the_most_exposed_person_is_mu_away(genotypes, epsilon):
    plan = plan_for(study_of(genotypes, 10, d=25), epsilon)
    first, second = (View.of(person, plan) for person in extreme_pair(plan))
    squared = first.paired(first) + second.paired(second) - 2 * first.paired(second)
    assert squared[0] ** 0.5 == pytest.approx(plan.mu, rel=1e-4)
    assert squared[0] ** 0.5 <= plan.mu


def test_the_most_exposed_person_is_found_as_often_as_the_bound_allows(genotypes):
    study = study_of(genotypes, 4, d=6)
    plan = plan_for(study, 5.0)
    found = success(*worst_case(study, plan, releases=1200), **SURE)
    low, high = found.auc_interval
    assert low < auc_bound(plan.mu) < high
    assert found.tpr_interval[0] < tpr_bound(plan.mu) < found.tpr_interval[1]


def with_a_quarter_of_the_noise(study, epsilon):
    """Return the plan of a program that claims `epsilon` and draws too little noise."""
    stated = plan_for(study, epsilon)
    return stated, plan_for(study, epsilon_of(4 * stated.mu, stated.budget.delta))


def test_too_little_noise_would_be_seen(genotypes):
    """So the tests above can fail."""
    study = study_of(genotypes, 100)
    stated, mutant = with_a_quarter_of_the_noise(study, 1.0)
    *_, scores = every_attack(study, mutant, seed=3)
    found = success(*scores, **SURE)
    assert found.auc_interval[0] > auc_bound(stated.mu)

    study = study_of(genotypes, 4, d=6)
    stated, mutant = with_a_quarter_of_the_noise(study, 5.0)
    found = success(*worst_case(study, mutant, releases=200), **SURE)
    assert found.auc_interval[0] > auc_bound(stated.mu)
    assert found.tpr_interval[0] > tpr_bound(stated.mu)


# --- The page ---------------------------------------------------------------------------------------


def test_the_page_states_the_bounds_of_the_budgets_it_names():
    text = page.PAGE.read_text(encoding="utf-8")
    assert text.count(page.START) == text.count(page.END) == 1
    part = text.split(page.START)[1].split(page.END)[0]
    for epsilon in FULL.epsilons:
        mu = mu_of(Budget(epsilon=epsilon, delta=1 / FULL.n**2))
        (auc,) = {row.split("|")[-2] for row in table_rows(part, epsilon) if "%" not in row}
        (found,) = {row.split("|")[-2] for row in table_rows(part, epsilon) if "%" in row}
        assert auc.strip() == f"**{auc_bound(mu):.3f}**"
        assert found.strip() == f"**{100 * tpr_bound(mu):.1f} %**"
    assert page.PAGE.with_suffix(".svg").name in text


def table_rows(text, epsilon):
    mu = mu_of(Budget(epsilon=epsilon, delta=1 / FULL.n**2))
    return [row for row in text.splitlines() if row.startswith(f"| {epsilon:g} | {mu:.3f} |")]


def test_the_figure_has_no_date():
    assert "<dc:date>" not in page.PAGE.with_suffix(".svg").read_text(encoding="utf-8")
