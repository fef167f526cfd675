"""How far to trust a release: intervals, tests and goodness of fit, at no extra privacy.

Everything here is computed from a `Release` alone. Start with `summary` for one outcome, `tidy` or
`write_table` for all of them.
"""

from primo.uncertainty.bootstrap import bootstrap_intervals
from primo.uncertainty.fit import GoodnessOfFit, goodness_of_fit
from primo.uncertainty.intervals import (
    Intervals,
    coefficient_intervals,
    contrasts,
    prediction_intervals,
)
from primo.uncertainty.multiple import benjamini_hochberg, cauchy_combination
from primo.uncertainty.report import summary
from primo.uncertainty.table import tidy, write_table
from primo.uncertainty.testing import SlopeTests, tests

__all__ = [
    "GoodnessOfFit",
    "Intervals",
    "SlopeTests",
    "benjamini_hochberg",
    "bootstrap_intervals",
    "cauchy_combination",
    "coefficient_intervals",
    "contrasts",
    "goodness_of_fit",
    "prediction_intervals",
    "summary",
    "tests",
    "tidy",
    "write_table",
]
