"""Record what a fit hands to the noise, and measure how far two fits are apart.

A release is a Gaussian mechanism on everything that reaches `add_noise`. So two recordings, of the same
plan on neighbouring rows, say what the guarantee is about: the calls must be the same calls, and
their values, in units of their own noise, at most mu apart. Nothing here knows a formula of
`primo.privacy`: it is a second opinion.

Tests load this file through the `replay` fixture of a conftest (tests are no package).
"""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from unittest import mock

import numpy as np

from primo.mechanisms import gauss


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of `add_noise`, as it was before any noise."""

    label: str
    variance_bits: int
    values: np.ndarray  # int64

    @property
    def signature(self):
        """What must not depend on the rows."""
        return self.label, self.variance_bits, self.values.shape


@contextmanager
def recording():
    """Collect the calls of the fits inside; they draw their noise as always."""
    calls = []
    original = gauss.add_noise

    def add_noise(values, *, variance_bits, label, **options):
        calls.append(Call(label=label, variance_bits=variance_bits, values=values.copy()))
        original(values, variance_bits=variance_bits, label=label, **options)

    with mock.patch.object(gauss, "add_noise", add_noise):
        yield calls


def record(fit: Callable[[], object]) -> tuple[Call, ...]:
    """Run a fit and return its calls in order."""
    with recording() as calls:
        fit()
    return tuple(calls)


def schedule(calls):
    """Return what anyone may know of a recording."""
    return [call.signature for call in calls]


def squared_distance(one, other):
    """Sum over all calls of ‖difference‖²/variance, an exact fraction; mu² at most if private."""
    if schedule(one) != schedule(other):
        raise AssertionError("the calls themselves differ: the schedule depends on the rows")
    total = Fraction(0)
    for a, b in zip(one, other, strict=True):
        moved = (a.values - b.values)[a.values != b.values]
        total += Fraction(sum(int(step) ** 2 for step in moved), 2**a.variance_bits)
    return total
