"""Bits that a resumed run draws again: the same for the same release, others for any other."""

import os

import numpy as np
import pytest

from primo.errors import InputError, PrivacyError
from primo.wall.noise import RandomBits, discrete_gaussian

SECRET = bytes(range(32))


def draw(bits, label="a"):
    return discrete_gaussian(50, variance_bits=80, bits=bits, label=label)


def test_same_secret_and_release_give_the_same_noise():
    one, two = (draw(RandomBits.sealed(SECRET).bound(b"x")) for _ in range(2))
    assert np.array_equal(one, two)


def test_another_secret_or_release_gives_other_noise():
    draws = [
        draw(RandomBits.sealed(secret).bound(digest))
        for secret in (SECRET, SECRET[::-1])
        for digest in (b"x", b"y", b"", b"x" * 32)
    ]
    assert np.unique(draws).size == 8 * 50


def test_no_noise_before_it_is_bound():
    bits = RandomBits.sealed(SECRET)
    with pytest.raises(PrivacyError, match="only after bound"):
        draw(bits)
    bits.bound(b"x")
    with pytest.raises(PrivacyError, match="only after bound"):
        draw(bits)


def test_bound_once_and_drawn_once():
    bits = RandomBits.sealed(SECRET)
    bound = bits.bound(b"x")
    for again in (bits, bound):
        with pytest.raises(PrivacyError, match="bound to a release already"):
            again.bound(b"y")
    draw(bound)
    with pytest.raises(PrivacyError, match="already drawn"):
        draw(bound)


def test_the_sample_comes_before_and_from_the_secret_alone():
    one, two = RandomBits.sealed(SECRET), RandomBits.sealed(SECRET)
    chosen = one.subset(100, 30, label="sample")
    assert np.array_equal(chosen, two.subset(100, 30, label="sample"))
    assert chosen.sum() == 30
    with pytest.raises(PrivacyError, match="already drawn"):
        one.subset(100, 30, label="sample")
    other = RandomBits.sealed(bytes(32)).subset(100, 30, label="sample")
    assert not np.array_equal(chosen, other)


def test_other_bits_need_no_binding():
    for bits in (RandomBits.fresh(), RandomBits.seeded(1)):
        assert bits.bound(b"x") is bits
    assert np.array_equal(draw(RandomBits.seeded(1).bound(b"x")), draw(RandomBits.seeded(1)))


def test_it_may_be_published_and_hides_its_secret(monkeypatch):
    bits = RandomBits.sealed(SECRET)
    assert not bits.reproducible
    assert bits.repeatable
    assert not RandomBits.fresh().repeatable
    assert repr(bits) == "<RandomBits sealed>"
    bound = bits.bound(b"x")
    assert repr(bound) == "<RandomBits bound>"
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(PrivacyError, match="before a fork"):
        draw(bound)


def test_wrong_secrets():
    for secret in (b"", bytes(31), bytes(33)):
        with pytest.raises(InputError, match=f"32 bytes, not {len(secret)}"):
            RandomBits.sealed(secret)


def test_opendp_cannot_repeat_its_noise():
    pytest.importorskip("opendp")
    bits = RandomBits.sealed(SECRET).bound(b"x")
    with pytest.raises(InputError, match="second one"):
        discrete_gaussian(1, variance_bits=8, bits=bits, label="a", backend="opendp")
