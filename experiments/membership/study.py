"""The experiment: the same attackers on exact coefficients and on primo's releases."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import primo
from experiments.data import SHARED
from experiments.membership.coefficients import CoefficientAttack, least_squares
from experiments.membership.measure import Success, success
from experiments.membership.people import (
    Genotypes,
    People,
    Split,
    draw_outcomes,
    human_genotypes,
    pruned,
    soybean,
    split,
)
from experiments.membership.releases import (
    Published,
    View,
    exact_sums,
    knowing_everybody_else,
    knowing_panel,
    plan_for,
    publish,
)
from primo.planning.plan import Plan

__all__ = [
    "FAINT",
    "FULL",
    "QUICK",
    "Findings",
    "Found",
    "Settings",
    "extreme_pair",
    "informed",
    "run",
    "worst_case",
]

Vector = NDArray[np.float64]
Scores = tuple[Vector, Vector]  # of members, of others

#: Share of an outcome's variance that the variants explain, where they hardly matter.
FAINT = 0.01


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How much is computed."""

    n: int = 1000  # members
    d: int = 100  # variants
    outcomes: tuple[int, ...] = (1, 10, 100, 1000, 10_000)
    attacked: int = 1000  # outcomes of the releases that every attacker tries
    epsilons: tuple[float, ...] = (1.0, 5.0, 10.0)
    repeats: int = 5  # of variants, outcomes, split and noise
    release_repeats: int = 10  # where whole releases are attacked
    releases: int = 4000  # of the worst case, half with either row
    resamples: int = 400
    soybean_d: int = 200


FULL = Settings()
QUICK = Settings(
    outcomes=(1, 10, 100), attacked=100, repeats=1, release_repeats=1, releases=200, resamples=100
)


@dataclass(frozen=True, kw_only=True)
class Found:
    """How one attacker did on one kind of publication."""

    data: str  # "people", "soybean"
    attacker: str
    l: int
    epsilon: float | None  # None: exact coefficients
    mu: float | None
    success: Success


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All that was found, and on whom."""

    people: str
    settings: Settings
    found: tuple[Found, ...]

    def of(self, **wanted: object) -> list[Found]:
        """Return what was found with these fields."""
        return [f for f in self.found if all(getattr(f, k) == v for k, v in wanted.items())]

    def one(self, **wanted: object) -> Found:
        """Return the single finding with these fields."""
        (found,) = self.of(**wanted)
        return found


def run(settings: Settings, *, simulated: bool = False) -> Findings:
    """Run every attack; deterministic."""
    genotypes, name = human_genotypes(simulated=simulated)
    found = list(_published_coefficients(genotypes, settings))
    found += _releases_of_people(genotypes, settings)
    if SHARED.is_dir() and not simulated:
        found += _soybean(settings)
    return Findings(people=name, settings=settings, found=tuple(found))


class _Tally:
    """Scores pooled over repetitions; they are log-likelihood ratios, hence on one scale."""

    def __init__(self) -> None:
        self._scores: defaultdict[tuple[str, float | None], list[Scores]] = defaultdict(list)
        self._mu: dict[float | None, float | None] = {None: None}

    def add(self, attacker: str, scores: Scores, plan: Plan | None = None) -> None:
        epsilon = None if plan is None else plan.budget.epsilon
        self._scores[attacker, epsilon].append(scores)
        self._mu[epsilon] = None if plan is None else plan.mu

    def found(self, data: str, l: int, resamples: int) -> Iterator[Found]:
        for (attacker, epsilon), parts in self._scores.items():
            members, others = (np.concatenate(part) for part in zip(*parts, strict=True))
            yield Found(
                data=data,
                attacker=attacker,
                l=l,
                epsilon=epsilon,
                mu=self._mu[epsilon],
                success=success(members, others, resamples=resamples),
            )


def _drawn_study(
    genotypes: Genotypes, l: int, settings: Settings, seed: int, explained: float | None = None
) -> Split:
    rng = np.random.default_rng(seed)
    features = pruned(genotypes, settings.d, rng).astype(np.float64)
    outcomes = draw_outcomes(features, l, rng, explained=explained)
    return split(People(features=features, outcomes=outcomes), settings.n, rng)


def _published_coefficients(genotypes: Genotypes, settings: Settings) -> Iterator[Found]:
    """Attack coefficients alone, exact and primo's at the largest epsilon, over l."""
    for l in settings.outcomes:
        tally = _Tally()
        for seed in range(settings.repeats):
            for kind, explained in (("", None), (", faint", FAINT)):
                study = _drawn_study(genotypes, l, settings, seed, explained)
                exact = _attack(study, least_squares(study.members))
                plan = plan_for(study, max(settings.epsilons))
                release = publish(study.members, plan, seed)
                private = _attack(study, _stacked(primo.coefficients(release)))
                for attack, made in ((exact, None), (private, plan)):
                    tally.add(f"outcomes{kind}", _both(study, attack.knowing_outcomes), made)
                    tally.add(f"genotypes{kind}", _both(study, attack.knowing_genotypes), made)
        yield from tally.found("people", l, settings.resamples)


def _releases_of_people(genotypes: Genotypes, settings: Settings) -> Iterator[Found]:
    """Attack releases with everything that is in them."""
    tally, worst = _Tally(), _Tally()
    for epsilon in settings.epsilons:
        for seed in range(settings.release_repeats):
            study = _drawn_study(genotypes, settings.attacked, settings, 100 + seed)
            _attack_release(study, plan_for(study, epsilon), _noise_seed(epsilon, seed), tally)
        # Thousands of releases, so each has fewer numbers; the bound does not depend on that.
        study = _drawn_study(genotypes, 10, replace(settings, d=25), 200)
        plan = plan_for(study, epsilon)
        scores = worst_case(study, plan, settings.releases, _noise_seed(epsilon, 10_000))
        worst.add("worst case", scores, plan)
    yield from tally.found("people", settings.attacked, settings.resamples)
    yield from worst.found("people", 10, settings.resamples)


def _soybean(settings: Settings) -> Iterator[Found]:
    """Attack studies whose outcomes are real as well."""
    tally = _Tally()
    for seed in range(settings.release_repeats):
        rng = np.random.default_rng(300 + seed)
        study = split(soybean(settings.soybean_d, rng), settings.n, rng)
        attack = _attack(study, least_squares(study.members))
        tally.add("outcomes", _both(study, attack.knowing_outcomes))
        tally.add("genotypes", _both(study, attack.knowing_genotypes))
        for epsilon in settings.epsilons:
            _attack_release(
                study, plan_for(study, epsilon), _noise_seed(epsilon, 1000 + seed), tally
            )
    yield from tally.found("soybean", study.members.outcomes.shape[1], settings.resamples)


def _noise_seed(epsilon: float, seed: int) -> int:
    """Return a seed of its own for every epsilon: otherwise results would be correlated."""
    return round(epsilon * 1e6) + seed


def _attack_release(study: Split, plan: Plan, seed: int, tally: _Tally) -> None:
    """Let every attacker look at one release of the members."""
    release = publish(study.members, plan, seed)
    seen = Published.of(release)
    for attacker, outcomes in (("release, genotypes", False), ("release, outcomes", True)):
        panel = View.of(study.panel, plan, outcomes=outcomes)
        scores = [
            knowing_panel(seen, View.of(people, plan, outcomes=outcomes), panel)
            for people in (study.members, study.others)
        ]
        tally.add(attacker, (scores[0], scores[1]), plan)
    tally.add("everybody else", informed(study, plan, seen), plan)
    attack = _attack(study, _stacked(primo.coefficients(release)))
    tally.add("coefficients", _both(study, attack.knowing_outcomes), plan)


def informed(study: Split, plan: Plan, seen: Published) -> Scores:
    """Score pairs of a member and an outsider, the suspect being the one or the other by turns."""
    pairs = min(len(study.members), len(study.others))
    ratio = knowing_everybody_else(
        seen.minus(exact_sums(study.members, plan)),
        View.of(study.members.of(slice(pairs)), plan),
        View.of(study.others.of(slice(pairs)), plan),
    )
    return ratio[::2], -ratio[1::2]


def worst_case(study: Split, plan: Plan, releases: int, first_seed: int = 0) -> Scores:
    """Release a study with either of two extreme rows in it, many times, and tell which one it was.

    The pair is the one that the calibration is made for, so the attack should reach the bound.
    """
    suspect, instead = extreme_pair(plan)
    everybody_else = study.members.of(slice(1, None))

    def ratios(inside: People, outside: People, seeds: range) -> Vector:
        members = everybody_else.joined_with(inside)
        sums = exact_sums(members, plan)
        pair = View.of(inside, plan), View.of(outside, plan)
        seen = (Published.of(publish(members, plan, seed)) for seed in seeds)
        return np.array([knowing_everybody_else(shown.minus(sums), *pair)[0] for shown in seen])

    seeds = range(first_seed, first_seed + releases)
    half = releases // 2
    return ratios(suspect, instead, seeds[:half]), -ratios(instead, suspect, seeds[half:])


def extreme_pair(plan: Plan) -> tuple[People, People]:
    """Return two rows at the bounds that move the release by mu (docs/guarantee.md, section 1).

    Outcomes are opposite; the cosine of the features, constant included, is half the split ratio.
    """
    norm, constant = plan.features.norm, plan.constant
    wanted = min(1.0, plan.split / 2) * (norm**2 + constant**2) - constant**2
    cosine = wanted / norm**2
    x, rotated, y = np.zeros(plan.d), np.zeros(plan.d), np.zeros(plan.l)
    x[0] = norm
    rotated[:2] = norm * cosine, norm * math.sqrt(max(0.0, 1 - cosine**2))
    y[:] = plan.outcomes.norm / math.sqrt(plan.l)
    rows = []
    for features, outcomes in ((x, y), (rotated, -y)):
        rows.append(
            People(
                features=(features * plan.features.scale + plan.features.centre)[None],
                outcomes=(outcomes * plan.outcomes.scale + plan.outcomes.centre)[None],
            )
        )
    return rows[0], rows[1]


def _attack(study: Split, coefficients: NDArray[np.float64]) -> CoefficientAttack:
    return CoefficientAttack(coefficients=coefficients, n=len(study.members), panel=study.panel)


def _both(study: Split, score: Callable[[People], Vector]) -> Scores:
    return score(study.members), score(study.others)


def _stacked(fitted: primo.Coefficients) -> NDArray[np.float64]:
    return np.vstack([fitted.slopes, fitted.intercept])
