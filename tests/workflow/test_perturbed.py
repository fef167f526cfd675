"""Noise on the outcomes themselves, from rows to coefficients and files."""

import dataclasses
from unittest import mock

import numpy as np
import pytest

import primo
from factories import array_source
from primo.errors import InputError, PrivacyError
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.released.marginal import summary_statistics
from primo.released.release_file import load_release, save_release
from primo.released.uncertainty import coefficient_intervals
from primo.rows.moments import fold
from primo.rows.outcome_rows import OutcomeRows, fold_outcome_rows
from primo.variants import Variants
from primo.wall import mechanism
from primo.wall.noise import RandomBits
from primo.workflow.fit import Engine, prepare, prepare_extension, release_rows
from primo.workflow.pipeline import make_release

N, D, L = 400, 3, 2


def rows(n=N, d=D, l=L, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, x @ rng.normal(size=(d, l)) + rng.normal(size=(n, l))


def released(x, y, *, epsilon=3.0, seed=1, engine=None, norm=4.0, **changes):
    source = array_source(x, y)
    settings = Settings(
        epsilon=epsilon,
        delta=1e-6,
        protection="outcomes",
        association="perturbed",
        outcome_bounds=Bounds(norm=norm),
        **changes,
    )
    bits = RandomBits.seeded(seed)
    return release_rows(source, prepare(source, settings), bits=bits, engine=engine)


def noise_of(release, x, y):
    """Return the noise, in its own standard deviations, of outcomes within the bounds."""
    plan = release.plan
    noisy = primo.perturbed_outcomes(release, x)
    return (noisy - y) / plan.outcomes.scale / plan.row_sigma


def test_every_entry_has_noise_of_its_own_and_of_the_stated_scale():
    _, y = rows(n=4000, l=5)
    y /= 10  # nothing is shortened
    x = np.arange(4000.0)[:, None]
    noise = noise_of(released(x, y, fit_intercept=False), x, y)
    # 20,000 normals: a standard deviation that is off by 5 % fails, and one that is right does not.
    assert noise.std() == pytest.approx(1, abs=0.03)
    assert abs(noise.mean()) < 0.04
    between = np.corrcoef(noise.T) - np.eye(5)
    assert np.abs(between).max() < 0.09  # six of its standard deviations
    along = np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]
    assert abs(along) < 0.05


def test_moments_are_those_of_the_noisy_outcomes():
    x, y = rows()
    release = released(x, y)
    plan = release.plan
    noisy = (primo.perturbed_outcomes(release, x) - plan.outcomes.centre) / plan.outcomes.scale
    x = (x - plan.features.centre) / plan.features.scale
    shortened = np.minimum(1, plan.features.norm / np.linalg.norm(x, axis=1))[:, None] * x
    whole = np.column_stack([shortened, np.full(N, plan.constant)])
    np.testing.assert_allclose(release.association, whole.T @ noisy, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(release.covariance, whole.T @ whole, rtol=1e-4, atol=1e-3)
    debiased = noisy.T @ noisy - N * plan.row_sigma**2 * np.eye(L)
    np.testing.assert_allclose(release.outcome_moments, debiased, rtol=1e-9)
    diagonal = released(x, y, outcome_moments="diagonal")
    np.testing.assert_allclose(diagonal.outcome_moments, np.diag(debiased), rtol=1e-9)


def test_the_covariance_is_that_of_other_mechanisms():
    x, y = rows()
    source = array_source(x, y)
    settings = {"epsilon": 3.0, "delta": 1e-6, "protection": "outcomes", "outcome_bounds": 4.0}
    gauss = release_rows(source, prepare(source, Settings(**settings)), bits=RandomBits.seeded(1))
    np.testing.assert_allclose(released(x, y).covariance, gauss.covariance, rtol=1e-4, atol=1e-3)


def test_rows_are_functions_of_themselves():
    x, y = rows()
    y[7] = 1e300
    plan = prepare(
        array_source(x, y),
        Settings(
            epsilon=1.0,
            delta=1e-6,
            protection="outcomes",
            association="perturbed",
            outcome_bounds=Bounds(norm=4.0),
        ),
    ).plan
    whole = fold_outcome_rows(array_source(x, y), plan).outcomes
    alone = np.vstack(
        [fold_outcome_rows(array_source(x[[i]], y[[i]]), plan).outcomes for i in range(20)]
    )
    assert np.array_equal(whole[:20], alone)
    assert ((whole.astype(object) ** 2).sum(axis=1) <= plan.grid.outcome_radius_squared).all()
    parts = [fold_outcome_rows(array_source(x[s], y[s]), plan) for s in (slice(150), slice(150, N))]
    assert np.array_equal((parts[0] + parts[1]).outcomes, whole)
    assert "private" in repr(parts[0])
    assert not any(character.isdigit() for character in repr(parts[0]).split("l=")[1][1:])


@pytest.mark.parametrize("threads", [1, 3])
def test_the_same_bits_however_it_is_read(threads):
    x, y = rows(n=700, d=900)
    one = released(x, y, engine=Engine(threads=1))
    other = released(x, y, engine=Engine(threads=threads))
    assert np.array_equal(one.perturbed, other.perturbed)
    assert np.array_equal(one.association, other.association)


def test_moments_and_outcomes_are_not_confused():
    x, y = rows()
    plan = released(x, y).plan
    source = array_source(x, y)
    with pytest.raises(PrivacyError, match="for the outcomes, not for moments"):
        mechanism.release(
            fold(source, plan), plan, feature_names=(), outcome_names=(), bits=RandomBits.seeded(1)
        )
    collected = fold_outcome_rows(source, plan)
    gauss = dataclasses.replace(plan, association="gauss", perturbation=None)
    with pytest.raises(PrivacyError, match="no noise for the outcomes"):
        mechanism.release_outcome_rows(collected, gauss, bits=RandomBits.seeded(1))
    short = OutcomeRows(rows=N - 1, outcomes=collected.outcomes[1:])
    with pytest.raises(InputError, match="do not belong"):
        mechanism.release_outcome_rows(short, plan, bits=RandomBits.seeded(1))


def test_a_release_survives_its_file(tmp_path):
    x, y = rows()
    release = released(x, y)
    again = load_release(save_release(release, tmp_path / "release.npz"))
    assert np.array_equal(again.perturbed, release.perturbed)
    assert again.plan.perturbation == release.plan.perturbation
    np.testing.assert_allclose(
        again.coefficients().slopes, release.coefficients().slopes, rtol=1e-9
    )
    assert "each with noise of its own" in again.statement().replace("\n              ", " ")


def test_an_edited_file_is_refused(tmp_path):
    x, y = rows()
    path = save_release(released(x, y), tmp_path / "release.npz")
    with np.load(path) as stored:
        arrays = dict(stored)
    for damaged in (
        {name: array for name, array in arrays.items() if name != "perturbed"},
        arrays | {"perturbed": arrays["perturbed"][1:]},
        arrays | {"perturbed": arrays["perturbed"].astype(np.float64)},
    ):
        np.savez(path, **damaged)
        with pytest.raises(InputError, match="outcomes with noise do not fit"):
            load_release(path)


@pytest.mark.parametrize("d", [5, 500])
def test_least_squares_is_that_of_the_noisy_outcomes(d):
    x, y = rows(d=d)
    y /= np.linalg.norm(y, axis=1).max()
    release = released(x, y, epsilon=100.0, norm=1.0)
    noisy = primo.perturbed_outcomes(release, x)
    found = release.coefficients(estimator="ridge").slopes
    centred = x - x.mean(axis=0)
    if d < N:  # least squares on the noisy outcomes
        truth = np.linalg.lstsq(centred, noisy - noisy.mean(axis=0), rcond=None)[0]
        np.testing.assert_allclose(found, truth, rtol=1e-3, atol=1e-4 * np.abs(truth).max())
    else:  # which are met
        fitted = centred @ found
        np.testing.assert_allclose(
            fitted, noisy - noisy.mean(axis=0), atol=1e-3 * np.abs(fitted).max()
        )


def test_a_release_with_more_features_than_rows_is_estimated_again_from_its_file(tmp_path):
    x, y = rows(d=2 * N)
    release = released(x, y, epsilon=50.0)
    assert release.covariance.shape == (0, 0)
    again = load_release(save_release(release, tmp_path / "wide.npz"))
    with pytest.raises(InputError, match="with_public_features"):
        again.coefficients()
    attached = primo.with_public_features(again, x)
    np.testing.assert_allclose(
        attached.coefficients().slopes, release.coefficients().slopes, rtol=1e-6, atol=1e-12
    )


def test_later_outcomes_extend_it():
    x, y = rows()
    first = released(x, y)
    later = array_source(x, rows(seed=5)[1], outcome="z")
    ready = prepare_extension(
        first, later, protection="outcomes", epsilon=2.0, delta=1e-6, outcome_bounds=4.0
    )
    assert ready.plan.association == "gauss"
    again = release_rows(later, ready, bits=RandomBits.seeded(3))
    assert again.plan.total_mu > first.plan.mu
    assert again.coefficients().slopes.shape == (D, L)


def test_errors_of_standardised_coefficients_are_normal():
    """z² of the errors has mean 1: noise that were counted twice, or not at all, would show."""
    squares, marginal = [], []
    variants = Variants(
        names=("x0", "x1", "x2"),
        chromosome=("1",) * 3,
        position=np.arange(3) + 1,
        counted=("A",) * 3,
        other=("C",) * 3,
    )
    for seed in range(60):
        x, y = rows(n=1000, seed=seed)
        release = released(x, y, epsilon=10.0, seed=seed, norm=12.0)
        truth = np.linalg.lstsq(np.column_stack([x, np.ones(1000)]), y, rcond=None)[0]
        found = coefficient_intervals(release, target="rows")
        squares.append(((found.estimate - truth) / found.standard_error) ** 2)
        statistics = summary_statistics(release, variants)
        for j in range(L):
            effects = statistics.outcome(j)
            centred = x - x.mean(axis=0)
            slopes = centred.T @ y[:, j] / (centred**2).sum(axis=0)
            # Least squares on these rows: the sampling part of the standard error is left out.
            noise = (release.plan.row_sigma * release.plan.outcomes.scale[j]) ** 2
            noise = noise / (centred**2).sum(axis=0)
            assert (effects.standard_error**2 > noise).all()
            marginal.append((effects.effect - slopes) ** 2 / noise)
    # 480 and 360 squares of normals, some of them correlated: within five standard deviations.
    assert np.mean(squares) == pytest.approx(1, abs=0.4)
    assert np.mean(marginal) == pytest.approx(1, abs=0.45)


def test_auto_takes_it_where_features_outnumber_rows():
    assert chosen(n=200, d=5000) == "perturbed"
    assert chosen(n=5000, d=20) != "perturbed"


def chosen(*, n, d):
    from primo.forecast.compare import choose_plan
    from primo.planning.guarantee import check_plan

    plan = choose_plan(
        Settings(
            epsilon=5.0,
            delta=1e-8,
            protection="outcomes",
            association="auto",
            feature_bounds=1.0,
            outcome_bounds=1.0,
        ),
        n=n,
        d=d,
        l=1,
    )
    check_plan(plan)
    return plan.association


def test_the_order_of_the_rows_is_not_published():
    """Noise is drawn row by row: with the same noise for the same person, order makes no difference."""
    x, y = rows()
    x[50:] = x[50]  # rows with equal features cannot be told apart
    rng = np.random.default_rng(9)
    shuffled = rng.permutation(N)
    noise = (2.0**48 * rng.normal(size=(N, L))).astype(np.int64)

    def with_order(order):
        def add_noise(values, **options):
            values += noise[order].reshape(-1)

        with mock.patch.object(mechanism, "add_noise", add_noise):
            return released(x[order], y[order], feature_bounds=Bounds(norm=5.0))

    one, other = with_order(np.arange(N)), with_order(shuffled)
    assert np.array_equal(one.perturbed, other.perturbed)
    assert np.array_equal(one.association, other.association)
    whole = one.perturbed.tolist()
    assert len({tuple(row) for row in whole}) == N
    mine = primo.perturbed_outcomes(one, x)
    theirs = primo.perturbed_outcomes(one, x[shuffled])
    assert np.array_equal(mine[shuffled][shuffled < 50], theirs[shuffled < 50])


def test_outcomes_with_noise_belong_to_such_a_release_and_its_features():
    x, y = rows()
    release = released(x, y)
    with pytest.raises(InputError, match="features have shape"):
        primo.perturbed_outcomes(release, x[:-1])
    with pytest.raises(InputError, match="noise on moments"):
        primo.perturbed_outcomes(dataclasses.replace(release, perturbed=None), x)


def test_single_effects_of_more_features_than_rows(tmp_path):
    """Least squares of the noisy outcomes on one feature at a time, and errors that hold the noise."""
    x, y = rows(d=2 * N)
    release = released(x, y, epsilon=20.0)
    release = load_release(save_release(release, tmp_path / "wide.npz"))
    variants = Variants(
        names=release.feature_names,
        chromosome=("1",) * (2 * N),
        position=np.arange(2 * N) + 1,
        counted=("A",) * (2 * N),
        other=("C",) * (2 * N),
    )
    noisy = primo.perturbed_outcomes(release, x)
    centred = x - x.mean(axis=0)
    squares = (centred**2).sum(axis=0)
    plan = release.plan
    for j in range(L):
        effects = summary_statistics(release, variants).outcome(j)
        np.testing.assert_allclose(effects.effect, centred.T @ noisy[:, j] / squares, atol=1e-3)
        least = plan.row_sigma * plan.outcomes.scale[j] / np.sqrt(squares)
        assert (effects.standard_error > least).all()
        assert (effects.standard_error < 2 * least).all()
        # At null effects z is normal: 800 of them.
        assert effects.z.std() == pytest.approx(1, abs=0.15)


def test_a_run_that_is_resumed_repeats_its_noise_and_other_rows_get_other_noise():
    """Sealed bits are tied to the quantised outcomes: see `wall.sealing`."""
    x, y = rows()
    plan = released(x, y).plan

    def drawn(y):
        bits = RandomBits.sealed(bytes(range(32)))
        return make_release(array_source(x, y), plan, bits=bits).perturbed

    first = drawn(y)
    assert np.array_equal(first, drawn(y))
    neighbour = y.copy()
    neighbour[0] = -y[0]
    assert (drawn(neighbour) != first).mean() > 0.99


def test_a_cluster_gives_the_same_bits():
    pytest.importorskip("distributed")
    x, y = rows(n=2100)
    bounds = {"feature_bounds": Bounds(norm=5.0)}
    alone = released(x, y, **bounds)
    shared = released(x, y, engine=Engine(workers=2), **bounds)
    assert np.array_equal(alone.perturbed, shared.perturbed)
    assert np.array_equal(alone.association, shared.association)
