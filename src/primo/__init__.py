"""primo: differentially private linear regression with many outcomes."""

from importlib.metadata import version

from primo.api import extend
from primo.archive import load_release, save_release
from primo.bounds import Bounds
from primo.errors import (
    BoundsError,
    InputError,
    NotNumericError,
    PrimoError,
    PrivacyError,
    ReproducibleNoiseWarning,
    WeakGuaranteeWarning,
)
from primo.estimators import PrimoRegressor
from primo.fitted import Coefficients, coefficients
from primo.pipeline import with_public_features
from primo.planning import PlanTable, Signal, epsilon_for, outcomes_for, plan, rows_for
from primo.plans import Plan
from primo.privacy.budget import Budget
from primo.privacy.protection import Protection
from primo.release import Release

__version__ = version("primo-dp")

__all__ = [
    "Bounds",
    "BoundsError",
    "Budget",
    "Coefficients",
    "InputError",
    "NotNumericError",
    "Plan",
    "PlanTable",
    "PrimoError",
    "PrimoRegressor",
    "PrivacyError",
    "Protection",
    "Release",
    "ReproducibleNoiseWarning",
    "Signal",
    "WeakGuaranteeWarning",
    "__version__",
    "coefficients",
    "epsilon_for",
    "extend",
    "load_release",
    "outcomes_for",
    "plan",
    "rows_for",
    "save_release",
    "with_public_features",
]
