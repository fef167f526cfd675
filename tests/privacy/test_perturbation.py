"""Noise on the outcomes themselves costs what the worst neighbours say, and no less is charged."""

import math
from fractions import Fraction

import numpy as np
import pytest

from primo.errors import InputError, PrivacyError
from primo.planning.association import with_association
from primo.planning.guarantee import check_plan
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.calibration import lattice_margin
from primo.privacy.perturbation import Perturbation, perturbation

BOUNDS = {"feature_bounds": 1.0, "outcome_bounds": 2.0}


def plan(*, n=500, d=3, l=4, epsilon=2.0, association="perturbed", **changes):
    settings = Settings(
        epsilon=epsilon,
        delta=1e-6,
        protection="outcomes",
        association=association,
        **BOUNDS | changes,
    )
    return make_plan(settings, n=n, d=d, l=l)


@pytest.mark.parametrize("mu", [1e-4, 0.3, 1.0, 7.0, 40.0])
@pytest.mark.parametrize("radius_squared", [2**24, 2**40 - 12345, 3 * 2**38])
def test_all_of_mu_is_spent_and_no_more(mu, radius_squared):
    found = perturbation(mu=mu, radius_squared=radius_squared)
    spent = found.spent(radius_squared)
    assert spent <= Fraction(mu) ** 2
    assert spent > Fraction(mu) ** 2 * Fraction(999, 1000)
    # The formula once more, in floats: a distance of twice the norm over the scale of the noise.
    assert 2 * math.sqrt(radius_squared) / found.sigma == pytest.approx(math.sqrt(spent))


def test_no_neighbours_are_further_apart_and_some_are_that_far():
    """A search over integer rows inside the ball, in exact arithmetic."""
    radius_squared = 10**8
    found = perturbation(mu=0.7, radius_squared=radius_squared)
    rng = np.random.default_rng(0)
    reached = Fraction(0)
    for _ in range(3000):
        y, yy = rng.normal(size=(2, 3))
        if rng.random() < 0.5:
            yy = -y + 0.05 * rng.normal(size=3)
        rows = [
            np.trunc(v / np.linalg.norm(v) * rng.uniform(0.9, 1) * 1e4).astype(int) for v in (y, yy)
        ]
        assert all(int(row @ row) <= radius_squared for row in rows)
        moved = int(((rows[0] - rows[1]) ** 2).sum()) * found.unit**2
        reached = max(reached, Fraction(moved, 2**found.variance_bits))
    assert Fraction(95, 100) * found.spent(radius_squared) < reached <= found.spent(radius_squared)


def test_a_budget_that_does_not_fit_is_refused():
    for mu in (1e-12, 1e12):
        with pytest.raises(InputError, match="too small or too large"):
            perturbation(mu=mu, radius_squared=2**40)


@pytest.mark.parametrize("d", [3, 5000])
def test_the_noise_does_not_depend_on_the_features(d):
    made = plan(d=d)
    check_plan(made)
    assert made.mu == plan().mu
    assert 2 * made.outcomes.norm / made.row_sigma == pytest.approx(made.mu, rel=1e-6)
    assert made.margin == lattice_margin(made.n * made.l, 58)


def test_the_plan_with_another_association_has_the_noise_of_that_association():
    gauss = plan(association="gauss")
    twin = with_association(gauss, "perturbed")
    assert twin.row_sigma == pytest.approx(plan().row_sigma, rel=1e-6)
    assert with_association(twin, "gauss") == gauss


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"protection": "both"}, "puts noise on the outcomes alone"),
        ({"protection": "features"}, "puts noise on the outcomes alone"),
        ({"calibration": "paper"}, "puts no noise on the outcomes themselves"),
        ({"rounds": 3}, "is not possible here"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, words):
    settings = {"protection": "outcomes", "association": "perturbed", **BOUNDS, **changes}
    with pytest.raises(InputError, match=words):
        make_plan(Settings(epsilon=1.0, delta=1e-6, **settings), n=100, d=2, l=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"perturbation": None},
        {"perturbation": Perturbation(unit=plan().perturbation.unit * 2)},
        {"perturbation": Perturbation(unit=plan().perturbation.unit, variance_bits=94)},
        {"association": "gauss"},
        {"mu": plan().mu / 2},
        {"margin": plan().margin / 4},
    ],
)
def test_a_plan_that_states_another_guarantee_is_refused(changes):
    import dataclasses

    with pytest.raises(PrivacyError):
        check_plan(dataclasses.replace(plan(), **changes))
