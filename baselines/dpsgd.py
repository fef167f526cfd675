"""DP-SGD for linear regression by Opacus: one run per outcome as in the paper, or one for all outcomes.

Opacus clips the gradient of every row, samples rows (Poisson) and adds the noise: by ghost clipping,
which gets the norm of a row's gradient, |r|·|x|, without ever holding the (batch, l, d) gradients. Sums
are divided by the *expected* number of rows in a step, since the realised one is not public. The privacy
is counted under replace-one by `dpsgd_accounting`, not by Opacus, which counts add-or-remove.

Everything is in public units: features are divided by `feature_bounds` and outcomes by their bound, so a
gradient at zero coefficients has norm at most 1 (jointly). Learning rates and clips are in these units.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines.base import Baseline, Guarantee
from baselines.dpsgd_accounting import noise_multiplier, noise_multiplier_zcdp, true_epsilon
from primo.errors import InputError

__all__ = ["DPSGDEach", "DPSGDJoint", "Descent", "descend"]

Matrix = NDArray[np.float64]

#: Fitted values that are in memory at once; a step over more rows is done in parts.
_IN_MEMORY = 2**20
_ROUNDING = 1e-6  # of single precision, in a clipped gradient's length
_LARGEST = 1e6  # outcomes, rates and clips beyond it could overflow single precision
_SMALLEST_RATE = 1e-4  # of sampling


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Settings of one run of DP-SGD."""

    noise_multiplier: float  # noise of scale this times the clip on the sum of gradients
    learning_rate: float
    clip_norm: float
    steps: int
    sampling_rate: float = 1.0
    momentum: float = 0.0
    averaging: float = 0.0  # share of the steps, the last ones, whose coefficients are averaged


class _DPSGD(Baseline):
    """What both variants share.

    Parameters
    ----------
    epsilon, delta, feature_bounds, outcome_bounds, random_state
        As for every `Baseline`.
    learning_rate : float
        Of SGD on the mean over rows of half the squared error, in public units.
    clip_norm : float
        Longer gradients of a row are shortened to it, in public units.
    steps : int
        Number of steps.
    sampling_rate : float
        Probability of a row to be in a step; 1 takes all rows every time.
    momentum : float
        Of SGD; uses the noisy gradients again, hence costs nothing.
    averaging : float
        Average the coefficients of this share of the steps, the last ones; 0 returns the last.
        Costs nothing either.

    Attributes
    ----------
    noise_multiplier_ : float
        Scale of the noise on a sum of gradients, in clips.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        feature_bounds: float = 1.0,
        outcome_bounds: float = 1.0,
        learning_rate: float = 1.0,
        clip_norm: float = 0.5,
        steps: int = 50,
        sampling_rate: float = 1.0,
        momentum: float = 0.0,
        averaging: float = 0.0,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            feature_bounds=feature_bounds,
            outcome_bounds=outcome_bounds,
            random_state=random_state,
        )
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.steps = steps
        self.sampling_rate = sampling_rate
        self.momentum = momentum
        self.averaging = averaging

    def _fit(self, features: Matrix, outcomes: Matrix) -> tuple[Matrix, Guarantee]:
        for name in ("learning_rate", "clip_norm"):
            if not 0 < getattr(self, name) <= _LARGEST:
                raise InputError(
                    f"{name}={getattr(self, name)!r} must lie between 0 and {_LARGEST:g}"
                )
        if not _SMALLEST_RATE <= self.sampling_rate <= 1:
            raise InputError(
                f"sampling_rate={self.sampling_rate!r} must lie between {_SMALLEST_RATE:g} and 1"
            )
        runs = self._runs(outcomes.shape[1])
        self.noise_multiplier_ = self._calibrated(runs)
        slopes = self._descended(features, outcomes)
        return slopes, self._guarantee(runs)

    def _descent(self) -> Descent:
        return Descent(
            noise_multiplier=self.noise_multiplier_,
            learning_rate=self.learning_rate,
            clip_norm=self.clip_norm,
            steps=self.steps,
            sampling_rate=self.sampling_rate,
            momentum=self.momentum,
            averaging=self.averaging,
        )

    def _guarantee(self, runs: int) -> Guarantee:
        epsilon = true_epsilon(
            self.noise_multiplier_,
            self.delta,
            rate=self._rate,
            steps=self.steps,
            compositions=runs,
        )
        how = (
            f"{runs} × {self.steps} Gaussian steps of sampling rate {self.sampling_rate:g} "
            f"and noise multiplier {self.noise_multiplier_:.4g}, composed exactly under replace-one"
        )
        return Guarantee(epsilon=epsilon, delta=self.delta, how=how)

    @property
    def _rate(self) -> float:
        """The rate at which Opacus samples: its coins are multiples of 2⁻²⁴ below the one asked for."""
        return math.ceil(self.sampling_rate * 2**24) / 2**24

    @abstractmethod
    def _runs(self, l: int) -> int:
        """Return how many runs share the budget."""

    @abstractmethod
    def _calibrated(self, runs: int) -> float:
        """Return the noise multiplier."""

    @abstractmethod
    def _descended(self, features: Matrix, outcomes: Matrix) -> Matrix:
        """Return coefficients (d, l)."""


class DPSGDJoint(_DPSGD):
    """One run of Opacus's DP-SGD on `Linear(d, l)`: one clip and one noise for all outcomes.

    The fair modern version of the baseline: its budget is not divided among outcomes. Outcomes are
    divided by `outcome_bounds`, the norm of a whole row of outcomes. Parameters as in the base class.

    Notes
    -----
    Guarantee: (ε, δ) as asked, exactly calibrated under replace-one, for `both`.
    Cost: steps·O(q·n·d·l); beside the rows themselves, little memory.
    """

    def _runs(self, l: int) -> int:
        return 1

    def _calibrated(self, runs: int) -> float:
        return noise_multiplier(
            self.epsilon, self.delta, rate=self._rate, steps=self.steps, compositions=runs
        )

    def _descended(self, features: Matrix, outcomes: Matrix) -> Matrix:
        scaled = features / self.feature_bounds, outcomes / self.outcome_bounds
        slopes = descend(*scaled, self._descent(), self._rng())
        return slopes * (self.outcome_bounds / self.feature_bounds)


class DPSGDEach(_DPSGD):
    """One run of Opacus's DP-SGD per outcome, the budget composed over outcomes: the paper's baseline.

    Parameters as in the base class, and these.

    Parameters
    ----------
    outcome_limit : float, optional
        Public size of a single outcome, by which outcomes are divided; outcome_bounds/√l if None.
        Larger outcomes are not cut: the clip of the gradient is what protects.
    composition : {"zcdp", "pld"}
        How the budget is composed over outcomes: as in the paper (zCDP, looser than need be), or
        exactly.
        Either way `guarantee_` states the exact privacy.
    fitted_outcomes : int, optional
        Fit only so many outcomes, drawn at random, each with the noise that it has among all l. The
        others keep coefficients of zero; `fitted_outcomes_` says which were fitted, and only those
        should be scored. Where outcomes are exchangeable they stand for all.

    Attributes
    ----------
    fitted_outcomes_ : ndarray of int
        Which outcomes were fitted, ascending.

    Notes
    -----
    Guarantee: `guarantee_` holds for the runs of all l outcomes, also if only some were made.
    Cost: l (or `fitted_outcomes`) times steps·O(q·n·d).
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        feature_bounds: float = 1.0,
        outcome_bounds: float = 1.0,
        outcome_limit: float | None = None,
        composition: str = "zcdp",
        fitted_outcomes: int | None = None,
        learning_rate: float = 1.0,
        clip_norm: float = 0.5,
        steps: int = 50,
        sampling_rate: float = 1.0,
        momentum: float = 0.0,
        averaging: float = 0.0,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            feature_bounds=feature_bounds,
            outcome_bounds=outcome_bounds,
            learning_rate=learning_rate,
            clip_norm=clip_norm,
            steps=steps,
            sampling_rate=sampling_rate,
            momentum=momentum,
            averaging=averaging,
            random_state=random_state,
        )
        self.outcome_limit = outcome_limit
        self.composition = composition
        self.fitted_outcomes = fitted_outcomes

    def _runs(self, l: int) -> int:
        return l

    def _calibrated(self, runs: int) -> float:
        calibrations = {"zcdp": noise_multiplier_zcdp, "pld": noise_multiplier}
        if self.composition not in calibrations:
            raise InputError(f"composition={self.composition!r} is unknown; choose 'zcdp' or 'pld'")
        return calibrations[self.composition](
            self.epsilon, self.delta, rate=self._rate, steps=self.steps, compositions=runs
        )

    def _descended(self, features: Matrix, outcomes: Matrix) -> Matrix:
        l = outcomes.shape[1]
        rng = self._rng()
        limit = self.outcome_bounds / l**0.5 if self.outcome_limit is None else self.outcome_limit
        self.fitted_outcomes_ = self._chosen(l, rng)
        slopes = np.zeros((features.shape[1], l))
        scaled = features / self.feature_bounds
        for j in self.fitted_outcomes_:
            slopes[:, j] = descend(scaled, outcomes[:, [j]] / limit, self._descent(), rng)[:, 0]
        return slopes * (limit / self.feature_bounds)

    def _chosen(self, l: int, rng: np.random.Generator) -> NDArray[np.int64]:
        if self.fitted_outcomes is None:
            return np.arange(l)
        if self.fitted_outcomes < 1:
            raise InputError(f"fitted_outcomes={self.fitted_outcomes!r} must be at least 1")
        return np.sort(rng.choice(l, size=min(l, self.fitted_outcomes), replace=False))


def descend(
    features: Matrix, outcomes: Matrix, descent: Descent, rng: np.random.Generator
) -> Matrix:
    """Run Opacus's DP-SGD from zero coefficients and return where it ends, (d, l).

    Guarantee: `dpsgd_accounting.true_epsilon` of the descent; the bounds play no part in it.
    """
    torch = _torch()
    with _one_thread(torch):
        x = torch.as_tensor(features, dtype=torch.float32)
        # Clipping cannot repair an infinity, and single precision ends at 1e38.
        y = torch.as_tensor(np.clip(outcomes, -_LARGEST, _LARGEST), dtype=torch.float32)
        seeds = rng.integers(2**63, size=2)
        sampling, noise = (torch.Generator().manual_seed(int(seed)) for seed in seeds)
        module, optimizer, loss = _private(torch, x, y, descent, noise)
        weight = next(iter(module.parameters()))
        averaged = max(1, round(descent.averaging * descent.steps))
        total = torch.zeros_like(weight, requires_grad=False)
        for step, chosen in enumerate(_batches(len(x), descent, sampling)):
            batch = (x, y) if chosen is None else (x[chosen], y[chosen])
            for part, last in _parts(*batch):
                optimizer.signal_skip_step(not last)  # only the last part adds noise and moves
                loss(module(part[0]), part[1]).backward()
                optimizer.step()
                optimizer.zero_grad()
            if step >= descent.steps - averaged:
                total += weight.detach()
        return np.asarray((total / averaged).numpy().T, dtype=np.float64)


def _private(torch: Any, x: Any, y: Any, descent: Descent, noise: Any) -> tuple[Any, Any, Any]:
    """Return Opacus's module, optimiser and loss, which clip by ghost norms and add the noise."""
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    # Not the usual random start, which would draw from the global generator.
    linear = torch.nn.utils.skip_init(torch.nn.Linear, x.shape[1], y.shape[1], bias=False)
    torch.nn.init.zeros_(linear.weight)
    module = GradSampleModuleFastGradientClipping(
        linear, max_grad_norm=descent.clip_norm, use_ghost_clipping=True
    )
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.SGD(linear.parameters(), lr=descent.learning_rate, momentum=descent.momentum),
        # Single precision lets a clipped gradient be longer than its clip by less than this.
        noise_multiplier=descent.noise_multiplier * (1 + _ROUNDING),
        max_grad_norm=descent.clip_norm,
        expected_batch_size=descent.sampling_rate * len(x),
        generator=noise,
    )

    def half_squared_error(fitted: Any, wanted: Any) -> Any:
        return 0.5 * (fitted - wanted).square().sum(dim=1)  # one number per row

    return module, optimizer, DPLossFastGradientClipping(module, optimizer, half_squared_error)


def _batches(n: int, descent: Descent, generator: Any) -> Iterator[list[int] | None]:
    """Yield the rows of each step, by Opacus's Poisson sampler; None for all of them."""
    if descent.sampling_rate == 1:
        yield from (None for _ in range(descent.steps))
        return
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    yield from UniformWithReplacementSampler(
        num_samples=n,
        sample_rate=descent.sampling_rate,
        generator=generator,
        steps=descent.steps,
    )


def _parts(x: Any, y: Any) -> Iterator[tuple[tuple[Any, Any], bool]]:
    """Cut a step into parts of limited memory, and say which is the last; one part if it is empty."""
    rows = max(1, _IN_MEMORY // y.shape[1])
    for start in range(0, max(1, len(x)), rows):
        stop = start + rows
        yield (x[start:stop], y[start:stop]), stop >= len(x)


def _torch() -> Any:
    try:
        import opacus  # noqa: F401
        import torch
    except ImportError:
        raise InputError(
            "DP-SGD needs PyTorch and Opacus; install them with: "
            "pip install 'primo-dp[experiments]'"
        ) from None
    return torch


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """Compute on one thread, so that sums are added in one order and results repeat."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            # Opacus hooks a layer whose inputs are data and need no gradient, as they should.
            warnings.filterwarnings("ignore", message="Full backward hook is firing")
            yield
    finally:
        torch.set_num_threads(threads)
