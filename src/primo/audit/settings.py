"""What is audited: one way to release, on the worst rows that its bounds allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError
from primo.planning.make import extension_plan, make_plan
from primo.planning.plan import Plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.privacy.protection import Protection
from primo.rows.sources.arrays.memory import ArraySource

__all__ = [
    "BLOCK_SHARE",
    "FEATURE_NORM",
    "OUTCOME_NORM",
    "Rows",
    "Setting",
    "as_source",
    "canary_rows",
    "worst_cosine",
]

Matrix = NDArray[np.float64]
Rows = tuple[Matrix, Matrix]  # features and outcomes

#: Bounds of the rows. The values do not matter: the noise is proportional to them.
FEATURE_NORM, OUTCOME_NORM = 2.0, 3.0

#: Squared norm of a block over that of the row, where blocks are attacked: two blocks can trade length.
BLOCK_SHARE = 0.75

#: Features of a block that is attacked.
BLOCK_WIDTH = 2

#: Features where rounds with public outcomes are attacked: the square of the constant, which all rows
#: have in common, is 1/(2√d) of that of the features.
ROUND_FEATURES = 64

#: Rows of a data set whose sampled covariance is attacked: all but one are equal, so few are enough.
SAMPLED_FROM = 20


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One way to release.

    Parameters
    ----------
    epsilon, delta, protection, intercept, split, calibration
        As in `primo.planning.settings.Settings`; `intercept` is its `fit_intercept`.
    sampled
        Share of the rows whose covariance is released; None for all of them.
    reference
        Whether the covariance comes from a public panel.
    extended
        Whether a second release, of other outcomes and at the same cost, follows; both are attacked.
        With `split=2.0` one pair of neighbours is the worst for both.
    norms_found
        Whether bounds are found from the rows first (norm="auto"); all stages are attacked. Nothing
        is stated of the columns, so that their centres and scales are found from histograms.
    scales_stated
        Whether, with `norms_found`, a centre and a scale are stated: centres are then found from sums.
    rounds
        How many rounds the release has; all of them are attacked. Unless `split` says otherwise they
        have the split ratio 2, at which rows that differ in their outcomes only are the worst.
    covariance
        "full"; or "blocks", of two features each; or "none", blocks of one feature. Every canary has two
        blocks, and the norm of a block is √¾ of the row's.
    association
        "gauss"; or "perturbed", noise on the outcomes themselves, under `outcomes`.
    canaries
        Pairs of rows that are attacked in one release, 1 or an even number. They do not overlap, so
        each is a separate trial. A sampled covariance is attacked with one pair.
    n
        Rows.
    claim
        The ε that the audit tries to refute; the one that the release states if None.
    """

    epsilon: float
    delta: float = 1e-6
    protection: str = "both"
    intercept: bool = True
    split: float | None = None
    calibration: str = "exact"
    sampled: float | None = None
    reference: bool = False
    extended: bool = False
    norms_found: bool = False
    scales_stated: bool = False
    rounds: int = 1
    covariance: str = "full"
    association: str = "gauss"
    canaries: int = 10
    n: int = 1000
    claim: float | None = None

    def __post_init__(self) -> None:
        """Refuse settings that cannot be attacked."""
        if self.canaries != 1 and (self.canaries < 1 or self.canaries % 2):
            raise InputError(Argument("canaries", self.canaries), " must be 1 or an even number")
        if self.canaries == 1 and self.rounds != 1 and self._outcomes_public:
            raise InputError(
                Argument("canaries", self.canaries),
                " must be an even number for several rounds with public outcomes",
            )
        if self.canaries > self.n:
            raise InputError(
                Argument("canaries", self.canaries), f" must not exceed the {self.n} rows"
            )
        if self.sampled is not None and not 0 < self.sampled < 1:
            raise InputError(
                Argument("sampled", self.sampled), " must be a share of the rows, in (0, 1)"
            )
        if self.covariance not in ("full", "blocks", "none"):
            raise InputError(
                Argument("covariance", self.covariance),
                " is not audited",
                remedy="choose full, blocks or none; panel releases what none releases",
            )
        if self.association not in ("gauss", "perturbed"):
            raise InputError(
                Argument("association", self.association),
                " is not audited",
                remedy="choose gauss or perturbed",
            )
        self._check_apart()

    def _check_apart(self) -> None:
        """Refuse two settings whose releases are attacked one at a time, and name both."""
        given = {
            "sampled": self.sampled is not None,
            "reference": self.reference,
            "extended": self.extended,
            "norms_found": self.norms_found,
            "rounds": self.rounds != 1,
            "calibration": self.calibration != "exact",
            "split": self.split is not None,
            "association": self.association != "gauss",
            "covariance": self.covariance != "full",
        }
        apart = {
            "extended": ("sampled", "reference"),
            "norms_found": ("sampled", "reference", "extended"),
            "rounds": ("sampled", "reference", "extended", "norms_found"),
        }
        apart["association"] = (*apart["rounds"], "rounds", "calibration", "split")
        apart["covariance"] = (*apart["association"], "association")
        for first, others in apart.items():
            other = next((name for name in others if given[name]), None)
            if given[first] and other is not None:
                raise InputError(
                    Argument(first),
                    " and ",
                    Argument(other),
                    " are not audited together",
                    remedy="leave one of the two out",
                )

    @property
    def name(self) -> str:
        """The name in the table."""
        words = [self.protection]
        if self.calibration != "exact":
            words.append(f"noise as in the {self.calibration}")
        if self.split is not None:
            words.append(f"split {self.split:g}")
        if not self.intercept:
            words.append("no intercept")
        if self.sampled is not None:
            words.append(f"covariance of {self.sampled:.0%} of the rows")
        if self.reference:
            words.append("reference covariance")
        if self.extended:
            words.append("with an extension")
        if self.norms_found:
            words.append("norms found" + ", scales stated" * self.scales_stated)
        if self.rounds != 1:
            words.append(f"{self.rounds} rounds")
        if self.covariance != "full":
            words.append(
                "covariance inside blocks" if self.covariance == "blocks" else "no covariance"
            )
        if self.association == "perturbed":
            words.append("noise on the outcomes")
        return ", ".join(words)

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """The plan, and that of the extension."""
        subsampled = self.sampled is not None
        settings = Settings(
            epsilon=self.epsilon,
            delta=self.delta,
            protection=self.protection,
            feature_bounds=self._feature_bounds(),
            outcome_bounds=self._bounds(OUTCOME_NORM),
            fit_intercept=self.intercept,
            split=2.0 if self.rounds != 1 and self.split is None else self.split,
            calibration=self.calibration,
            covariance_rows=None if self.sampled is None else round(self.sampled * SAMPLED_FROM),
            public_covariance=True if self.reference else None,  # its numbers are not used
            rounds=self.rounds,
            outcome_moments="auto" if self.rounds == 1 else "diagonal",
            covariance=self.covariance,
            association=self.association,
            **self._blocks(),
        )
        plan = make_plan(
            settings,
            n=SAMPLED_FROM if subsampled else self.n,
            # A canary has an outcome of its own and, unless rounds are attacked, two features, or two
            # blocks of features; where rows of outcomes are released, it has its row.
            d=self._features(),
            l=1 if subsampled else 2 if self.association == "perturbed" else self.canaries,
        )
        if not self.extended:
            return (plan,)
        later = extension_plan(
            plan,
            l=plan.l,
            epsilon=self.epsilon,
            delta=self.delta,
            outcome_bounds=Bounds(norm=OUTCOME_NORM),
        )
        return plan, later

    @property
    def _outcomes_public(self) -> bool:
        return Protection.parse(self.protection) is Protection.FEATURES

    def _features(self) -> int:
        """Return how many features there are."""
        if self.rounds != 1 and self._outcomes_public and self.intercept:
            return ROUND_FEATURES
        if self.sampled is not None or self.rounds != 1 or self.association == "perturbed":
            return 2
        return 2 * self.canaries * (BLOCK_WIDTH if self.covariance == "blocks" else 1)

    def _blocks(self) -> dict[str, Any]:
        """Borders and norms of the blocks; the diagonal alone has its norms from ranges."""
        if self.covariance != "blocks":
            return {}
        borders = BLOCK_WIDTH * np.arange(2 * self.canaries + 1)
        norm = FEATURE_NORM * math.sqrt(BLOCK_SHARE)
        return {"blocks": borders.tolist(), "block_norms": norm}

    def _feature_bounds(self) -> Bounds:
        if self.covariance != "none":
            return self._bounds(FEATURE_NORM)
        # Scaled units are half-widths of the range, so a feature is at most 1 long.
        return Bounds(lower=-1.0, upper=1.0, norm=1 / math.sqrt(BLOCK_SHARE))

    def _bounds(self, norm: float) -> Bounds:
        if not self.norms_found:
            return Bounds(norm=norm)
        return Bounds(norm="auto", centre=0.0) if self.scales_stated else Bounds(norm="auto")

    @property
    def stated(self) -> float:
        """The ε that an audit must not exceed."""
        if self.claim is not None:
            return self.claim
        return self.plans[-1].total_epsilon if self.extended else self.plans[0].epsilon


def worst_cosine(plan: Plan) -> float:
    """Return cos(x, x′), constant included, of the neighbours that are furthest apart.

    From mathematics.md section 2: with y′ = -y the squared distance is 2p(1 - a²) + 2q(1 + a), largest
    at a = q/2p; under `features` y stays and a changes its sign. If the covariance is public or paid
    already, only the association counts, and a = 1.
    """
    if plan.protection is Protection.OUTCOMES or not plan.covariance_noisy:
        size = 1.0
    else:
        size = min(1.0, float(plan.grid.q / (2 * plan.grid.p)))
    return -size if plan.protection is Protection.FEATURES else size


def canary_rows(plan: Plan, canaries: int, cosine: float) -> tuple[Rows, Rows]:
    """Return the (features, outcomes) of the canaries and of their replacements.

    Only canary j uses the features 2j and 2j+1 and the outcome j. In its two features
    x = b(cos θ, sin θ) and x′ = ±b(sin θ, cos θ). Every cosine can be reached so, and the difference of
    xxᵀ is diagonal, where the paper's noise (iid on a triangle) is weakest.
    """
    square, constant = plan.features.norm**2, plan.constant**2
    inner = 1.0 if cosine == 1 else (cosine * (square + constant) - constant) / square
    theta = math.asin(min(1.0, abs(inner))) / 2
    own = plan.features.norm * np.array([math.cos(theta), math.sin(theta)])
    other = own if inner == 1 else math.copysign(1.0, inner) * own[::-1]
    j = np.arange(canaries)
    x, replaced = np.zeros((2, canaries, plan.d))
    for place in (0, 1):
        x[j, 2 * j + place] = own[place]
        replaced[j, 2 * j + place] = other[place]
    y = np.zeros((canaries, plan.l))
    y[j, j] = plan.outcomes.norm
    return (x, y), (replaced, y if plan.protection is Protection.FEATURES else -y)


def as_source(features: Matrix, outcomes: Matrix) -> ArraySource:
    """Give rows names for their columns."""
    return ArraySource(
        features=features,
        outcomes=outcomes,
        feature_names=tuple(f"x{i}" for i in range(features.shape[1])),
        outcome_names=tuple(f"y{j}" for j in range(outcomes.shape[1])),
    )
