"""The experiment: genotypes recovered from exact statistics, from rounded ones, and from releases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

import primo
from experiments.membership.people import Genotypes, People, Split, human_genotypes, pruned, split
from experiments.membership.releases import publish
from experiments.recovery.estimates import Beliefs, Posterior, ReleaseAttack
from experiments.recovery.measure import Success
from experiments.recovery.programs import feasible, likeliest, nearest
from experiments.recovery.summaries import Equations, equations, summarise
from experiments.recovery.tally import Tally
from primo.planning.make import make_plan
from primo.planning.plan import Plan
from primo.planning.settings import Settings as ReleaseSettings
from primo.released.release import Release

__all__ = [
    "EXPOSED",
    "FULL",
    "QUICK",
    "Findings",
    "Found",
    "Settings",
    "draw_study",
    "plan_for",
    "run",
]

#: How a release of one single variant is called: all the budget is spent on it.
EXPOSED = "single variant"

#: Exact numbers are taken to have this much noise, so that one formula serves.
_EXACT = 1e-3


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How much is computed."""

    n: int = 200  # people
    d: int = 50  # variants
    many: int = 300  # variants by which people are recognised, where that is quick
    ratios: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2)
    digits: tuple[int, ...] = (4, 3, 2, 1)
    rounded_ratios: tuple[float, ...] = (0.5, 0.85)
    epsilons: tuple[float, ...] = (0.5, 1.0, 3.0, 5.0, 10.0)
    protections: tuple[str, ...] = ("features", "both")
    release_ratios: tuple[float, ...] = (0.05, 0.15, 0.4, 0.7, 1.0, 1.2, 5.0)
    shown: float = 1.0  # l/n of the table over epsilon
    repeats: int = 10  # of releases; people, variants, outcomes and noise are drawn anew
    many_repeats: int = 3
    resamples: int = 1000


FULL = Settings()
QUICK = Settings(
    n=100,
    d=20,
    many=60,
    ratios=(0.1, 0.5, 0.85, 1.2),
    digits=(3,),
    rounded_ratios=(0.85,),
    epsilons=(1.0, 10.0),
    release_ratios=(0.1, 1.0, 5.0),
    repeats=2,
    many_repeats=1,
    resamples=200,
)


@dataclass(frozen=True, kw_only=True)
class Found:
    """How one attack did on one kind of publication."""

    attack: str  # "program", "likeliest", "estimate", "nearest", or EXPOSED
    ratio: float  # outcomes / people
    d: int  # variants of a study
    digits: int | None = None  # of rounded statistics
    epsilon: float | None = None  # None: no privacy
    protection: str | None = None
    mu: float | None = None
    bound: float | None = None  # the largest share that any attack recovers
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
    found = list(_exact(genotypes, settings))
    found += _rounded(genotypes, settings)
    found += _released(genotypes, settings)
    found += _exposed(genotypes, settings)
    return Findings(people=name, settings=settings, found=tuple(found))


def draw_study(
    genotypes: Genotypes, settings: Settings, ratio: float, seed: int, *, d: int | None = None
) -> Split:
    """Draw variants, members and outcomes; these have nothing to do with the genotypes.

    So whatever is recovered comes from the publication.
    """
    rng = np.random.default_rng(seed)
    features = pruned(genotypes, d or settings.d, rng).astype(np.float64)
    l = max(1, round(ratio * settings.n))
    outcomes = rng.standard_normal((len(features), l))
    return split(People(features=features, outcomes=outcomes), settings.n, rng)


def plan_for(study: Split, epsilon: float, protection: str, *, single: bool = False) -> Plan:
    """Plan a release of the members, δ = 1/n².

    Bounds are read off the panel, and under `features` those of the public outcomes off the outcomes.
    A single variant lies in 0 to 2 and is released without an intercept: then a change from 0 to 2 of
    the person with the longest outcomes moves the release by mu, as far as any change may.
    """
    members = study.members
    features, outcomes = study.bounds()
    if protection == "features":
        longest = np.linalg.norm(members.outcomes, axis=1).max()
        outcomes = primo.Bounds(norm=float(longest))
    if single:
        features = primo.Bounds(norm=1.0, centre=np.ones(1))
    return make_plan(
        ReleaseSettings(
            epsilon=epsilon,
            delta=1 / len(members) ** 2,
            protection=protection,
            feature_bounds=features,
            outcome_bounds=outcomes,
            fit_intercept=not single,
        ),
        n=len(members),
        d=1 if single else members.features.shape[1],
        l=members.outcomes.shape[1],
    )


def _exact(genotypes: Genotypes, settings: Settings) -> Iterator[Found]:
    """Attack unrounded summary statistics, over the number of outcomes."""
    for place, ratio in enumerate(settings.ratios):
        study = draw_study(genotypes, settings, ratio, 1000 + place)
        known = _known(study)
        for name, solve in (("program", feasible), ("likeliest", likeliest)):
            tally = Tally()
            tally.solved(study, np.column_stack([solve(one) for one in known]))
            yield _found(settings, tally, attack=name, ratio=ratio, d=settings.d)
        wide = draw_study(genotypes, settings, ratio, 1500 + place, d=settings.many)
        for drawn, d in ((study, settings.d), (wide, settings.many)):
            tally = Tally()
            tally.believed(drawn, _exact_beliefs(drawn))
            yield _found(settings, tally, attack="estimate", ratio=ratio, d=d)


def _rounded(genotypes: Genotypes, settings: Settings) -> Iterator[Found]:
    """Attack summary statistics of a few digits with the stronger program."""
    for place, ratio in enumerate(settings.rounded_ratios):
        study = draw_study(genotypes, settings, ratio, 2000 + place)
        for digits in settings.digits:
            tally = Tally()
            tally.solved(study, np.column_stack([likeliest(o) for o in _known(study, digits)]))
            yield _found(
                settings, tally, attack="likeliest", ratio=ratio, d=settings.d, digits=digits
            )


def _released(genotypes: Genotypes, settings: Settings) -> Iterator[Found]:
    """Attack primo's releases of all variants together."""
    for d, repeats in ((settings.d, settings.repeats), (settings.many, settings.many_repeats)):
        for ratio in settings.release_ratios:
            studies = [
                draw_study(genotypes, settings, ratio, 3000 + i, d=d) for i in range(repeats)
            ]
            for protection, epsilon in product(settings.protections, settings.epsilons):
                plans = [plan_for(study, epsilon, protection) for study in studies]
                tally = Tally(plans[0].mu)
                for i, (study, plan) in enumerate(zip(studies, plans, strict=True)):
                    seen = publish(study.members, plan, _noise_seed(plan, i))
                    attack = ReleaseAttack.of(study.members, plan)
                    tally.believed(study, attack.beliefs(seen, study.panel.features))
                    if i == 0 and d == settings.d and ratio == settings.shown:
                        # Slow and no better, so it is run on one study only.
                        program = Tally(plan.mu)
                        program.solved(study, _nearest(attack, seen))
                        yield _found(settings, program, plan, attack="nearest", ratio=ratio, d=d)
                yield _found(settings, tally, plans[0], attack="estimate", ratio=ratio, d=d)


def _exposed(genotypes: Genotypes, settings: Settings) -> Iterator[Found]:
    """Attack releases of one variant each, which has the whole budget: alternatives, not a series."""
    ratio = max(settings.release_ratios)
    studies = [draw_study(genotypes, settings, ratio, 4000 + i) for i in range(settings.repeats)]
    for protection, epsilon in product(settings.protections, settings.epsilons):
        plans = [plan_for(study, epsilon, protection, single=True) for study in studies]
        tally = Tally(plans[0].mu)
        for i, (study, plan) in enumerate(zip(studies, plans, strict=True)):
            attack = ReleaseAttack.of(study.members, plan)
            for variant in range(settings.d):
                alone = _only(study, variant)
                seen = publish(alone.members, plan, _noise_seed(plan, i, variant))
                tally.believed(alone, attack.beliefs(seen, alone.panel.features))
        yield _found(settings, tally, plans[0], attack=EXPOSED, ratio=ratio, d=1)


def _found(
    settings: Settings,
    tally: Tally,
    plan: Plan | None = None,
    *,
    attack: str,
    ratio: float,
    d: int,
    digits: int | None = None,
) -> Found:
    return Found(
        attack=attack,
        ratio=ratio,
        d=d,
        digits=digits,
        epsilon=None if plan is None else plan.budget.epsilon,
        protection=None if plan is None else plan.protection.value,
        mu=tally.mu,
        bound=tally.bound,
        success=tally.success(resamples=settings.resamples),
    )


def _known(study: Split, digits: int | None = None) -> list[Equations]:
    """Publish every variant of the members as studies do, and return the equations that follow."""
    outcomes = study.members.outcomes
    return [
        equations(summarise(x, outcomes, digits=digits), outcomes) for x in study.members.features.T
    ]


def _exact_beliefs(study: Split) -> Beliefs:
    known = _known(study)
    posterior = Posterior.of(known[0].rows / _EXACT)  # the rows are the same for all variants
    values = np.column_stack([one.values for one in known])
    return posterior.beliefs(values / _EXACT, study.panel.features)


def _nearest(attack: ReleaseAttack, seen: Release) -> NDArray[np.float64]:
    rows = attack.posterior.rows
    return np.column_stack([nearest(rows, values) for values in attack.values(seen).T])


def _only(study: Split, variant: int) -> Split:
    """Return a study of one variant."""

    def narrow(people: People) -> People:
        return People(features=people.features[:, [variant]], outcomes=people.outcomes)

    return Split(
        members=narrow(study.members), others=narrow(study.others), panel=narrow(study.panel)
    )


def _noise_seed(plan: Plan, *places: int) -> int:
    """Return a seed of its own for every release: otherwise results would be correlated."""
    both = plan.protection.outcomes_private
    numbers = [round(1000 * plan.budget.epsilon), int(both), plan.d, plan.l, *places]
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
