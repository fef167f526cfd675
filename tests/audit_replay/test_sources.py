"""Whole fits from files, on neighbours: the same integers from every format, and never too far apart."""

from fractions import Fraction

import numpy as np
import pytest

from primo.rows import cluster
from primo.workflow.fit import Engine

every_protection = pytest.mark.parametrize("protection", ["both", "features", "outcomes"])


def same_integers(one, other):
    return len(one) == len(other) and all(
        a.signature == b.signature and np.array_equal(a.values, b.values)
        for a, b in zip(one, other, strict=True)
    )


@every_protection
def test_every_format_hands_the_same_integers_to_the_noise(
    replay, people, form, protection, tmp_path
):
    cohort, haplotypes = people.cohort(), people.has_haplotypes(form)
    source = form(tmp_path, cohort)
    ready = people.prepared(source, protection, haplotypes)
    expected = people.fit(people.arrays(None, cohort, haplotypes), ready)
    assert same_integers(replay.record(people.fit(source, ready)), replay.record(expected))
    assert ready.plan.rows_per_person == (2 if haplotypes and form is not people.arrays else 1)


@every_protection
def test_a_replaced_person_moves_them_by_no_more_than_is_charged(
    replay, people, form, protection, tmp_path
):
    haplotypes = people.has_haplotypes(form)
    pair, expected = people.worst_pair(replay, protection, haplotypes)
    base, recordings = people.cohort(), []
    for number, person in enumerate(pair):
        folder = tmp_path / str(number)
        folder.mkdir()
        source = form(folder, base.replaced(person))
        ready = people.prepared(source, protection, haplotypes)
        recordings.append(replay.record(people.fit(source, ready)))
    found = replay.squared_distance(*recordings)
    charged = Fraction(ready.plan.cost.mu) ** 2
    assert found == expected  # what the search in arrays has found
    assert 0.9 * charged < found <= charged


@every_protection
def test_nothing_private_goes_around_the_noise(replay, people, form, protection, tmp_path):
    haplotypes = people.has_haplotypes(form)
    one, other = people.cohort(), people.cohort(seed=1)
    if protection == "features":
        other = people.Cohort(alleles=other.alleles, age=other.age, outcomes=one.outcomes)
    if protection == "outcomes":
        other = people.Cohort(alleles=one.alleles, age=one.age, outcomes=other.outcomes)
    found = []
    for number, cohort in enumerate((one, other)):
        folder = tmp_path / str(number)
        folder.mkdir()
        source = form(folder, cohort)
        ready = people.prepared(source, protection, haplotypes)
        with replay.severed():
            found.append(replay.published(people.fit(source, ready)()))
    np.testing.assert_equal(*found)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as opened:
        yield opened


@pytest.mark.parametrize("sampled", [None, 4])
def test_a_cluster_hands_the_same_integers_to_the_noise(
    replay, people, client, tmp_path, monkeypatch, sampled
):
    monkeypatch.setattr(cluster, "_FEWEST_ROWS", 1)  # some partitions, however few people
    source = people.csv(tmp_path, people.cohort())
    ready = people.prepared(source, "both", covariance_rows=sampled)
    there = people.fit(source, ready, engine=Engine(workers=client))
    assert same_integers(replay.record(there), replay.record(people.fit(source, ready)))


def test_a_cluster_moves_no_further_either(replay, people, client, monkeypatch):
    monkeypatch.setattr(cluster, "_FEWEST_ROWS", 1)
    pair, expected = people.worst_pair(replay, "both", False)
    base = people.cohort()
    recordings = []
    for person in pair:
        source = people.arrays(None, base.replaced(person))
        ready = people.prepared(source, "both")
        recordings.append(replay.record(people.fit(source, ready, engine=Engine(workers=client))))
    assert replay.squared_distance(*recordings) == expected
