"""Moments on a cluster: the same bits, even if workers die, and no private values in messages."""

import multiprocessing
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from factories import array_source, planned
from primo.errors import InputError, PrimoError
from primo.privacy.bounds import Bounds
from primo.rows.cluster import fold_on_cluster, open_client
from primo.rows.moments import fold
from primo.rows.sources.arrays.dask import dask_source
from primo.rows.sources.arrays.memory import ArraySource
from primo.rows.sources.arrays.npy import open_npy
from primo.rows.sources.paired import PairedSource, SplitSource
from primo.wall.noise import RandomBits
from primo.workflow.pipeline import make_release

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")
dask_array = pytest.importorskip("dask.array")
# Workers cannot import this file by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

N, D, L = 4001, 5, 3
SECRET = "123454321.5"


@pytest.fixture(scope="module")
def client():
    with open_client(2) as opened:
        yield opened


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    return rng.normal(size=(N, D)), rng.standard_cauchy(size=(N, L))


def in_memory(rows):
    return array_source(*rows)


def plan(**changes):
    settings = {
        "n": N,
        "d": D,
        "l": L,
        "epsilon": 1.0,
        "delta": 1e-6,
        "feature_bounds": Bounds(norm=2.0),
        "outcome_bounds": Bounds(lower=-2.0, upper=5.0),
    }
    return planned(**{**settings, **changes})


def assert_same(found, expected):
    assert found.rows == expected.rows
    for name in ("covariance", "association", "outcome"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
        assert getattr(found, name).dtype == np.int64


@dataclass(frozen=True)
class Mischief:
    """A source on which something happens when the row `place` is read for the first time."""

    inner: ArraySource
    marker: Path
    place: int
    deed: str  # "die", "stumble" (fail once), "fail", "refuse"
    first: int = 0

    n = property(lambda self: self.inner.n)
    feature_names = property(lambda self: self.inner.feature_names)
    outcome_names = property(lambda self: self.inner.outcome_names)

    def __repr__(self):
        return "<Mischief (private)>"

    def ids(self):
        return None

    def part(self, start, stop):
        return replace(self, inner=self.inner.part(start, stop), first=self.first + start)

    def blocks(self, rows):
        if self.first <= self.place < self.first + self.n:
            self.act()
        yield from self.inner.blocks(rows)

    def act(self):
        before = self.marker.exists()
        self.marker.touch()
        if self.deed == "die" and not before:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.deed == "die always":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.deed == "stumble" and not before:
            raise OSError(SECRET)
        if self.deed == "fail":
            raise ValueError(f"could not convert string to float: {SECRET}")
        if self.deed == "refuse":
            try:
                float(f"cell {SECRET}")
            except ValueError:
                raise InputError("the features contain NaN or infinity") from None


@pytest.mark.parametrize("partitions", [None, 1, 7, 16])
def test_the_same_bits_as_on_one_machine(client, rows, partitions):
    source, p = in_memory(rows), plan()
    found = fold_on_cluster(fold, source, p, client=client, partitions=partitions)
    assert_same(found, fold(source, p))


def test_a_file_that_the_workers_open_themselves(client, rows, tmp_path):
    x, y = rows
    np.save(tmp_path / "table.npy", np.hstack([x, y]))
    columns = open_npy(tmp_path / "table.npy")
    source = SplitSource(columns=columns, d=D, rows=range(N))
    assert_same(fold_on_cluster(fold, source, plan(), client=client), fold(in_memory(rows), plan()))


def test_a_sub_sampled_covariance(client, rows):
    p = plan(covariance_rows=1500)
    sample = np.zeros(N, dtype=bool)
    sample[np.random.default_rng(1).permutation(N)[:1500]] = True
    source = in_memory(rows)
    found = fold_on_cluster(fold, source, p, client=client, sample=sample, partitions=5)
    assert_same(found, fold(source, p, sample=sample))
    with pytest.raises(InputError, match="needs its sample"):
        fold_on_cluster(fold, source, p, client=client)


def dask_rows(rows):
    x, y = rows
    return dask_source(
        dask_array.from_array(x, chunks=(700, 2)), dask_array.from_array(y, chunks=(1000, L))
    )


def test_chunks_of_dask_arrays(client, rows):
    source = dask_rows(rows)
    expected = fold(in_memory(rows), plan())
    assert_same(fold_on_cluster(fold, source, plan(), client=client), expected)
    assert_same(fold(source, plan()), expected)


@pytest.mark.parametrize("kind", ["file", "dask"])
def test_a_public_block_comes_back_in_order(client, rows, tmp_path, kind):
    """GaussProj needs the public outcomes after the release: workers send them with their moments."""
    x, y = rows
    np.save(tmp_path / "table.npy", np.hstack([x, y]))
    columns = open_npy(tmp_path / "table.npy")
    source = SplitSource(columns=columns, d=D, rows=range(N)) if kind == "file" else dask_rows(rows)
    p = plan(protection="features", association="projection")
    found = make_release(source, p, bits=RandomBits.seeded(1), client=client)
    expected = make_release(in_memory(rows), p, bits=RandomBits.seeded(1))
    assert np.array_equal(found.association, expected.association)
    assert np.array_equal(found.projected.association, expected.projected.association)


def test_chunks_of_other_types_than_the_array_says(client, rows):
    """Pandas makes whole numbers of a partition where nothing is missing; they meet floats."""
    x = rows[0].copy()
    x[:900] = np.trunc(x[:900])

    def whole(block):
        return block.astype(np.int64) if (block == np.trunc(block)).all() else block

    array = dask_array.from_array(x, chunks=(900, 2)).map_blocks(whole, dtype=float, meta=x[:0])
    source = dask_source(array, dask_array.from_array(rows[1], chunks=(1000, 2)))
    expected = fold(in_memory((x, rows[1])), plan())
    assert_same(fold_on_cluster(fold, source, plan(), client=client), expected)
    assert_same(fold(source, plan()), expected)


def test_rows_of_dask_arrays_in_another_order_and_with_a_sample(client, rows):
    order = np.random.default_rng(1).permutation(N)
    source = replace(dask_rows(rows), feature_rows=order, outcome_rows=order)
    p = plan(covariance_rows=1500)
    sample = np.zeros(N, dtype=bool)
    sample[:1500] = True
    local = in_memory((rows[0][order], rows[1][order]))
    found = fold_on_cluster(fold, source, p, client=client, sample=sample)
    assert_same(found, fold(local, p, sample=sample))


def test_chunks_that_lie_on_workers_are_not_brought_here(client, rows, monkeypatch):
    x, y = (client.persist(dask_array.from_array(part, chunks=(500, -1))) for part in rows)
    with client.as_current():
        distributed.wait([x, y])
    fetched, result = [], distributed.Future.result
    monkeypatch.setattr(
        distributed.Future, "result", lambda self: fetched.append(self.key) or result(self)
    )
    monkeypatch.setattr(dask_array.Array, "compute", None)
    found = fold_on_cluster(fold, dask_source(x, y), plan(), client=client)
    assert_same(found, fold(in_memory(rows), plan()))
    kinds = [key.split("-")[2] for key in fetched]
    assert sorted(set(kinds)) == ["state", "sum"]
    assert kinds.count("sum") == 1


def test_one_store_in_dask_and_one_in_a_file(client, rows, tmp_path):
    np.save(tmp_path / "y.npy", rows[1])
    source = PairedSource(
        features=dask_rows(rows).features,
        outcomes=open_npy(tmp_path / "y.npy"),
        feature_rows=range(N),
        outcome_rows=range(N),
    )
    found = fold_on_cluster(fold, source, plan(), client=client, partitions=3)
    assert_same(found, fold(in_memory(rows), plan()))


def test_a_release_does_not_show_where_it_was_made(client, rows):
    source, p = in_memory(rows), plan(covariance_rows=1500)
    here, there = (
        make_release(source, p, bits=RandomBits.seeded(5), client=where) for where in (None, client)
    )
    assert np.array_equal(here.covariance, there.covariance)
    assert np.array_equal(here.association, there.association)


def test_progress_counts_every_row(client, rows):
    seen = []
    fold_on_cluster(
        fold, in_memory(rows), plan(), client=client, partitions=6, progress=seen.append
    )
    assert len(seen) == 6
    assert sum(seen) == N


def test_a_worker_that_dies_in_the_middle_changes_nothing(client, rows, tmp_path):
    source = Mischief(in_memory(rows), tmp_path / "dead", place=2100, deed="die")
    found = fold_on_cluster(fold, source, plan(), client=client, partitions=8)
    assert (tmp_path / "dead").exists()
    assert_same(found, fold(in_memory(rows), plan()))


def test_a_partition_that_fails_once_is_read_again(client, rows, tmp_path):
    source = Mischief(in_memory(rows), tmp_path / "weak", place=2100, deed="stumble")
    found = fold_on_cluster(fold, source, plan(), client=client, partitions=8)
    assert_same(found, fold(in_memory(rows), plan()))


def everything_said(error):
    text = "".join(traceback.format_exception(error))
    assert error.__cause__ is None
    assert error.__context__ is None
    return text


@pytest.mark.parametrize(
    ("deed", "kind", "message"),
    [
        ("fail", PrimoError, r"could not be read on its worker \(ValueError\)"),
        ("refuse", InputError, "contain NaN or infinity"),
    ],
)
def test_a_partition_that_fails_for_good(client, rows, tmp_path, deed, kind, message):
    source = Mischief(in_memory(rows), tmp_path / "bad", place=2100, deed=deed)
    with pytest.raises(kind, match=message) as caught:
        fold_on_cluster(fold, source, plan(), client=client, partitions=8)
    assert SECRET not in everything_said(caught.value)
    logs = repr(client.get_worker_logs()) + repr(client.get_scheduler_logs())
    assert SECRET not in logs
    assert "Compute Failed" not in logs


def test_a_partition_that_takes_workers_down_for_good(client, rows, tmp_path):
    source = Mischief(in_memory(rows), tmp_path / "dead", place=10, deed="die always")
    before = client.run_on_scheduler(_allow_failures, 0)
    try:
        with pytest.raises(PrimoError, match=r"KilledWorker.*memory") as caught:
            fold_on_cluster(fold, source, plan(), client=client, partitions=2)
    finally:
        client.run_on_scheduler(_allow_failures, before)
    everything_said(caught.value)


def _allow_failures(count, dask_scheduler):
    before = dask_scheduler.allowed_failures
    dask_scheduler.allowed_failures = count
    return before


def test_a_dask_array_that_cannot_be_computed(client, rows):
    def fails(block):
        raise ValueError(SECRET)

    x, y = (dask_array.from_array(part, chunks=(1000, -1)) for part in rows)
    source = dask_source(x.map_blocks(fails, dtype=float), y)
    with pytest.raises(PrimoError, match="ValueError") as caught:
        fold_on_cluster(fold, source, plan(), client=client)
    assert SECRET not in everything_said(caught.value)


def test_an_interrupt_cancels_the_work(client, rows):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fold_on_cluster(
            fold, in_memory(rows), plan(), client=client, partitions=8, progress=interrupt
        )
    deadline = time.monotonic() + 600  # so that a mistake does not hang for ever
    while client.run_on_scheduler(_tasks) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not client.run_on_scheduler(_tasks)


def _tasks(dask_scheduler):
    return [str(key) for key in dask_scheduler.tasks if str(key).startswith("primo-")]


def test_another_version_on_a_worker_is_refused(client, rows, monkeypatch):
    monkeypatch.setattr("primo.rows.cluster.version", lambda _: "0.0.0")
    with pytest.raises(InputError, match=r"this is primo 0\.0\.0"):
        fold_on_cluster(fold, in_memory(rows), plan(), client=client)


def test_open_client_by_address_and_as_it_is(client):
    with open_client(client) as same:
        assert same is client
    assert client.status == "running"
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        open_client(cluster.scheduler_address) as opened,
    ):
        assert opened.scheduler.address == cluster.scheduler_address


def test_local_workers_are_closed_to_others(client):
    assert client.scheduler.address.startswith("tls://127.0.0.1")


@pytest.mark.parametrize("bad", [0, -1, None, 1.5, ["tcp://a"]])
def test_what_is_no_client_is_refused(bad):
    with pytest.raises(InputError, match=r"must be a distributed\.Client"), open_client(bad):
        pass


@pytest.mark.parametrize("again", [False, True])
def test_a_script_without_a_main_guard_is_told_so(monkeypatch, again):
    """The first process sees that no worker starts; a worker that runs the script starts none."""
    started = []

    def fails(**given):
        started.append(given)
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(distributed, "LocalCluster", fails)
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", again, raising=False)
    with pytest.raises(InputError, match=r"worker processes.*__main__"), open_client(2):
        pass
    assert len(started) == (not again)


def test_no_scheduler_there():
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.3s"}),
        pytest.raises(InputError, match=r"no Dask scheduler at tcp://127\.0\.0\.1:9"),
        open_client("tcp://127.0.0.1:9"),
    ):
        pass


def test_without_distributed_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"primo-dp\[cluster\]"), open_client(1):
        pass


def test_all_sums_of_a_plan_fit_64_bits():
    """However the tree is built: |sums| of n rows at the bound stay below 2⁶²."""
    for n in (2, 1000, 2**20, 10**9):
        grid = plan(n=n, delta=1e-12).grid
        for radius in (grid.feature_radius_squared, grid.outcome_radius_squared):
            assert n * radius <= 2**61
