"""No stream of noise is drawn twice: not by another process, fork, thread or worker.

Noise that repeats cancels out of a difference of two releases, and nothing is left of the guarantee.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from primo.errors import PrivacyError
from primo.wall.noise import CHUNK, RandomBits, discrete_gaussian
from primo.wall.noise.bits import BLOCKS, Stream

FIRST_DRAWS = """
from primo.wall.noise import RandomBits, discrete_gaussian
print(*discrete_gaussian(4, variance_bits=100, bits=RandomBits.fresh(), label="a"))
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def draw(bits, label="a", size=4):
    return discrete_gaussian(size, variance_bits=100, bits=bits, label=label).tolist()


def test_fresh_keys_are_all_different():
    words = {RandomBits.fresh().stream("a", 0).word() for _ in range(5000)}
    assert len(words) == 5000


def test_streams_of_one_key_are_all_different():
    bits = RandomBits.fresh()
    labels = ["covariance diagonal", "covariance", "association", "outcome diagonal", "outcome"]
    words = {bits.stream(label, chunk).word() for label in labels for chunk in range(500)}
    assert len(words) == 2500


@pytest.mark.parametrize("variance_bits", [57, 58, 114])
def test_a_chunk_of_noise_draws_no_more_blocks_than_the_proof_counts(variance_bits, monkeypatch):
    """Section 5 of docs/guarantee.md counts 2¹⁶ + 2¹² blocks of AES; seeded, so no false alarm."""
    drawn = words_of_each_stream(monkeypatch)
    bits = RandomBits.seeded(7)
    discrete_gaussian(3 * CHUNK, variance_bits=variance_bits, bits=bits, label="a")
    assert len(drawn) == 3
    assert min(drawn.values()) > 2 * CHUNK
    assert max(drawn.values()) <= 2 * BLOCKS


def test_a_sample_takes_a_stream_for_every_32768_rows(monkeypatch):
    """One stream for n rows would cost n²/2¹²⁹: at a billion rows more than the smallest delta."""
    drawn = words_of_each_stream(monkeypatch)
    chosen = RandomBits.seeded(7).subset(100_000, 300, label="sample")
    assert chosen.sum() == 300
    assert list(drawn.values()) == [CHUNK, CHUNK, CHUNK, 200_000 - 3 * CHUNK]


def words_of_each_stream(monkeypatch):
    """Count the words that every stream gives from here on."""
    drawn = Counter()
    words = Stream.words

    def counted(stream, count, buffer=None):
        drawn[stream] += count
        return words(stream, count, buffer)

    monkeypatch.setattr(Stream, "words", counted)
    return drawn


def in_a_fork(work):
    """Run `work` in a forked process and return what it returns, or the name of what it raises."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child():
        try:
            sender.send(work())
        except Exception as error:
            sender.send(type(error).__name__)

    process = context.Process(target=child)
    process.start()
    assert receiver.poll(60)
    found = receiver.recv()
    process.join()
    return found


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_is_refused_the_key_of_its_parent():
    bits = RandomBits.fresh()
    assert in_a_fork(lambda: draw(bits)) == "PrivacyError"
    assert in_a_fork(lambda: bits.subset(10, 5, label="sample").tolist()) == "PrivacyError"
    draw(bits)  # the parent may still draw


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_make_keys_of_their_own():
    RandomBits.fresh()  # whatever state a generator might keep is there before the forks
    found = [tuple(in_a_fork(lambda: draw(RandomBits.fresh()))) for _ in range(4)]
    assert len({*found, tuple(draw(RandomBits.fresh()))}) == 5


def test_new_processes_make_keys_of_their_own():
    found = {
        subprocess.run(
            [sys.executable, "-c", FIRST_DRAWS], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(3)
    }
    assert len(found) == 3


def test_of_threads_that_draw_the_same_label_one_gets_it():
    threads = 8
    for _ in range(20):
        bits, start = RandomBits.fresh(), Barrier(threads)

        def work(_, bits=bits, start=start):
            start.wait()
            try:
                return draw(bits)
            except PrivacyError:
                return None

        with ThreadPoolExecutor(threads) as pool:
            found = [draws for draws in pool.map(work, range(threads)) if draws is not None]
        assert len(found) == 1


def test_threads_with_labels_of_their_own_never_draw_the_same():
    bits = RandomBits.fresh()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: draw(bits, f"label {i}", 500), range(16)))
    assert np.unique(found).size == 16 * 500


def test_chunks_of_one_draw_do_not_repeat():
    draws = discrete_gaussian(4 * CHUNK, variance_bits=100, bits=RandomBits.fresh(), label="a")
    assert np.unique(draws).size == 4 * CHUNK


def test_dask_workers_make_keys_of_their_own_and_take_none():
    pytest.importorskip("distributed")
    cloudpickle = pytest.importorskip("cloudpickle")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    from primo.rows.cluster import open_client

    def work(_):
        return os.getpid(), *draw(RandomBits.fresh())

    with open_client(2) as client:
        found = client.gather(client.map(work, range(20), pure=False))
        bits = RandomBits.fresh()
        with pytest.raises(TypeError, match=r"cannot be copied or pickled|serializ"):
            client.submit(draw, bits).result()
    assert {pid for pid, *_ in found}.isdisjoint({os.getpid()})
    assert len({tuple(draws) for _, *draws in found}) == 20
