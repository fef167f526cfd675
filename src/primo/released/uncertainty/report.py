"""A plain-text summary of one regression, in the manner of statsmodels."""

from __future__ import annotations

import textwrap

import numpy as np

from primo._util.html import plain
from primo.errors import InputError
from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.doubts import bound_doubts
from primo.released.uncertainty.fit import goodness_of_fit
from primo.released.uncertainty.intervals import check, coefficient_block
from primo.released.uncertainty.system import system_of
from primo.released.uncertainty.testing import p_values
from primo.released.uncertainty.trust import FEWEST, doubts, few_for_prior

__all__ = ["Summary", "position", "summary"]

WIDTH = 98


class Summary(str):
    """A text to print; a notebook shows it with its columns in line."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Show the text as it is printed."""
        return str(self)

    def _repr_html_(self) -> str:
        return plain(self)


def summary(
    release: ReleasedMoments,
    outcome: str | int = 0,
    *,
    level: float = 0.95,
    target: str = "population",
) -> Summary:
    """Describe the regression of one outcome in plain text.

    Parameters
    ----------
    outcome
        Name or position.
    release
        As for `coefficient_intervals`.
    level
        As for `coefficient_intervals`.
    target
        As for `coefficient_intervals`.
    """
    check(level=level, kind="confidence", target=target)
    at = position(release, outcome)
    system, plan = system_of(release), release.plan
    part = slice(at, at + 1)
    plain = coefficient_block(system, part, kind="confidence", level=level, target=target)
    shrunk = coefficient_block(system, part, kind="posterior", level=level, target=target)
    fit = goodness_of_fit(release, level=level)
    r_squared, ends = fit.words(at)
    p = p_values(np.asarray(plain.z))[:, 0]
    left = (
        ("Outcome", release.outcome_names[at]),
        ("Rows", f"{plan.n}"),
        ("Features", f"{plan.d}"),
        ("Outcomes released", f"{plan.l}"),
        ("Intervals for", f"the {target}"),
    )
    right = (
        ("R-squared", r_squared),
        (f"{level:.0%} interval", ends),
        ("Verdict", fit.verdict[at]),
        ("Joint p-value", f"{fit.p[at]:.3g}"),
        ("Privacy", f"epsilon {plan.epsilon:.4g}, delta {plan.budget.delta:.2g}"),
    )
    lines = [
        f"{'Private linear regression':^{WIDTH}}".rstrip(),
        "=" * WIDTH,
        *(
            f"{a + ':':<18} {_cut(b, 28):<29} {c + ':':<14} {e:>34}"
            for (a, b), (c, e) in zip(left, right, strict=True)
        ),
        "=" * WIDTH,
        f"{'':<16} {'coef':>10} {'std err':>10} {'z':>8} {'P>|z|':>8} "
        f"{f'[{level:.0%} interval]':>21} {'shrunk':>10} {'± ':>8}",
        "-" * WIDTH,
    ]
    for i, name in enumerate(plain.names):
        z = np.asarray(plain.z)[i, 0]
        half = (shrunk.upper[i, 0] - shrunk.lower[i, 0]) / 2
        mark = "" if plain.trusted[i, 0] else "!"
        weak = "" if shrunk.trusted[i, 0] else "?"
        lines.append(
            f"{_cut(name, 15) + mark:<16} {plain.estimate[i, 0]:>10.4g} "
            f"{plain.standard_error[i, 0]:>10.4g} {z:>8.3f} {p[i]:>8.3f} "
            f"{plain.lower[i, 0]:>10.4g} {plain.upper[i, 0]:>10.4g} "
            f"{shrunk.estimate[i, 0]:>10.4g} {half:>8.3g}{weak}"
        )
    lines.append("=" * WIDTH)
    lines.append(
        "coef: unshrunk, with noise and sampling in its interval. shrunk: what primo.coefficients "
        "returns."
    )
    lines.append(
        "z: tests no effect with a variance of its own, so it is not coef / std err. For the"
    )
    lines.append("   intercept, no effect means the public centres of the bounds instead of 0.")
    if not plain.trusted.all():
        lines.append("!  wide or unbounded, conservative p-value: see below.")
    if few_for_prior(system):
        lines.append(f"?  assumes a spread of effects that fewer than {FEWEST} coefficients tell.")
    elif not shrunk.trusted.all():
        lines.append("?  rests on the assumed spread of effects more than on the release.")
    lines.extend(f"   - {doubt}" for doubt in doubts(system))
    if not fit.trusted[at]:
        lines.append("   - R-squared: the noise leaves it undetermined")
    for said in bound_doubts(release):
        lines += textwrap.wrap(said, WIDTH, initial_indent="   - ", subsequent_indent="     ")
    return Summary("\n".join(line.rstrip() for line in lines))


def position(release: ReleasedMoments, outcome: str | int) -> int:
    """Return where an outcome stands, by its name or its position."""
    names = release.outcome_names
    if isinstance(outcome, str):
        if outcome not in names:
            some = ", ".join(repr(name) for name in names[:5])
            more = " ..." if len(names) > 5 else ""
            raise InputError(
                f"no outcome is called {outcome!r}; there are {len(names)}: {some}{more}"
            )
        return names.index(outcome)
    if not -len(names) <= outcome < len(names):
        raise InputError(f"outcome {outcome} is not one of the {len(names)} outcomes")
    return int(outcome) % len(names)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
