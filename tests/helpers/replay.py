"""Record what a fit hands to the noise, and measure how far two fits are apart.

A release is a Gaussian mechanism on everything that reaches `add_noise`. So two recordings, of the same
plan on neighbouring rows, say what the guarantee is about: the calls must be the same calls, and
their values, in units of their own noise, at most mu apart. Nothing here knows a formula of
`primo.privacy`: it is a second opinion.

Tests load this file through the `replay` fixture of a conftest (tests are no package).
"""

import zlib
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from unittest import mock

import numpy as np

from primo.privacy import values
from primo.privacy.lengths import BINS
from primo.released.rounds import Step
from primo.wall import blocks, mechanism, stages
from primo.wall.sealing import plan_digest
from primo.workflow import rounds


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of `add_noise`, as it was before any noise."""

    label: str
    variance_bits: int
    values: np.ndarray  # int64
    noise: np.ndarray | None = None  # int64, what was added; None in a dry recording

    @property
    def signature(self):
        """What must not depend on the rows."""
        return self.label, self.variance_bits, self.values.shape


#: What the stages that find bounds release in every recording. What comes after a stage depends on its
#: output: neighbours are compared given the same output.
SEEN = np.zeros(BINS, dtype=np.int64)
SEEN[BINS // 2] = 2**50
SEEN_VALUES = np.zeros(values.BINS, dtype=np.int64)
SEEN_VALUES[[values.ZERO - 155, values.ZERO + 155]] = 2**49, 2**50
SEEN_INSTEAD = {
    f"{stage} of {block}": seen
    for block in ("features", "outcomes")
    for stage, seen in (
        ("columns", SEEN_VALUES),
        ("first lengths", SEEN),
        (
            "sums",
            np.int64(-1.05 * 2**40),
        ),  # a little more than their noise: the centre moves a little
        ("lengths", SEEN),
    )
}


def seen_in_round(label, shape):
    """Return what a round released in every recording: later rounds depend on it, and on no row."""
    rng = np.random.default_rng(zlib.crc32(label.encode()))
    size = 2.0**41 if label.endswith("diagonal") else 0.0
    return (size + 2.0**38 * rng.normal(size=shape)).astype(np.int64)


@contextmanager
def recording(*, dry=False):
    """Collect the calls of the fits inside; they draw their noise as always, or, if dry, none."""
    calls = []
    original = mechanism.add_noise

    def add_noise(values, *, variance_bits, label, **options):
        before = values.copy()
        if not dry:
            original(values, variance_bits=variance_bits, label=label, **options)
        noise = None if dry else values - before
        calls.append(Call(label=label, variance_bits=variance_bits, values=before, noise=noise))
        if label in SEEN_INSTEAD:
            values[...] = SEEN_INSTEAD[label]
        if label.startswith("round "):
            values[...] = seen_in_round(label, values.shape)

    with (
        mock.patch.object(mechanism, "add_noise", add_noise),
        mock.patch.object(stages, "add_noise", add_noise),
        mock.patch.object(blocks, "add_noise", add_noise),
        mock.patch.object(rounds, "next_step", remembered_step if dry else a_step),
    ):
        yield calls


_STEPS = {}


def a_step(plan, released, step=rounds.next_step):
    """Take the step; where it stays at the outcomes, as after five rows of noise, a made-up one.

    Without it no recorded round would be one of residuals. It depends on released numbers only.
    """
    found = step(plan, released)
    if found.coefficients.any():
        return found
    rng = np.random.default_rng(len(released))
    coefficients = 0.3 * rng.normal(size=found.coefficients.shape)
    return Step(coefficients=coefficients, clip=plan.outcomes.norm / 2)


def remembered_step(plan, released, step=a_step):
    """Take a step; one from the very same released numbers is not computed again. Searches are long."""
    numbers = [np.asarray(value).tobytes() for r in released for value in vars(r).values()]
    key = (plan_digest(plan), *numbers)
    if key not in _STEPS:
        _STEPS[key] = step(plan, released)
    return _STEPS[key]


def record(fit: Callable[[], object], *, dry: bool = False) -> tuple[Call, ...]:
    """Run a fit and return its calls in order; a dry one is for searches, which try many."""
    with recording(dry=dry) as calls:
        fit()
    return tuple(calls)


@contextmanager
def severed():
    """Let the noise through and nothing below it: `add_noise` gives noise in place of values plus noise.

    Whatever else a fit inside lets out cannot have come through the mechanism. So two fits that
    differ in private rows only, with the same bits, must give the very same release.
    """
    original = mechanism.add_noise

    def add_noise(values, **options):
        values[...] = 0
        original(values, **options)

    with (
        mock.patch.object(mechanism, "add_noise", add_noise),
        mock.patch.object(stages, "add_noise", add_noise),
        mock.patch.object(blocks, "add_noise", add_noise),
        mock.patch.object(rounds, "next_step", a_step),
    ):
        yield


def published(release):
    """Return every number of a release that rows could have had a say in."""
    found = {
        "covariance": release.covariance,
        "association": release.association,
        "outcome moments": release.outcome_moments,
        "statement": release.statement(),
    }
    if release.lengths is not None:
        found["lengths of features"] = release.lengths.features
        found["lengths of outcomes"] = release.lengths.outcomes
        for block in ("features", "outcomes"):
            clip = getattr(release.plan, block)
            found[f"bounds of {block}"] = clip.norm, clip.centre, clip.scale, clip.middle
    if release.projected is not None:
        found["projected"] = release.projected.association
        found["noise left"] = release.projected.noise_left
    if release.blocks is not None:
        found |= {f"blocks' {name}": value for name, value in vars(release.blocks).items()}
    if release.public_blocks is not None:
        public = vars(release.public_blocks).items()
        found |= {f"public blocks' {name}": value for name, value in public}
    for number, released in enumerate(release.rounds):
        found |= {f"round {number} {name}": value for name, value in vars(released).items()}
    if release.perturbed is not None:
        found["perturbed"] = release.perturbed
    if release.public_features is not None:
        found["means"] = release.public_features.means
    return found


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
