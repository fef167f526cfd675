"""The probe accepts this machine's BLAS, and refuses one that takes fewer digits inside."""

import numpy as np
import pytest

from primo.rows.exactness import probe


def test_this_machine_is_exact():
    checks = probe()
    assert len(checks) >= 10
    assert all(check.exact for check in checks)


def _with_bits(bits):
    """A product whose factors keep so many bits, as units for bfloat16 or TF32 do."""

    def cut(values):
        mantissa, exponent = np.frexp(values)
        return np.ldexp(np.round(mantissa * 2**bits) / 2**bits, exponent)

    return lambda x, y: (cut(x) @ cut(y)).astype(x.dtype)


@pytest.mark.parametrize("bits", [8, 11])
def test_fewer_digits_are_noticed(bits):
    assert not any(check.exact for check in probe(_with_bits(bits)))


def test_sums_in_single_precision_are_noticed():
    def single(x, y):
        return (x.astype(np.float32) @ y.astype(np.float32)).astype(x.dtype)

    wrong = {check.name for check in probe(single) if not check.exact}
    assert len(wrong) == len(probe()) - 1  # all but the product that is made in single precision


def test_one_wrong_bit_is_noticed():
    def off(x, y):
        found = x @ y
        found[0, 0] = np.nextafter(found[0, 0], np.inf)
        return found

    assert not any(check.exact for check in probe(off))
