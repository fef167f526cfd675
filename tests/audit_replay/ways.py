"""Every way to release: protection × mechanism × intercept, down from settings and a source.

The rows are two small arrays. One of them, `PLACE`, is replaced to make a neighbour.
"""

import contextlib
import dataclasses
import functools
import math
from itertools import product
from unittest import mock

import numpy as np
from scipy.optimize import minimize

from factories import array_source
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.wall.noise import RandomBits
from primo.workflow.fit import Engine, prepare, prepare_extension, release_rows

N, D, L = 5, 2, 2
X_NORM, Y_NORM = 4.0, 3.0
SAMPLED, SEED = 3, 7
EPSILON, DELTA = 2.0, 1e-6
BLOCKS = ("none", "one block", "blocks")
PUBLIC = {"features": "outcomes", "outcomes": "features", "both": None}
ROUNDS = 4  # the first has a larger share than the others
BLOCK_NORMS = [3.4, 3.0]  # their squares add up to more than that of X_NORM
#: Bounds with which columns are counted; rows summed; rows cut to ranges summed.
PLAIN = {"norm": "auto"}
AUTO = {
    "auto norms": PLAIN,
    "extension, auto norms": PLAIN,
    "reference, auto norms": PLAIN,
    "centres, auto norms": PLAIN | {"centre": 0.5},
    "rounds, auto norms": PLAIN,
    "ranges, auto norms": PLAIN | {"lower": -8, "upper": 7},
    "perturbed, auto norms": PLAIN,
}
# A row of the secret sample, known here because the seed is.
PLACE = int(np.flatnonzero(RandomBits.seeded(SEED).subset(N, SAMPLED, label="sample"))[0])


@dataclasses.dataclass(frozen=True)
class Way:
    protection: str
    mechanism: str = "gauss"
    intercept: bool = True
    moments: str = "full"

    def __str__(self):
        return "-".join(
            [self.protection, self.mechanism, self.moments] + ["intercept"] * self.intercept
        )

    @property
    def d(self):
        return N + 1 if self.mechanism.endswith("row space") else D

    @property
    def settings(self):
        changes = {
            "projection": {"association": "projection"},
            "perturbed": {"association": "perturbed"},
            "perturbed row space": {"association": "perturbed"},
            "perturbed blocks": {
                "association": "perturbed",
                "covariance": "blocks",
                "blocks": [0, 1, D],
            },
            "sampled": {"covariance_rows": SAMPLED},
            "rounds": {"rounds": ROUNDS},
            "none": {"covariance": "none"},
            "one block": {"covariance": "blocks", "blocks": [0, D]},
            "blocks": {"covariance": "blocks", "blocks": [0, 1, D], "block_norms": BLOCK_NORMS},
            "reference": {"public_covariance": 0.5 * np.eye(D), "public_mean": np.zeros(D)},
        }
        auto = AUTO.get(self.mechanism)
        return Settings(
            epsilon=EPSILON,
            delta=DELTA,
            protection=self.protection,
            feature_bounds=Bounds(**auto or {"norm": X_NORM}),
            outcome_bounds=Bounds(**auto or {"norm": Y_NORM}),
            fit_intercept=self.intercept,
            outcome_moments=self.moments,
            **changes.get(self.mechanism.removesuffix(", auto norms"), {}),
        )

    def rows(self, seed=0):
        rng = np.random.default_rng(seed)
        return rng.normal(size=(N, self.d)), rng.normal(size=(N, L))

    def other_rows(self):
        """Rows that have what is public in common with the usual ones, and nothing else."""
        (x, y), (other_x, other_y) = self.rows(), self.rows(seed=1)
        return (
            x if self.protection == "outcomes" else other_x,
            y if self.protection == "features" else other_y,
        )

    @functools.cache  # noqa: B019 - a handful of ways, each the same plan whatever the rows
    def prepared(self):
        """Plan once; an extension extends a release of the usual rows."""
        with counting():
            return self._prepared()

    def plan_of(self, x, y):
        """Plan for other rows."""
        with counting():
            return prepare(table(x, y), self.settings).plan

    def _prepared(self):
        source = table(*self.rows())
        if "extension" not in self.mechanism:
            return prepare(source, self.settings)
        earlier = table(*self.rows(), outcome="earlier")
        with near_guess():  # the norm of the features is the extension's, too
            first = release_rows(
                earlier, prepare(earlier, self.settings), bits=RandomBits.seeded(1)
            )
        return prepare_extension(
            first,
            source,
            protection=self.protection,
            epsilon=EPSILON,
            delta=DELTA,
            outcome_bounds=Bounds(norm="auto" if self.mechanism in AUTO else Y_NORM),
        )

    @property
    def plan(self):
        return self.prepared().plan

    @property
    def within_reach(self):
        """How much of mu² the worst neighbours reach at least, by mathematics and for d = 2.

        All of it without an intercept. The constant, which both rows of a pair share, keeps them from
        being opposite: cos(x, x′) is -1/3 at the least. With public outcomes and no covariance to
        pay for, that is all there is, 2q(1 + 1/3) of 4q.
        """
        if not self.intercept:
            return 0.99
        if self.mechanism in BLOCKS:  # the constant is an outcome, and only features can turn round
            return 0.84 if self.protection == "outcomes" else 0.99
        bare = self.mechanism.startswith(("reference", "extension"))
        return 0.66 if self.protection == "features" and bare else 0.9

    def fit(self, x, y, **options):
        """Return a fit to be recorded; what comes before it is done already."""
        ready = self.prepared()
        given = {"bits": RandomBits.seeded(SEED), "engine": Engine(threads=1)} | options
        return lambda: release_rows(table(x, y), ready, **given)


@contextlib.contextmanager
def counting():
    """Have bounds found from rows that are too few for that."""
    yes = {"return_value": True}
    with (
        mock.patch("primo.planning.searches.speaks", **yes),
        mock.patch("primo.planning.searches.columns_speak", **yes),
        mock.patch("primo.planning.searches.centring_pays", **yes),
    ):
        yield


@contextlib.contextmanager
def near_guess():
    """Have lengths that five rows do not tell guessed near theirs.

    The guess is made from released counts, which are all noise here. Rows shortened to lengths far
    below theirs, or far below a step of the grid beside them, would show nothing of what comes after.
    """
    near = {"return_value": (0.5, 2.0)}
    with (
        mock.patch("primo.released.found_norms.guessed_lengths", **near),
        mock.patch("primo.released.found_centres.guessed_lengths", **near),
    ):
        yield


def every_way():
    """Yield all that make sense; the diagonal of YᵀY and no intercept once for each protection."""
    for protection in PUBLIC:
        yield Way(protection)
        yield Way(protection, intercept=False)
        yield Way(protection, moments="diagonal")
        yield Way(protection, "extension")
        yield Way(protection, "auto norms")
        if protection != "features":
            yield Way(protection, "extension, auto norms")
        if protection != "both":
            yield Way(protection, "projection")
    for protection, intercept in product(("both", "features"), (True, False)):
        yield Way(protection, "reference", intercept)
    for protection in PUBLIC:
        yield Way(protection, "blocks")
    yield Way("both", "none")
    yield Way("both", "one block", intercept=False, moments="diagonal")
    yield Way("both", "rounds")
    yield Way("both", "rounds", intercept=False, moments="diagonal")
    yield Way("outcomes", "rounds")
    yield Way("features", "rounds")
    yield Way("features", "rounds", intercept=False, moments="diagonal")
    yield Way("both", "rounds, auto norms")
    yield Way("features", "rounds, auto norms")
    yield Way("both", "reference, auto norms")
    yield Way("both", "auto norms", intercept=False)
    yield Way("both", "centres, auto norms")
    yield Way("outcomes", "centres, auto norms")
    yield Way("both", "ranges, auto norms")
    for intercept in (True, False):
        yield Way("both", "sampled", intercept)
        yield Way("outcomes", "row space", intercept)
        yield Way("outcomes", "perturbed", intercept)
    yield Way("outcomes", "perturbed", moments="diagonal")
    yield Way("outcomes", "perturbed row space")
    yield Way("outcomes", "perturbed blocks")
    yield Way("outcomes", "perturbed, auto norms")


def table(x, y, outcome="y"):
    return array_source(x, y, outcome=outcome)


def replaced(rows, row, place=PLACE):
    rows = rows.copy()
    rows[place] = row
    return rows


class Neighbours:
    """Pairs of data sets that differ in what is private of one row, packed in a vector for a search."""

    def __init__(self, way):
        self.way = way
        self.sizes = [way.d, L]
        if way.protection != "outcomes":
            self.sizes.append(way.d)
        if way.protection != "features":
            self.sizes.append(L)

    def pair(self, v):
        """Return ((x, y), (x′, y′)); whatever is public is the same in both."""
        parts = np.split(v, np.cumsum(self.sizes)[:-1])
        x, y = parts[:2]
        xx = x if self.way.protection == "outcomes" else parts[2]
        yy = y if self.way.protection == "features" else parts[-1]
        return (x, y), (xx, yy)

    def recordings(self, replay, v):
        """Record both, dry; a search moves one row at a time, so the other one is remembered."""
        return [self._recorded(replay, a.tobytes(), b.tobytes()) for a, b in self.pair(v)]

    @functools.lru_cache(maxsize=8)  # noqa: B019 - as long as the search
    def _recorded(self, replay, a, b):
        x, y = self.way.rows()
        features, outcomes = np.frombuffer(a), np.frombuffer(b)
        fit = self.way.fit(replaced(x, features), replaced(y, outcomes))
        return replay.record(fit, dry=True)

    def distance(self, replay, v):
        """Return the squared distance of the pair, in units of its noise."""
        return replay.squared_distance(*self.recordings(replay, v))


@functools.cache
def worst(replay, way, starts=4):
    """Search for neighbours as far apart as can be, by climbing from random ones; return the vector."""
    neighbours, rng = Neighbours(way), np.random.default_rng(3)

    def loss(v):
        return -float(neighbours.distance(replay, v)) / way.plan.mu**2

    def at_the_top(intermediate_result):
        nonlocal before
        if before - intermediate_result.fun < 1e-4:
            raise StopIteration
        before = intermediate_result.fun

    best = None
    for _ in range(starts):
        before = math.inf
        start = rng.normal(size=sum(neighbours.sizes)) * rng.uniform(0.5, 3) * X_NORM / math.sqrt(D)
        # Rows are rounded to a grid of about 1e-6: smaller steps would see a staircase.
        steps = {"eps": 3e-4, "maxiter": 20}
        found = minimize(loss, start, method="BFGS", options=steps, callback=at_the_top)
        if best is None or found.fun < best.fun:
            best = found
        if best.fun < -way.within_reach:
            break
    return best.x
