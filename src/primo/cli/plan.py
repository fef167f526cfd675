"""`primo plan`: what to expect, before any data is read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from primo.cli.option_types import AUTO, PROTECTIONS, Rounds, Whole
from primo.cli.options import cost_options, forecast_options, json_option
from primo.cli.output import say, show_json
from primo.cli.render import spelled
from primo.errors import InputError

if TYPE_CHECKING:
    from primo.forecast import Signal
    from primo.privacy.bounds import Bounds

__all__ = ["plan"]


@click.command(
    epilog="Example:  primo plan --rows 20000 --features 25 --outcomes 1001 --epsilon 5 --protect both"
)
@click.option("--rows", type=Whole(min=1), required=True, help="Number of rows (people).")
@click.option("--features", type=Whole(min=1), required=True, help="Number of features.")
@click.option("--outcomes", type=Whole(min=1), required=True, help="Number of outcomes.")
@cost_options
@click.option(
    "--protect",
    type=PROTECTIONS,
    help="What is secret; all three are compared if not given.",
)
@click.option(
    "--feature-range",
    type=(float, float),
    metavar="LOWER UPPER",
    help="Range of the features; 0 2 for genotypes. Bounds that fit are assumed if not given.",
)
@click.option("--feature-norm", type=float, help="Row norm of the features, in half-widths.")
@click.option(
    "--outcome-range", type=(float, float), metavar="LOWER UPPER", help="Range of the outcomes."
)
@click.option("--outcome-norm", type=float, help="Row norm of the outcomes, in half-widths.")
@click.option(
    "--norms",
    type=click.Choice(["stated", "auto"]),
    default="stated",
    show_default=True,
    help="auto: norms that are not stated are found privately.",
)
@click.option(
    "--rounds",
    type=Rounds(),
    default=AUTO,
    show_default=True,
    help="Predict so many rounds too, or as many as auto takes, beside one.",
)
@forecast_options
@click.option(
    "--covariance",
    type=click.Choice(["full", "blocks", "none"]),
    default="full",
    show_default=True,
    help="What is released of the covariance: all, inside blocks of --block-size, or the diagonal.",
)
@click.option(
    "--block-size",
    type=Whole(min=2),
    default=50,
    show_default=True,
    help="Features in a block.",
)
@click.option("--intercept/--no-intercept", default=True, help="Fit an intercept.")
@click.option(
    "--target-r2",
    type=float,
    help="Find the epsilon that reaches this R² with one round (instead of --epsilon).",
)
@json_option
def plan(
    rows: int,
    features: int,
    outcomes: int,
    epsilon: float | None,
    delta: float | None,
    protect: str | None,
    feature_range: tuple[float, float] | None,
    feature_norm: float | None,
    outcome_range: tuple[float, float] | None,
    outcome_norm: float | None,
    norms: str,
    rounds: int | str,
    signal_r2: float,
    outcome_sd: float | None,
    feature_sd: float | None,
    covariance: str,
    block_size: int,
    intercept: bool,
    target_r2: float | None,
    json_: bool,
) -> None:
    """Predict the accuracy of every way to protect and fit; reads no data, costs nothing."""
    from primo._util.progress import working
    from primo.forecast import Signal, compare_plans, epsilon_for
    from primo.forecast.compare import with_deviations

    if (epsilon is None) == (target_r2 is None):
        raise InputError("give --epsilon, or --target-r2 to find the epsilon that reaches it")
    shape: dict[str, Any] = {
        "n": rows,
        "d": features,
        "l": outcomes,
        "delta": delta,
        "feature_bounds": _bounds("feature", feature_range, feature_norm, norms),
        "outcome_bounds": _bounds("outcome", outcome_range, outcome_norm, norms),
        "fit_intercept": intercept,
    }
    signal = with_deviations(Signal(r2=signal_r2), outcome_sd=outcome_sd, feature_sd=feature_sd)
    if covariance != "full":
        if epsilon is None:
            raise InputError(
                f"--target-r2 is not for --covariance {covariance}; give --epsilon, and try others"
            )
        _show_blocks({**shape, "epsilon": epsilon}, covariance, block_size, protect, signal, json_)
        return
    if target_r2 is not None:
        with working("simulating releases"):
            epsilon = epsilon_for(target_r2, protection=protect or "both", signal=signal, **shape)
    assert epsilon is not None
    with working("simulating releases"):
        found = compare_plans(
            epsilon=epsilon, protection=protect, signal=signal, rounds=rounds, **shape
        )
    if json_:
        show_json(found.to_dict())
        return
    if target_r2 is not None:
        one = " with one round" if found.several_rounds else ""
        say(
            f"R² = {target_r2:g} is predicted to need epsilon = {epsilon:.3g}{one} "
            f"({protect or 'both'}; found to 1 % for the simulated rows, whose own error is beside the "
            "R² below)."
        )
    click.echo(found.render(spelled))


def _show_blocks(
    shape: dict[str, Any],
    covariance: str,
    size: int,
    protect: str | None,
    signal: Signal,
    json_: bool,
) -> None:
    """Print the predicted R² of releases whose covariance is that inside blocks, or the diagonal."""
    from primo._util.progress import working
    from primo.forecast.block_plan import predict_blocks
    from primo.forecast.compare import public_plan

    d = shape["d"]
    settings: dict[str, Any] = {"covariance": covariance}
    if covariance == "blocks":
        settings["blocks"] = [*range(0, d, size), d]
    found = {}
    with working("simulating releases"):
        for protection in (protect,) if protect else ("both", "features", "outcomes"):
            made = public_plan(**shape, protection=protection, **settings)
            found[protection] = made, predict_blocks(made, signal)
    words = next(iter(found.values()))[1].words
    if json_:
        plans = {
            name: {
                "predicted_r2": each.prediction.r2,
                "no_privacy_r2": each.prediction.no_privacy_r2,
                "standard_error": each.prediction.standard_error,
                "mu": made.mu,
            }
            for name, (made, each) in found.items()
        }
        show_json({"covariance": covariance, "plans": plans, "assumptions": list(words)})
        return
    for name, (_, each) in found.items():
        chosen = each.prediction
        click.echo(
            f"{name} secret: predicted R² on new rows {chosen.r2:.3f} (without privacy "
            f"{chosen.no_privacy_r2:.3f})"
        )
    click.echo("Assumed (--signal-r2, --outcome-sd and --feature-sd state other numbers):")
    for assumption in words:
        click.echo(f"  - {assumption}")


def _bounds(
    block: str, given: tuple[float, float] | None, norm: float | None, norms: str
) -> Bounds | None:
    """Return the bounds of a block; None if no option gives any."""
    from primo.privacy.bounds import AUTO, Bounds

    if given is not None and not -math.inf < given[0] < given[1] < math.inf:
        numbers = f"{given[0]:g} {given[1]:g}"
        raise InputError(
            f"--{block}-range {numbers} is no range; give the lower end first, and two finite numbers"
        )
    if norm is not None and not 0 < norm < math.inf:
        raise InputError(f"--{block}-norm {norm:g} must be a positive number")
    stated: float | str | None = AUTO if norm is None and norms == AUTO else norm
    if given is None:
        return None if stated is None else Bounds(norm=stated)
    return Bounds(lower=given[0], upper=given[1], norm=stated)
