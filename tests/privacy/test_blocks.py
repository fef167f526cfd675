"""Covariance inside blocks: the theorem against a search for neighbours that beat it, and its grid."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from primo.errors import InputError
from primo.privacy.blocks import BlockGrid, block_grid, numbers_inside

WIDTH = 2  # features of a block: two directions are all that a pair of vectors needs


def pulled(x, norms):
    """Shorten every block to its norm, then the whole to 1."""
    blocks = x.reshape(len(norms), WIDTH)
    lengths = np.linalg.norm(blocks, axis=1)
    blocks = blocks * np.minimum(1, norms / np.maximum(lengths, 1e-300))[:, None]
    return blocks / max(1.0, np.linalg.norm(blocks))


def distance(v, norms, factor, *, protection="both", diagonal=False):
    """Squared distance of two rows in units of noise: 1 of the association, factor·b_B² of a block."""
    m = WIDTH * len(norms)
    x, xx, y, yy = np.split(v, [m, 2 * m, 2 * m + 2])
    x, xx = pulled(x, norms), pulled(xx, norms)
    y, yy = (u / max(1.0, np.linalg.norm(u)) for u in (y, yy))
    xx = x if protection == "outcomes" else xx
    yy = y if protection == "features" else yy
    inside = sum(
        ((np.outer(a, a) - np.outer(b, b)) ** 2).sum() / (factor * norm**2)
        for a, b, norm in zip(x, xx, norms, strict=True)
    )
    association = np.outer(x, y) - np.outer(xx, yy)
    outcome = y**2 - yy**2 if diagonal else np.outer(y, y) - np.outer(yy, yy)
    return inside + (association**2).sum() + (outcome**2).sum() / 4


def furthest(norms, factor, *, tries, seed=5, **options):
    """The largest squared distance that a search finds, from random neighbours uphill."""
    rng, best = np.random.default_rng(seed), 0.0
    for _ in range(tries):
        m = WIDTH * len(norms)
        start = rng.normal(size=2 * m + 4) * rng.uniform(0.2, 2)
        kind = rng.integers(3)
        if kind == 0:  # some blocks empty in one of the rows
            start[: 2 * m] *= rng.random(2 * m) < 0.6
        elif kind == 1:  # the same directions, other lengths, outcomes of the other sign
            start[m : 2 * m] = start[:m] * np.repeat(rng.uniform(0, 2, len(norms)), WIDTH)
            start[2 * m + 2 :] = -start[2 * m : 2 * m + 2]
        found = minimize(lambda v: -distance(v, norms, factor, **options), start)
        best = max(best, -found.fun)
    return best


def furthest_aligned(norms, factor, *, tries, seed=6):
    """The same for rows whose blocks have the same directions, with opposite outcomes of full length.

    Only the blocks' lengths are left, and a search with constraints finds their best.
    """
    rng, m = np.random.default_rng(seed), len(norms)

    def less(v):
        s, t = v[:m], v[m:]
        return -(((s**2 - t**2) ** 2 / (factor * norms**2)).sum() + ((s + t) ** 2).sum())

    within = [
        {"type": "ineq", "fun": lambda v, part=part: 1 - (v[part] ** 2).sum()}
        for part in (slice(m), slice(m, None))
    ]
    ends = [(0, norm) for norm in (*norms, *norms)]
    best = 0.0
    for _ in range(tries):
        start = rng.uniform(0, 1, 2 * m) * np.tile(norms, 2)
        v = minimize(less, start, method="SLSQP", bounds=ends, constraints=within).x
        s, t = v[:m], v[m:]
        inside = np.concatenate([s / max(1, np.linalg.norm(s)), t / max(1, np.linalg.norm(t))])
        best = max(best, -less(np.clip(inside, 0, np.tile(norms, 2))))
    return best


NORMS = {
    "one block": [1.0],
    "squares add up to one": [0.6, 0.8],
    "two that may trade": [0.75**0.5] * 2,
    "three, each as long as the row": [1.0] * 3,
    "four of unequal size": [0.9, 0.5, 0.5, 0.2],
    "five short of the row": [0.3] * 5,
    "six that may trade": [0.6] * 6,
}


@pytest.mark.parametrize("name", NORMS)
def test_no_neighbours_beat_the_theorem(name):
    """With σ_B² = 4·b_B² and σ₃² = 4 the squared cost is 4, that of the association alone."""
    norms = np.array(NORMS[name])
    best = max(furthest(norms, 4.0, tries=6), furthest_aligned(norms, 4.0, tries=10))
    assert best <= 4 * (1 + 1e-9)
    if (norms**2).sum() >= 1:
        assert best >= 4 * (1 - 1e-4)  # and it is no larger than it has to be


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("protection", ["features", "outcomes"])
def test_protecting_one_side_costs_no_more(protection, diagonal):
    best = furthest(
        np.array([0.8, 0.7, 0.4]), 4.0, tries=4, protection=protection, diagonal=diagonal
    )
    assert best <= 4 * (1 + 1e-9)


@pytest.mark.parametrize("norms", [[0.75**0.5] * 2, [0.6] * 6, [0.9, 0.8, 0.5]])
def test_half_the_variance_is_beaten_where_blocks_can_trade_length(norms):
    """σ_B² = 2·b_B² is enough where the squares of the norms add up to that of the row, not here."""
    assert furthest_aligned(np.array(norms), 2.0, tries=10) > 4 * (1 + 5e-3)
    assert furthest(np.array(norms), 2.0, tries=8) > 4 * (1 + 1e-4)


def test_half_the_variance_is_enough_where_the_squares_add_up():
    norms = np.array([0.6, 0.8])
    best = max(furthest(norms, 2.0, tries=6), furthest_aligned(norms, 2.0, tries=10))
    assert best <= 4 * (1 + 1e-9)


def test_random_rows_anywhere_never_beat_the_theorem():
    rng = np.random.default_rng(3)
    for _ in range(4000):
        norms = rng.uniform(0.05, 1, size=rng.integers(1, 7))
        v = rng.normal(size=2 * WIDTH * len(norms) + 4) * rng.uniform(0, 2)
        assert distance(v, norms, 4.0) <= 4 * (1 + 1e-12)


@pytest.mark.parametrize("n", [1, 1000, 500_000, 2**28])
@pytest.mark.parametrize("mu", [0.02, 1.0, 9.0])
def test_the_grid_meets_the_conditions_and_spends_mu(n, mu):
    shares = np.array([1.0, 0.37, 1e-4, 1e-5])
    grid, blocks = block_grid(mu=mu, n=n, starts=np.array([0, 5, 6, 8, 9]), shares=shares)
    assert blocks.covers(9)
    assert blocks.holds(grid, n)
    assert Fraction(mu) ** 2 * (1 - Fraction(1, 10**6)) < 4 * grid.q <= Fraction(mu) ** 2
    # σ_B = 4·b_B·b_x/μ, as close as whole numbers allow; at most √2 above it for the largest n.
    expected = 4 * np.sqrt(blocks.radius_squared * float(grid.feature_radius_squared)) / mu
    assert (blocks.steps_sigma >= expected * (1 - 1e-9)).all()
    assert (blocks.steps_sigma <= expected * (1.02 if n <= 1000 else 1.42)).all()
    assert numbers_inside(blocks.starts) == 15 + 1 + 3 + 1


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("variance_bits", -1),
        ("unit", 700),
        ("radius_squared", 2**36),
    ],
)
def test_noise_that_is_too_small_for_a_block_is_noticed(name, change):
    grid, blocks = block_grid(
        mu=1.0, n=1000, starts=np.array([0, 2, 4]), shares=np.array([0.5, 0.5])
    )
    worse = getattr(blocks, name).copy()
    worse[1] += change
    assert blocks.holds(grid, 1000)
    assert not dataclasses.replace(blocks, **{name: worse}).holds(grid, 1000)


def test_outcome_noise_that_is_too_small_is_noticed():
    grid, blocks = block_grid(mu=1.0, n=1000, starts=np.array([0, 2]), shares=np.ones(1))
    worse = dataclasses.replace(grid, outcome_variance_bits=grid.outcome_variance_bits - 1)
    assert not blocks.holds(worse, 1000)


def test_blocks_that_do_not_hold_every_feature_once_are_noticed():
    _, blocks = block_grid(mu=1.0, n=10, starts=np.array([0, 2, 4]), shares=np.ones(2))
    for starts in ([0, 2, 5], [0, 4, 4], [1, 2, 4], [0, 4]):
        changed = BlockGrid(**{**vars(blocks), "starts": np.array(starts)})
        assert not changed.covers(4)


def test_a_budget_that_integers_cannot_hold_is_refused():
    with pytest.raises(InputError, match="64-bit integers"):
        block_grid(mu=1e-9, n=2**40, starts=np.array([0, 1]), shares=np.ones(1))


def test_borders_whose_differences_wrap_around_do_not_cover() -> None:
    starts = np.array([0, 2**62, -(2**63), -(2**62), 6], dtype=np.int64)
    ones = np.ones(4, dtype=np.int64)
    forged = BlockGrid(starts=starts, radius_squared=ones, unit=ones, variance_bits=ones * 60)
    assert not forged.covers(6)
