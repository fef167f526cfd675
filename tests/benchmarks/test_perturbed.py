"""The comparison of perturbed outcomes says what the mathematics says; seeded."""

import numpy as np

from benchmarks.perturbed import Person, crossing, effects_kept


def test_noise_of_single_effects_crosses_where_features_are_as_many_as_rows():
    few, many = (crossing(60, d, epsilon=20.0, draws=1) for d in (10, 240))
    assert few["gauss"][1] < few["perturbed"][1]
    assert many["perturbed"][1] < many["gauss"][1] / 1.5
    # The noise of perturbed outcomes does not depend on how many features there are.
    assert many["perturbed"][1] / few["perturbed"][1] < 1.5


def test_a_prior_that_knows_nearly_all_helps_and_costs_what_it_takes():
    rng = np.random.default_rng(0)
    known = rng.normal(size=(1500, 2))
    x = rng.normal(size=(1500, 40))
    y = 3 * known.sum(axis=1) + x @ rng.normal(size=40) * 0.3
    person = Person(name="", features=x, predictors=known, outcome=(y - y.mean()) / y.std())
    plain, nothing = effects_kept(person, epsilon=3.0, share=0.0, draws=4)
    better, explained = effects_kept(person, epsilon=3.0, share=0.1, draws=4)
    assert abs(nothing) < 1e-9
    assert explained > 0.7
    assert better > plain + 0.1
