"""The plan: everything that is fixed before the first row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from primo._util.html import facts
from primo.errors import Argument, InputError
from primo.privacy.accounting import Cost
from primo.privacy.blocks import BlockGrid
from primo.privacy.bounds import Clip
from primo.privacy.budget import Budget
from primo.privacy.calibration import epsilon_with_margin
from primo.privacy.centre_search import CentreSearch
from primo.privacy.column_search import ColumnSearch
from primo.privacy.grid import Grid
from primo.privacy.norm_search import NormSearch
from primo.privacy.perturbation import ROUNDED_BITS, Perturbation
from primo.privacy.protection import Protection
from primo.privacy.rounds import Rounds

__all__ = ["CovarianceOrigin", "Plan"]


class CovarianceOrigin(StrEnum):
    """Where the covariance of a release comes from."""

    ROWS = "rows"  # these rows: with noise, or exact where the features are public
    REFERENCE = "reference"  # a public reference panel: costs nothing
    EARLIER = "earlier"  # an earlier release of the same rows: paid already
    ROW_SPACE = (
        "row space"  # more public features than rows, or only sums inside blocks: never formed
    )
    BLOCKS = "blocks"  # these rows, inside blocks of features only


MOST_ROWS_PER_PERSON = 10**6

#: Times √l·scale: a norm up to this says that the scale of the outcomes is a standard deviation.
SCALE_FITS = 3.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public contract of one release; `planning.make.make_plan` builds it.

    Guarantee: moments of rows clipped and rounded as `rows.quantise` does, plus discrete
    Gaussian noise of the variances of `grid` on every private block, are `mu`-GDP and satisfy
    (`epsilon`, `budget.delta`) for `protection` under replace-one. `epsilon` is at most the budget's,
    except in paper mode, where the budget is only what the paper claims.

    Examples
    --------
    >>> import numpy as np
    >>> import primo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 2))
    >>> Y = X @ rng.uniform(-1, 1, size=(2, 3))
    >>> model = primo.PrimoRegressor(
    ...     epsilon=5, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=(-2, 2)
    ... )
    >>> plan = model.fit(X, Y).release_.plan
    >>> plan.n, plan.d, plan.l, str(plan.protection)
    (500, 2, 3, 'both')
    >>> plan.epsilon <= 5
    True
    """

    n: int
    d: int
    l: int
    protection: Protection
    budget: Budget
    mu: float
    epsilon: float  # truly given at budget.delta
    margin: float  # lattice margin, included in epsilon
    split: float
    features: Clip
    outcomes: Clip
    intercept: bool
    full_outcome_moments: bool
    missing: str
    grid: Grid
    association: str = "gauss"  # or "projection", "perturbed"
    calibration: str = "exact"  # or "paper", "paper-alg3"
    sampled: int | None = None  # rows in the covariance if it is sub-sampled
    covariance_origin: CovarianceOrigin = CovarianceOrigin.ROWS
    earlier_mu: float = 0.0  # of the earlier releases that this one extends, composed
    rows_per_person: int = 1  # 2 where a row is a haplotype; the guarantee above is for one row
    auto_norms: tuple[str, ...] = ()  # blocks whose norm was asked to be found: norm="auto"
    norm_search: NormSearch | None = None  # noisy histograms that private norms are found from
    centre_search: CentreSearch | None = None  # noisy sums that centres are found from, before that
    column_search: ColumnSearch | None = None  # noisy histograms of columns, before all of that
    rounds: Rounds | None = (
        None  # noise of every round, `grid` that of the first; None: one release
    )
    blocks: BlockGrid | None = None  # borders, radii and noise, where the origin is BLOCKS
    perturbation: Perturbation | None = None  # noise on the outcomes themselves, if "perturbed"

    def __post_init__(self) -> None:
        """Refuse a number of rows per person that is too large for float arithmetic."""
        if self.rows_per_person > MOST_ROWS_PER_PERSON:
            raise InputError(
                Argument("rows_per_person"), f" must be at most {MOST_ROWS_PER_PERSON}"
            )

    def _repr_html_(self) -> str:
        """Show the contract as a table, in a notebook."""
        noise = (
            ("covariance", self.covariance_sigma),
            ("association", self.association_sigma),
            ("outcome moments", self.outcome_sigma),
            *((("each outcome", self.row_sigma),) if self.row_sigma else ()),
        )
        return facts(
            f"Plan: {self.n} row{'s' * (self.n > 1)}, {self.d} feature{'s' * (self.d > 1)}, "
            f"{self.l} outcome{'s' * (self.l > 1)}",
            [
                ("Protected", self.protection.sentence),
                ("Guarantee", f"epsilon {self.epsilon!r} at delta {self.budget.delta!r}"),
                ("mu", f"{self.mu!r} of Gaussian DP"),
                (
                    "Bounds",
                    f"row norm {self.features.norm:.4g} of the features, {self.outcomes.norm:.4g} of "
                    "the outcomes, in scaled units",
                ),
                ("Noise", "; ".join(f"{name} {sigma:.4g}" for name, sigma in noise)),
                ("Covariance", str(self.covariance_origin)),
                ("Calibration", self.calibration),
            ],
        )

    @property
    def round_count(self) -> int:
        """Number of rounds."""
        return 1 if self.rounds is None else self.rounds.count

    @property
    def counted(self) -> tuple[str, ...]:
        """Blocks whose row lengths a first pass counts, to find a norm: with noise if private."""
        return tuple(
            block
            for block in self.auto_norms
            if not self.is_private(block)
            or (self.norm_search is not None and getattr(self.norm_search, block))
        )

    @property
    def declined(self) -> tuple[str, ...]:
        """Blocks with norm="auto" whose rows are too few to find one: the stated bound is used."""
        return tuple(block for block in self.auto_norms if block not in self.counted)

    @property
    def search_passes(self) -> int:
        """How often the rows are read to find bounds, before the moments are summed."""
        centres = 2 * (self.centre_search is not None)
        return 1 + (self.column_search is not None) + centres if self.counted else 0

    @property
    def searched(self) -> Fraction:
        """Squared mu of all stages that find bounds, exactly; part of `mu`."""
        searches = (self.norm_search, self.centre_search, self.column_search)
        return sum((search.spent for search in searches if search is not None), Fraction(0))

    @property
    def centred(self) -> tuple[str, ...]:
        """Blocks whose centre is found from the rows, with noise."""
        searches = (self.centre_search, self.column_search)
        return tuple(
            block
            for block in self.auto_norms
            if any(search is not None and getattr(search, block) for search in searches)
        )

    def is_private(self, block: str) -> bool:
        """Whether "features" or "outcomes" are protected."""
        protection = self.protection
        return protection.features_private if block == "features" else protection.outcomes_private

    @property
    def width(self) -> int:
        """Rows of the covariance: the features and, last, the constant if there is an intercept."""
        return self.d + self.intercept

    @property
    def outcome_scale_fits(self) -> bool:
        """Whether bounds name a spread of outcomes and a norm that fits it: hardly much too wide."""
        clip = self.outcomes
        if clip.box or bool((clip.scale == 1).all()):
            return False
        return bool(clip.norm <= SCALE_FITS * math.sqrt(len(clip.scale)))

    @property
    def features_may_be_shortened(self) -> bool:
        """Whether a norm was stated for the features beside other bounds, which allow longer rows.

        A norm alone may be the length of every row, and one that was found is not far too short.
        """
        clip = self.features
        if "features" in self.auto_norms or (clip.is_plain and not clip.box):
            return False
        return not (clip.box and clip.norm >= clip.longest * (1 - 1e-9))

    @property
    def inside_numbers(self) -> int | None:
        """How many numbers the blocks hold, with the sums of the features; None for a whole matrix."""
        return None if self.blocks is None else self.blocks.numbers + self.d * self.intercept

    @property
    def total_mu(self) -> float:
        """Mu of this release and the earlier ones that it extends, together."""
        return math.hypot(self.mu, self.earlier_mu)

    @property
    def total_epsilon(self) -> float:
        """Epsilon, at budget.delta, of this release and the earlier ones that it extends."""
        return epsilon_with_margin(self.total_mu, self.budget.delta, self.margin)

    @property
    def person_mu(self) -> float:
        """Total mu against replacing all rows of a person: `rows_per_person` times that of one row."""
        return self.rows_per_person * self.total_mu

    @property
    def person_epsilon(self) -> float:
        """Total epsilon, at budget.delta, against replacing all rows of a person.

        From mu where that is several rows: it holds also if the sampled rows are known, while an (ε, δ)
        for one row would need a larger delta for two.
        """
        if self.rows_per_person > 1:
            return epsilon_with_margin(self.person_mu, self.budget.delta, self.margin)
        return self.total_epsilon if self.earlier_mu else self.epsilon

    @property
    def cost(self) -> Cost:
        """What this release adds to everything else released of the same people.

        A secret sample is accounted for by its (epsilon, delta), any other release by its mu.
        """
        if self.draws_sample:
            alone = Cost(epsilon=self.epsilon, delta=self.budget.delta)
        else:
            alone = Cost(mu=self.mu, margin=self.margin)
        return alone.for_group(self.rows_per_person)

    @property
    def _constant_share(self) -> float:
        """Squared constant over the squared norm of the features; 0 without an intercept.

        A share κ multiplies all noise variances by 1 + κ, and those of the means by 1 + 1/κ. One mean
        against d slopes: d(1 + κ) + (1 + 1/κ) is least at κ = 1/√d. Half of that, since slopes in faint
        directions are shrunk anyway; and never shorter than a typical feature.

        With blocks the constant is one more outcome, and the share is of the squared norm of the
        outcomes: d·l associations that are centred by d sums, about means of a quarter of the norm.
        """
        if self.blocks is not None:
            return 0.25 / math.sqrt(self.l) if self.intercept else 0.0
        return max(1 / self.d, 0.5 / math.sqrt(self.d)) if self.intercept else 0.0

    @property
    def feature_norm(self) -> float:
        """Bound on a row of features in scaled units, with the constant if it is a feature."""
        if self.blocks is not None:
            return self.features.norm
        return self.features.norm * math.sqrt(1 + self._constant_share)

    @property
    def outcome_norm(self) -> float:
        """Bound on a row of outcomes in scaled units, with the constant if it is an outcome."""
        if self.blocks is None:
            return self.outcomes.norm
        return self.outcomes.norm * math.sqrt(1 + self._constant_share)

    @property
    def feature_step(self) -> float:
        """Grid step of the features in scaled units."""
        return self.feature_norm / math.sqrt(self.grid.feature_radius_squared)

    @property
    def outcome_step(self) -> float:
        """Grid step of the outcomes in scaled units."""
        return self.outcome_norm / math.sqrt(self.grid.outcome_radius_squared)

    @property
    def constant_steps(self) -> int | None:
        """The constant in grid steps: of the features, or of the outcomes where there are blocks."""
        if not self.intercept:
            return None
        clip = self.features if self.blocks is None else self.outcomes
        return math.floor(clip.norm * math.sqrt(self._constant_share) / self._constant_step)

    @property
    def _constant_step(self) -> float:
        return self.feature_step if self.blocks is None else self.outcome_step

    @property
    def constant(self) -> float:
        """The constant in scaled units, of the features or, with blocks, of the outcomes; or 0."""
        return (self.constant_steps or 0) * self._constant_step

    @property
    def sampling_factor(self) -> float:
        """What the covariance of the sampled rows is multiplied by to stand for all rows."""
        return 1.0 if self.sampled is None else self.n / self.sampled

    @property
    def draws_sample(self) -> bool:
        """Whether the covariance is made of a secret sample of these rows."""
        return self.sampled is not None and self.covariance_origin is CovarianceOrigin.ROWS

    @property
    def covariance_noisy(self) -> bool:
        """Whether this release draws noise for a whole covariance."""
        return self.protection.features_private and self.covariance_origin is CovarianceOrigin.ROWS

    @property
    def covariance_sigma(self) -> float:
        """Noise scale on the diagonal of XᵀX in scaled units; 0 where it is public.

        Of several blocks the largest.
        """
        if not self.protection.features_private:
            return 0.0
        if self.covariance_origin is CovarianceOrigin.REFERENCE:
            return 0.0
        if self.blocks is not None:
            return float(self.blocks.steps_sigma.max()) * self.feature_step**2
        steps = math.exp2(self.grid.covariance_variance_bits / 2)
        return steps * self.feature_step**2 * self.sampling_factor

    @property
    def triangle_bits(self) -> int:
        """How many bits less variance there is off the diagonal of a symmetric block.

        One for svec noise; the paper draws an iid triangle.
        """
        return 1 if self.calibration == "exact" else 0

    @property
    def association_sigma(self) -> float:
        """Noise scale on every entry of XᵀY in scaled units.

        With noise on the outcomes themselves the entry of feature x has noise of scale ‖x‖·`row_sigma`:
        this is then the root mean square over the features, at most.
        """
        if self.perturbation is not None:
            return self.row_sigma * self.feature_norm * math.sqrt(self.n / self.width)
        steps = math.exp2(self.grid.association_variance_bits / 2)
        return steps * self.feature_step * self.outcome_step

    @property
    def feature_sum_sigma(self) -> float:
        """Noise scale of Σx in scaled units, where there are blocks; 0 where it is public."""
        if self.blocks is None or not (self.intercept and self.protection.features_private):
            return 0.0
        steps = math.exp2(self.grid.association_variance_bits / 2)
        return steps * self.feature_step / (self.constant_steps or 1)

    @property
    def outcome_sum_sigma(self) -> float:
        """Noise scale of the association's last row, the constant times Σy; 0 where it is public."""
        if not (self.intercept and self.protection.outcomes_private):
            return 0.0
        if self.blocks is None:
            return self.association_sigma
        return self.outcome_sigma / math.sqrt(2)

    @property
    def outcome_sigma(self) -> float:
        """Noise scale on svec(YᵀY) in scaled units; 0 where the outcomes are public."""
        if not self.protection.outcomes_private:
            return 0.0
        if self.perturbation is not None:  # of Σ(y + e)² − nσ², for outcomes of equal length
            own = self.row_sigma**2
            return math.sqrt(self.n * own * (2 * own + 4 * self.outcomes.norm**2 / self.l))
        return self.residual_sigma

    @property
    def residual_sigma(self) -> float:
        """Noise scale on svec(RᵀR) of residuals as long as outcomes, in scaled units.

        They are private under every protection: where the outcomes are public the features are not.
        """
        return math.exp2(self.grid.outcome_variance_bits / 2) * self.outcome_step**2

    @property
    def row_sigma(self) -> float:
        """Noise scale on every entry of the outcomes in scaled units; 0 unless "perturbed"."""
        return 0.0 if self.perturbation is None else self.perturbation.sigma * self.outcome_step

    @property
    def mean_sigma(self) -> float:
        """Noise scale of the mean of an outcome in scaled units, of a release with an intercept."""
        if not self.protection.outcomes_private:
            return 0.0
        if self.perturbation is not None:
            return self.row_sigma / math.sqrt(self.n)
        return self.outcome_sum_sigma / (self.n * self.constant)

    @property
    def row_step(self) -> float:
        """Step in which outcomes with noise are published, in scaled units."""
        return math.exp2(-ROUNDED_BITS) * self.row_sigma
