"""What to expect, before any data is read: predictions, theory, and inverse questions.

Everything follows from public numbers and a stated `Signal`; nothing here sees a row.
"""

from primo.forecast.assumptions import Signal
from primo.forecast.compare import compare_plans
from primo.forecast.inverse import epsilon_for, outcomes_for, rows_for
from primo.forecast.table import PlanComparison

__all__ = [
    "PlanComparison",
    "Signal",
    "compare_plans",
    "epsilon_for",
    "outcomes_for",
    "rows_for",
]
