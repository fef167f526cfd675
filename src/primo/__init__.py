"""primo: differentially private linear regression with many outcomes."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from primo.api import extend
    from primo.archive import load_release, save_release
    from primo.bounds import Bounds
    from primo.bundle import Bundle, read_bundle, write_bundle
    from primo.errors import (
        BoundsError,
        BudgetError,
        InputError,
        LedgerError,
        NotNumericError,
        PrimoError,
        PrivacyError,
        ReproducibleNoiseWarning,
        WeakGuaranteeWarning,
    )
    from primo.estimators import PrimoRegressor
    from primo.fitted import Coefficients, coefficients
    from primo.fitting import Account
    from primo.ledger import create_ledger, open_ledger
    from primo.pipeline import with_public_features
    from primo.planning import PlanTable, Signal, epsilon_for, outcomes_for, plan, rows_for
    from primo.plans import Plan
    from primo.privacy.budget import Budget
    from primo.privacy.protection import Protection
    from primo.release import Release
    from primo.sources.cohort import open_cohort
    from primo.sources.tables import table_source

__version__ = version("primo-dp")

__all__ = [
    "Account",
    "Bounds",
    "BoundsError",
    "Budget",
    "BudgetError",
    "Bundle",
    "Coefficients",
    "InputError",
    "LedgerError",
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
    "create_ledger",
    "epsilon_for",
    "extend",
    "load_release",
    "open_cohort",
    "open_ledger",
    "outcomes_for",
    "plan",
    "read_bundle",
    "rows_for",
    "save_release",
    "table_source",
    "with_public_features",
    "write_bundle",
]

#: Where the public names live. They are loaded when first used: a shell that completes `primo` must not
#: wait for scipy.
_HOMES = {
    "Account": "primo.fitting",
    "Bounds": "primo.bounds",
    "BoundsError": "primo.errors",
    "Budget": "primo.privacy.budget",
    "BudgetError": "primo.errors",
    "Bundle": "primo.bundle",
    "Coefficients": "primo.fitted",
    "InputError": "primo.errors",
    "LedgerError": "primo.errors",
    "NotNumericError": "primo.errors",
    "Plan": "primo.plans",
    "PlanTable": "primo.planning",
    "PrimoError": "primo.errors",
    "PrimoRegressor": "primo.estimators",
    "PrivacyError": "primo.errors",
    "Protection": "primo.privacy.protection",
    "Release": "primo.release",
    "ReproducibleNoiseWarning": "primo.errors",
    "Signal": "primo.planning",
    "WeakGuaranteeWarning": "primo.errors",
    "coefficients": "primo.fitted",
    "create_ledger": "primo.ledger",
    "epsilon_for": "primo.planning",
    "extend": "primo.api",
    "load_release": "primo.archive",
    "open_cohort": "primo.sources.cohort",
    "open_ledger": "primo.ledger",
    "outcomes_for": "primo.planning",
    "plan": "primo.planning",
    "read_bundle": "primo.bundle",
    "rows_for": "primo.planning",
    "save_release": "primo.archive",
    "table_source": "primo.sources.tables",
    "with_public_features": "primo.pipeline",
    "write_bundle": "primo.bundle",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module 'primo' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
