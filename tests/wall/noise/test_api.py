"""The public functions and the key: what they draw, what they refuse, what a seed means."""

from __future__ import annotations

import copy
import os
import pickle
import sys

import numpy as np
import pytest

from primo.errors import InputError, PrivacyError
from primo.wall.noise import CHUNK, RandomBits, add_noise, discrete_gaussian

PINNED_4 = [-2, 0, -30, 8, 19, 27]
PINNED_40 = [-84754692140, -2880752375, -2038507620645, 824889441459]


def draw(size: int, *, seed: int = 1, variance_bits: int = 80, label: str = "test"):
    bits = RandomBits.seeded(seed)
    return discrete_gaussian(size, variance_bits=variance_bits, bits=bits, label=label)


class TestRandomBits:
    def test_kind_is_stated_and_cannot_be_changed(self):
        assert RandomBits.seeded(1).reproducible
        assert not RandomBits.fresh().reproducible
        with pytest.raises(AttributeError):
            RandomBits.seeded(1).reproducible = False

    def test_repr_hides_the_key(self):
        assert repr(RandomBits.fresh()) == "<RandomBits fresh>"
        assert repr(RandomBits.seeded(5)) == "<RandomBits reproducible>"

    def test_seed_gives_the_same_draws_again(self):
        assert np.array_equal(draw(1000), draw(1000))

    def test_seeds_labels_and_chunks_differ(self):
        a = draw(2 * CHUNK)
        others = [a[CHUNK:], draw(CHUNK, seed=2), draw(CHUNK, label="test2")]
        for other in others:
            assert not np.isin(a[:1000], other).any()

    def test_seeds_of_any_size_and_numpy_integers(self):
        assert np.array_equal(draw(5, seed=np.int64(7)), draw(5, seed=7))
        assert not np.array_equal(draw(5, seed=-7), draw(5, seed=7))
        assert not np.array_equal(draw(5, seed=2**200), draw(5, seed=7))
        with pytest.raises(InputError, match="random_state must be an integer; got 'x'"):
            RandomBits.seeded("x")

    def test_fresh_never_repeats(self):
        draws = [
            discrete_gaussian(8, variance_bits=100, bits=RandomBits.fresh(), label="a")
            for _ in range(200)
        ]
        assert np.unique(draws).size == 1600

    def test_streams_of_similar_names_differ(self):
        bits = RandomBits.seeded(1)
        names = [("a", 11), ("1:a", 1), ("", 1), ("a", 1), ("1", 11), ("é", 1), ("a:1", 1)]
        words = {bits.stream(label, chunk).word() for label, chunk in names}
        assert len(words) == len(names)

    def test_pinned_draws(self):
        # What a seed means is part of the format: changing it invalidates recorded experiments.
        assert draw(6, variance_bits=8).tolist() == PINNED_4
        assert draw(4, variance_bits=80).tolist() == PINNED_40

    @pytest.mark.parametrize("bits", [RandomBits.fresh(), RandomBits.seeded(1)])
    def test_label_is_drawn_once(self, bits):
        discrete_gaussian(1, variance_bits=16, bits=bits, label="gram")
        with pytest.raises(PrivacyError, match="'gram' was already drawn"):
            discrete_gaussian(1, variance_bits=16, bits=bits, label="gram")
        discrete_gaussian(1, variance_bits=16, bits=bits, label="other")

    def test_a_refused_call_does_not_use_up_the_label(self):
        bits = RandomBits.fresh()
        with pytest.raises(InputError):
            discrete_gaussian(1, variance_bits=198, bits=bits, label="a")
        discrete_gaussian(1, variance_bits=18, bits=bits, label="a")

    def test_key_does_not_travel(self):
        for send in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                send(RandomBits.fresh())

    def test_fresh_key_refuses_to_work_after_a_fork(self, monkeypatch):
        fresh, seeded = RandomBits.fresh(), RandomBits.seeded(1)
        monkeypatch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(PrivacyError, match="before a fork"):
            discrete_gaussian(1, variance_bits=16, bits=fresh, label="a")
        discrete_gaussian(1, variance_bits=16, bits=seeded, label="a")


class TestInterface:
    @pytest.mark.parametrize("size", [0, 1, 17, CHUNK - 1, CHUNK, CHUNK + 1])
    def test_sizes(self, size):
        got = draw(size)
        assert got.shape == (size,)
        assert got.dtype == np.int64

    @pytest.mark.parametrize("threads", [2, 3, 16])
    def test_threads_change_nothing(self, threads):
        one = np.zeros(5 * CHUNK + 11, dtype=np.int64)
        many = np.zeros_like(one)
        add_noise(one, variance_bits=80, bits=RandomBits.seeded(3), label="a")
        add_noise(many, variance_bits=80, bits=RandomBits.seeded(3), label="a", threads=threads)
        assert np.array_equal(one, many)

    def test_adds_in_place_to_any_shape(self):
        values = np.arange(60, dtype=np.int64).reshape(3, 4, 5)
        add_noise(values, variance_bits=80, bits=RandomBits.seeded(1), label="test")
        assert np.array_equal(values.ravel(), np.arange(60) + draw(60))

    def test_sums_wrap(self):
        values = np.full(100, 2**63 - 1, dtype=np.int64)
        add_noise(values, variance_bits=80, bits=RandomBits.seeded(1), label="test")
        exact = [(2**63 - 1 + int(v) + 2**63) % 2**64 - 2**63 for v in draw(100)]
        assert values.tolist() == exact

    @pytest.mark.parametrize("value", [-2, -1, 117, 118])
    def test_scale_out_of_range(self, value):
        with pytest.raises(InputError, match=rf"variance_bits must lie in 0\.\.116 .* got {value}"):
            draw(9, variance_bits=value)

    def test_bad_arguments(self):
        good = {"variance_bits": 16, "bits": RandomBits.seeded(1), "label": "a"}
        values = np.zeros((4, 4), dtype=np.int64)
        frozen = values.copy()
        frozen.setflags(write=False)
        for bad in (values.T[1:], values[:, ::2], frozen):
            with pytest.raises(InputError, match="C-contiguous and writeable"):
                add_noise(bad, **good)
        for bad in (values.astype(np.int32), values.astype(float), values.tolist()):
            with pytest.raises(InputError, match="int64 array"):
                add_noise(bad, **good)
        with pytest.raises(InputError, match="threads must be at least 1; got 0"):
            add_noise(values, **good, threads=0)
        with pytest.raises(InputError, match=r"variance_bits must be an integer; got 8\.5"):
            add_noise(values, **good | {"variance_bits": 8.5})
        with pytest.raises(InputError, match="size must not be negative; got -1"):
            discrete_gaussian(-1, **good)
        with pytest.raises(InputError, match="'numpy'; choose one of primo, opendp"):
            add_noise(values, **good, backend="numpy")
        assert not values.any()


class TestOpenDP:
    def test_draws_at_the_scale_asked_for(self):
        pytest.importorskip("opendp")
        for variance_bits in (8, 79, 80, 116):
            got = discrete_gaussian(
                2000,
                variance_bits=variance_bits,
                bits=RandomBits.fresh(),
                label="a",
                backend="opendp",
            )
            assert got.dtype == np.int64
            # Not seeded; the bounds are 12 standard errors away.
            assert 0.8 < got.std() / 2.0 ** (variance_bits / 2) < 1.2

    def test_cannot_be_seeded(self):
        with pytest.raises(InputError, match="OpenDP cannot be seeded"):
            discrete_gaussian(
                1, variance_bits=8, bits=RandomBits.seeded(1), label="a", backend="opendp"
            )

    def test_missing_package_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "opendp.prelude", None)
        with pytest.raises(InputError, match=r"pip install 'primo-dp\[opendp\]'"):
            discrete_gaussian(
                1, variance_bits=8, bits=RandomBits.fresh(), label="a", backend="opendp"
            )
