"""Random stories of runs that are killed and resumed: no label of noise is ever drawn twice differently.

Between attempts rows, their order, the coefficients of a step or what was kept may change. An attempt
ends with the release, is killed, or is refused.
"""

import dataclasses
from collections import Counter
from unittest import mock

import numpy as np
import pytest

from factories import array_source, planned
from primo.errors import PrivacyError
from primo.privacy.bounds import Bounds
from primo.wall import mechanism, stages
from primo.wall.noise import RandomBits
from primo.workflow import rounds
from primo.workflow.pipeline import make_release

N, D, L = 120, 3, 2
STATED = (Bounds(norm=2.0), Bounds(norm=3.0))
FOUND = (Bounds(norm="auto", lower=-3.0, upper=3.0),) * 2


class Killed(BaseException):
    pass


class Story:
    """One paid release: its secret, what is on the disk, and everything that was ever drawn."""

    def __init__(self, rng, plan):
        self.rng, self.plan = rng, plan
        self.secret, self.marks, self.disk, self.drawn = rng.bytes(32), {}, {}, {}
        self.left = 0  # moments until the run is killed
        self.other_step = False

    def moment(self):
        self.left -= 1
        if self.left <= 0:
            raise Killed

    def commit(self, stage, digest):
        self.moment()
        if self.marks.setdefault(stage, digest) != digest:
            raise PrivacyError("other rows")
        self.moment()

    def load(self, name):
        self.moment()
        return self.disk.get(name)

    def save(self, name, content):
        self.moment()
        self.disk[name] = content
        self.moment()

    def add_noise(self, values, *, label, draw=mechanism.add_noise, **options):
        before = values.copy()
        draw(values, label=label, **options)
        self.drawn.setdefault(label, set()).add((before.tobytes(), values.tobytes()))
        self.moment()

    def next_step(self, plan, released, step=rounds.next_step):
        found = step(plan, released)
        size = 1e-3 * plan.outcomes.norm / plan.features.norm
        if self.other_step:
            size *= 1 + 1e-3 * self.rng.normal()
        return dataclasses.replace(found, coefficients=found.coefficients + size)

    def run(self, x, y):
        with (
            mock.patch.object(mechanism, "add_noise", self.add_noise),
            mock.patch.object(stages, "add_noise", self.add_noise),
            mock.patch.object(rounds, "next_step", self.next_step),
        ):
            bits = RandomBits.sealed(self.secret, commit=self.commit)
            make_release(array_source(x, y), self.plan, bits=bits, record=self, threads=1)


@pytest.mark.parametrize("bounds", [STATED, FOUND], ids=["stated", "found"])
@pytest.mark.parametrize("protection", ["features", "both", "outcomes"])
def test_one_draw_for_every_label(protection, bounds):
    rng = np.random.default_rng(0)
    plan = planned(
        n=N,
        d=D,
        l=L,
        epsilon=20.0,
        delta=1e-6,
        protection=protection,
        feature_bounds=bounds[0],
        outcome_bounds=bounds[1],
        rounds=3,
    )
    x = rng.normal(size=(N, D))
    y = x @ rng.normal(size=(D, L)) + 0.1 * rng.normal(size=(N, L))
    ends = Counter()
    for _ in range(8):
        story = Story(rng, plan)
        for _ in range(5):
            story.left = rng.integers(1, 60) if rng.random() < 0.7 else 10**9
            change = rng.choice(
                ["none", "order", "row", "step", "lost"], p=[0.4, 0.1, 0.2, 0.2, 0.1]
            )
            order = rng.permutation(N) if change == "order" else np.arange(N)
            sign = np.ones((N, 1))
            sign[rng.integers(N)] = -1.0 if change == "row" else 1.0
            if change == "lost" and story.disk:
                del story.disk[rng.choice(sorted(story.disk))]
            story.other_step = change == "step"
            rows = (x * sign, y) if protection == "features" else (x, y * sign)
            try:
                story.run(*(block[order] for block in rows))
                ends["released"] += 1
            except Killed:
                ends["killed"] += 1
            except PrivacyError:
                ends["refused"] += 1
        assert all(len(draws) == 1 for draws in story.drawn.values())
    assert min(ends["released"], ends["killed"], ends["refused"]) > 0
