"""What `primo.compare_plans` returns: every variant considered, as numbers and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from primo._util.html import grid
from primo.errors import Advice, Argument, InputError, Message, in_python
from primo.forecast.assumptions import Signal
from primo.forecast.theory import Regime
from primo.privacy.protection import Protection

__all__ = ["R2_TOLERANCE", "Better", "PlanComparison", "Variant"]

#: A simpler way is preferred unless another is predicted to be better by more than this.
R2_TOLERANCE = 0.005


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to release and estimate, and what to expect of it."""

    protection: Protection
    association: str  # "gauss", "projection" or "perturbed"
    estimator: str
    covariance_sigma: float  # noise scales, in scaled units; 0 is exact because public
    association_sigma: float
    outcome_sigma: float
    regime: Regime
    predicted_r2: float  # on new rows
    standard_error: float  # of predicted_r2, from the finite simulation
    no_privacy_r2: float  # of the best fit without any privacy, on new rows

    @property
    def lost(self) -> float:
        """Share of the outcomes' variance that privacy costs: excess error over the variance."""
        return self.no_privacy_r2 - self.predicted_r2

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words."""
        return asdict(self) | {"protection": str(self.protection), "lost": self.lost}


FREQUENCIES = "public allele frequencies"  # how `Better.knowledge` names them


@dataclass(frozen=True, kw_only=True)
class Better:
    """What public knowledge that the bounds do not use would bring."""

    knowledge: str
    predicted_r2: float
    instead_of: float

    def __str__(self) -> str:
        """Return one line of text."""
        return self.render(in_python)

    def render(self, spell: Callable[[Argument | Advice], str]) -> str:
        """Return the same line, with settings as a front end spells them."""
        how = spell(Advice("from_frequencies", "Bounds.from_frequencies"))
        knowledge = self.knowledge.replace(FREQUENCIES, f"{FREQUENCIES} ({how})")
        return f"{self.predicted_r2:.3f} instead of {self.instead_of:.3f} with {knowledge}"


@dataclass(frozen=True, kw_only=True)
class RoundsForecast:
    """How many rounds a release under a protection has, why, and what they bring."""

    protection: Protection
    count: int
    why: Message | None  # None where the number was asked for
    predicted_r2: float | None  # on new rows; None where there is one round
    standard_error: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words."""
        return {
            "protection": str(self.protection),
            "rounds": self.count,
            "why": "" if self.why is None else str(self.why),
            "predicted_r2": self.predicted_r2,
            "standard_error": self.standard_error,
        }


@dataclass(frozen=True, kw_only=True)
class PlanComparison:
    """What `compare_plans` returns: every variant considered. Print it to read it."""

    n: int
    d: int
    l: int
    epsilon: float
    delta: float
    signal: Signal
    assumptions: tuple[str, ...]  # all of them, in words
    variants: tuple[Variant, ...]  # the strongest protection first
    simulated: str = ""  # what stood for the whole, in words; empty if all of it was simulated
    better: tuple[Better, ...] = ()  # than the recommended one, with better public knowledge
    outcome_sd: float | None = None  # what the assumption means in the units of the outcome bounds
    units_found: bool = (
        False  # whether those units follow from the rows, so that there is no such number
    )
    rounds: tuple[RoundsForecast, ...] = ()  # one for each protection, if rounds were asked for

    @property
    def recommended(self) -> Variant:
        """The best variant under the strongest protection that was asked for.

        A weaker protection is a decision about people, not about accuracy, so it is never
        recommended for being more accurate: see `best` for each.
        """
        return self.best(self.variants[0].protection)

    @property
    def several_rounds(self) -> bool:
        """Whether several rounds are forecast beside one; all other numbers are for one round."""
        return any(found.predicted_r2 is not None for found in self.rounds)

    @property
    def protections(self) -> tuple[Protection, ...]:
        """The protections compared, the strongest first."""
        return tuple(dict.fromkeys(v.protection for v in self.variants))

    def best(self, protection: Protection | str) -> Variant:
        """Return the variant to use under a protection.

        The highest predicted R²; a simpler one (Gauss before projection, "auto", which adapts to
        the release, before a fixed estimator) if that costs no more than `R2_TOLERANCE`.
        """
        protection = Protection.parse(protection)
        among = [v for v in self.variants if v.protection is protection]
        if not among:
            raise InputError(
                Argument("protection", str(protection)),
                " is not part of this comparison, which has " + ", ".join(self.protections),
            )
        top = max(v.predicted_r2 for v in among)
        close = [v for v in among if v.predicted_r2 >= top - R2_TOLERANCE]
        return min(close, key=lambda v: (v.association != "gauss", v.estimator != "auto"))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words, ready for JSON."""
        return {
            "n": self.n,
            "d": self.d,
            "l": self.l,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "signal": asdict(self.signal),
            "assumptions": list(self.assumptions),
            "simulated": self.simulated,
            "better_knowledge": [asdict(b) for b in self.better],
            "variants": [v.to_dict() for v in self.variants],
            "recommended": self.recommended.to_dict(),
            "rounds": [found.to_dict() for found in self.rounds],
        }

    def __str__(self) -> str:
        """Return a table that needs no knowledge of privacy theory."""
        return self.render(in_python)

    def render(self, spell: Callable[[Argument | Advice], str]) -> str:
        """Return the same table, with settings as a front end spells them."""
        parts = (*self._head(spell), "", *self._table(), "", *self._advice(spell))
        return "\n".join((*parts, *self._rounds(spell), *self._theory()))

    def _repr_html_(self) -> str:
        """Show the same in a notebook."""
        best = {protection: self.best(protection) for protection in self.protections}
        rows = [
            (
                str(v.protection),
                v.association,
                v.estimator,
                f"{v.predicted_r2:.3f} ± {2 * v.standard_error:.3f}",
                f"{v.no_privacy_r2:.3f}",
            )
            for v in self.variants
        ]
        head = ("what is secret", "association", "estimator", "predicted R²", "no privacy")
        first, *rest = self._head(in_python)
        return grid(
            first,
            head,
            rows,
            strong=[v is best[v.protection] for v in self.variants],
            notes=[
                _joined(rest),
                _joined(self._advice(in_python)),
                *filter(None, [_joined(self._rounds(in_python))]),
            ],
        )

    def _head(self, spell: Callable[[Argument | Advice], str]) -> list[str]:
        own = spell(Advice("own_signal", "signal=Signal(...)"))
        return [
            f"Plan for {_count(self.n, 'row')}, {_count(self.d, 'feature')}, "
            f"{_count(self.l, 'outcome')}; "
            f"epsilon {self.epsilon:g}, delta {self.delta:.3g}. No data was read.",
            *_wrap(
                f"Assumed: {'; '.join(self.assumptions)}. If that is wrong, so is the prediction: "
                f"state your own with {own}." + self._in_units(spell)
            ),
        ]

    def _in_units(self, spell: Callable[[Argument | Advice], str]) -> str:
        if self.units_found:
            return ""
        own = spell(Argument("signal.outcome_sd", ...))
        if self.outcome_sd is None:
            return f" Bounds that fit are assumed; give yours, and {own}, to see what they cost."
        return (
            f" For the outcomes that is a standard deviation of {self.outcome_sd:.3g} (median) in their "
            f"own units; give {own} if yours differs."
        )

    def _table(self) -> list[str]:
        best = {protection: self.best(protection) for protection in self.protections}
        scores = [f"{v.predicted_r2:.3f} ± {2 * v.standard_error:.3f}" for v in self.variants]
        wide = max(16, *map(len, scores)) + 2
        header = (
            f"  {'what is secret':<16}{'association':<13}{'estimator':<11}{'predicted R²':<{wide}}"
            f"{'no privacy':<12}{'noise: XᵀX':<12}{'XᵀY':<10}"
        )
        lines = [header.rstrip()]
        for v, score in zip(self.variants, scores, strict=True):
            mark = "*" if v is best[v.protection] else " "
            sigma = f"{v.covariance_sigma:.3g}" if v.covariance_sigma else "none"
            lines.append(
                f"{mark} {v.protection:<16}{v.association:<13}{v.estimator:<11}{score:<{wide}}"
                f"{v.no_privacy_r2:<12.3f}{sigma:<12}{v.association_sigma:<10.3g}".rstrip()
            )
        lines += _wrap(
            "R²: the share of the variance of all outcomes together that the fit explains on new rows, "
            "1 at best, 0 for predicting the mean, below 0 for worse than that; ± is the precision of "
            "this simulation"
            + (f" ({self.simulated})" if self.simulated else "")
            + ". No privacy: a ridge with the best penalty. * marks the best way to protect what is "
            "secret."
        )
        return lines

    def _advice(self, spell: Callable[[Argument | Advice], str]) -> list[str]:
        chosen = self.recommended
        one = " with one round" if self.several_rounds else ""
        settings = (
            Argument("protection", str(chosen.protection)),
            Argument("association", chosen.association),
            Argument("estimator", chosen.estimator),
        )
        text = (
            f"Recommended: {', '.join(map(spell, settings))}: predicted R²{one} "
            f"{chosen.predicted_r2:.3f}; privacy costs {chosen.lost:.3f}."
        )
        if chosen.predicted_r2 < 0.1 * chosen.no_privacy_r2:
            text += " Little is left of the signal: more rows, fewer outcomes or a larger epsilon."
        for protection in self.protections[1:]:
            other = self.best(protection)
            if other.predicted_r2 > chosen.predicted_r2 + R2_TOLERANCE:
                public = "outcomes" if protection is Protection.FEATURES else "features"
                text += (
                    f" If the {public} are public anyway, "
                    f"{spell(Argument('protection', str(protection)))} gives {other.predicted_r2:.3f}."
                )
        lines = _wrap(text)
        if self.better:
            lines += [
                "",
                f"  Better public knowledge, everything else unchanged: predicted R²{one}",
            ]
            lines += [
                line for better in self.better for line in _wrap(f"- {better.render(spell)}.")
            ]
        return lines

    def _rounds(self, spell: Callable[[Argument | Advice], str]) -> list[str]:
        """Say how many rounds there would be, and what they are predicted to bring."""
        if not self.rounds:
            return []
        lines = ["", "  Several rounds, every one after the first of what is left: predicted R²"]
        for found in self.rounds:
            how = spell(Argument("rounds", found.count))
            text = f"- {found.protection}, {how}"
            if found.predicted_r2 is not None and found.standard_error is not None:
                one = self.best(found.protection).predicted_r2
                text += (
                    f": {found.predicted_r2:.3f} ± {2 * found.standard_error:.3f} instead of "
                    f"{one:.3f} with one round"
                )
                # A reduced problem loses more of what rounds gain than of one round.
                text += ", a rough guide" if self.simulated else ""
            why = "" if found.why is None else f" ({found.why.render(spell)})"
            lines += _wrap(f"{text}{why}.{self._no_gain(found, spell)}")
        return lines

    def _no_gain(self, found: RoundsForecast, spell: Callable[[Argument | Advice], str]) -> str:
        """Say where rounds are predicted to lose; not for a reduced problem, which understates them."""
        one = self.best(found.protection).predicted_r2
        if self.simulated or found.predicted_r2 is None or found.predicted_r2 >= one:
            return ""
        one_round = spell(Argument("rounds", 1))
        return f" Under these assumptions rounds do not help; {one_round} reads the rows once."

    def _theory(self) -> list[str]:
        lines = [
            "",
            "What the paper's theory says: how excess error grows, without its constants, as a share",
            "of the squared bound of one outcome (1 is no better than predicting the mean).",
        ]
        seen = dict.fromkeys((v.protection, v.association) for v in self.variants)
        for protection, association in seen:
            found = next(
                v.regime
                for v in self.variants
                if (v.protection, v.association) == (protection, association)
            )
            square = found.outcome_bound**2
            price = (
                "as accurate as a single outcome would be (“PRIMO for free”)"
                if found.free
                else f"{found.cost:.3g} times that (the paper's cost: {found.printed_cost})"
            )
            lines += _wrap(
                f"{protection}, {association}: row {found.row} of Table 1, since {found.condition}. "
                f"Error {found.rate / square:.2g}, where {found.lower_bound / square:.2g} is the least "
                f"possible for a single outcome: {price}."
                + (" The bound promises nothing here." * found.trivial)
            )
        return lines


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number > 1)}"


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, width=98, initial_indent="  ", subsequent_indent="  ")
