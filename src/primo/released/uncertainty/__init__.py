"""How far to trust a release: intervals, tests and goodness of fit, at no extra privacy.

Everything here is computed from a `Release` alone. Start with `summary` for one outcome, `tidy` or
`write_table` for all of them.
"""

from primo.released.uncertainty.bootstrap import bootstrap_intervals
from primo.released.uncertainty.doubts import bound_doubts
from primo.released.uncertainty.fit import GoodnessOfFit, goodness_of_fit
from primo.released.uncertainty.intervals import (
    Intervals,
    coefficient_intervals,
    contrasts,
    prediction_intervals,
)
from primo.released.uncertainty.multiple import benjamini_hochberg, cauchy_combination
from primo.released.uncertainty.published import PublishedRSquared, published_r_squared
from primo.released.uncertainty.report import Summary, summary
from primo.released.uncertainty.table import tidy, write_table
from primo.released.uncertainty.testing import SlopeTests, tests

__all__ = [
    "GoodnessOfFit",
    "Intervals",
    "PublishedRSquared",
    "SlopeTests",
    "Summary",
    "benjamini_hochberg",
    "bootstrap_intervals",
    "bound_doubts",
    "cauchy_combination",
    "coefficient_intervals",
    "contrasts",
    "goodness_of_fit",
    "prediction_intervals",
    "published_r_squared",
    "summary",
    "tests",
    "tidy",
    "write_table",
]
