"""Options that several commands share, each declared once. Those about files of rows: `data_options`."""

from __future__ import annotations

import click

from primo.cli.data_options import missing_option
from primo.cli.option_types import AUTO, FILE, PROTECTIONS, Rounds, Whole, together
from primo.privacy.norm_search import DEFAULT_SHARE

__all__ = [
    "cost_options",
    "engine_options",
    "estimator_option",
    "forecast_options",
    "json_option",
    "ledger_options",
    "norms_option",
    "out_options",
    "person_option",
    "release_argument",
    "release_options",
]

json_option = click.option("--json", "json_", is_flag=True, help="Print JSON, for machines.")

release_argument = click.argument("release", type=FILE)

cost_options = together(
    click.option("--epsilon", type=float, help="Privacy budget of this release: epsilon."),
    click.option("--delta", type=float, help="Privacy budget of this release: delta, below 1/n."),
)

forecast_options = together(
    click.option(
        "--signal-r2",
        type=float,
        default=0.3,
        show_default=True,
        help="For the prediction: share of the outcomes' variance that the features explain.",
    ),
    click.option(
        "--outcome-sd",
        type=float,
        help="For the prediction: typical standard deviation of an outcome, in its own units.",
    ),
    click.option(
        "--feature-sd",
        type=float,
        help="For the prediction: typical standard deviation of a feature, in its own units.",
    ),
)

estimator_option = click.option(
    "--estimator",
    type=click.Choice(["auto", "ridge", "filter", "one-sided", "two-sided"]),
    default="auto",
    show_default=True,
    help="How coefficients are computed from the release; costs no privacy.",
)

person_option = click.option(
    "--rows-per-person",
    type=Whole(min=1),
    default=1,
    show_default=True,
    help="How many rows one person may own; the ledger is charged for all of them.",
)

norms_option = click.option(
    "--norms",
    type=click.Choice(["stated", "auto"]),
    default="stated",
    show_default=True,
    help="auto: find row norms privately, for a small part of the budget, where none is stated.",
)

release_options = together(
    click.option(
        "--protect",
        type=PROTECTIONS,
        default="both",
        show_default=True,
        help="What is secret about a person (full, feature and label are accepted, too).",
    ),
    click.option(
        "--bounds", type=FILE, help="TOML file with public bounds and levels (docs/data.md)."
    ),
    norms_option,
    click.option(
        "--norm-share",
        type=float,
        default=DEFAULT_SHARE,
        show_default=True,
        help="Share of the budget (of mu squared) that finds norms. More is spent, up to half of "
        "the budget, where rows are few or centres and scales are found, too: --dry-run says it.",
    ),
    click.option(
        "--rounds",
        type=Rounds(),
        default=AUTO,
        show_default=True,
        help="How often the rows are read under the one budget: each round after the first looks at "
        "what is left. auto: chosen from public numbers.",
    ),
    missing_option,
    person_option,
    click.option(
        "--association",
        type=click.Choice(["gauss", "projection", "perturbed", "auto"]),
        default="gauss",
        show_default=True,
        help="Mechanism for the association. perturbed: noise on the outcomes themselves, where "
        "the features are public.",
    ),
    estimator_option,
    click.option("--intercept/--no-intercept", default=True, help="Fit an intercept."),
    click.option("--split", type=float, help="Ratio of association to covariance, at most 2."),
    click.option(
        "--outcome-moments",
        type=click.Choice(["auto", "full", "diagonal"]),
        default="auto",
        show_default=True,
        help="Which second moments of the outcomes are released as well, at no cost.",
    ),
    click.option(
        "--covariance",
        type=click.Choice(["full", "blocks", "panel", "none", "auto"]),
        default="full",
        show_default=True,
        help="What is released of the covariance: all, inside --ld-blocks, or the diagonal (none, and "
        "panel). auto: chosen from public numbers.",
    ),
    click.option(
        "--ld-blocks",
        type=FILE,
        help="BED file (chromosome, start, end) of public blocks of linked variants. With --ld-panel: "
        "where its correlations are used; found from the panel if not given.",
    ),
    click.option(
        "--ld-panel",
        type=FILE,
        multiple=True,
        help="With --covariance panel: genotypes of public people (.bed, .pgen, .bgen or VCF), whose "
        "correlations the published scores are made with. May be repeated, or a pattern.",
    ),
    click.option(
        "--covariance-rows",
        type=Whole(min=1),
        help="Compute the covariance from a sample of so many rows.",
    ),
    click.option("--public-covariance", type=FILE, help=".npy: covariance of a public panel."),
    click.option("--public-mean", type=FILE, help=".npy: means of the same panel."),
    click.option(
        "--calibration",
        type=click.Choice(["exact", "paper", "paper-alg3"]),
        default="exact",
        show_default=True,
        help="paper: noise scales as the paper prints them, to reproduce its figures.",
    ),
)

ledger_options = together(
    click.option("--ledger", help="Ledger to charge: a file, or postgresql://... for a team."),
    click.option("--ledger-key", type=FILE, help="Key of the ledger, if not beside it."),
    click.option("--purpose", default="", help="What the release is for; kept in the ledger."),
    click.option("--dataset", help="Name of the data set in the ledger, when it is new there."),
    click.option(
        "--user", envvar="PRIMO_USER", help="User name for the ledger; default: the login name."
    ),
)

engine_options = together(
    click.option(
        "--threads",
        type=Whole(1, 1024),
        help="Threads on this machine; default: its cores.",
    ),
    click.option(
        "--workers",
        type=Whole(1, 1024),
        help="Worker processes of a local Dask cluster.",
    ),
    click.option("--scheduler", help="Address of a Dask scheduler, for example tcp://host:8786."),
)

out_options = together(
    click.option("--out", type=FILE, help="Folder to write the release to, or a .zip file."),
    click.option(
        "--dry-run",
        is_flag=True,
        help="Print plan, cost and predicted accuracy; open no private column and match no ids.",
    ),
    click.option(
        "--resume",
        is_flag=True,
        help="Finish the interrupted release at --out: paid once, noise drawn once.",
    ),
)
