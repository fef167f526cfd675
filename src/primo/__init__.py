"""primo: differentially private linear regression with many outcomes."""

import os
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if os.name != "posix":
    raise ImportError(
        "primo needs a POSIX system such as Linux or macOS: it keeps secrets in files whose owner, mode "
        "and links it checks, which Windows cannot do; on Windows use WSL"
    )

if TYPE_CHECKING:
    from primo import plots
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
    from primo.forecast import (
        PlanComparison,
        Signal,
        compare_plans,
        epsilon_for,
        outcomes_for,
        rows_for,
    )
    from primo.ledger import create_ledger, open_ledger
    from primo.planning.plan import Plan
    from primo.privacy.bounds import Bounds
    from primo.privacy.budget import Budget
    from primo.privacy.protection import Protection
    from primo.regressor import PrimoRegressor
    from primo.released.bundle import Bundle, read_bundle, write_bundle
    from primo.released.coefficients import Coefficients, coefficients
    from primo.released.estimation import Estimation
    from primo.released.marginal import summary_statistics
    from primo.released.release import Release
    from primo.released.release_file import load_release, save_release
    from primo.rows.coerce import indicators
    from primo.rows.sources.genotypes.cohort import open_cohort
    from primo.rows.sources.tabular.tables import table_source
    from primo.workflow.extend import extend
    from primo.workflow.fit import Account
    from primo.workflow.perturbed import perturbed_outcomes
    from primo.workflow.pipeline import with_public_features

__version__ = version("primo-dp")

__all__ = [
    "Account",
    "Bounds",
    "BoundsError",
    "Budget",
    "BudgetError",
    "Bundle",
    "Coefficients",
    "Estimation",
    "InputError",
    "LedgerError",
    "NotNumericError",
    "Plan",
    "PlanComparison",
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
    "compare_plans",
    "create_ledger",
    "epsilon_for",
    "extend",
    "indicators",
    "load_release",
    "open_cohort",
    "open_ledger",
    "outcomes_for",
    "perturbed_outcomes",
    "plots",
    "read_bundle",
    "rows_for",
    "save_release",
    "summary_statistics",
    "table_source",
    "with_public_features",
    "write_bundle",
]

#: Where the public names live. They are loaded when first used: a shell that completes `primo` must not
#: wait for scipy.
_HOMES = {
    "Account": "primo.workflow.fit",
    "Bounds": "primo.privacy.bounds",
    "BoundsError": "primo.errors",
    "Budget": "primo.privacy.budget",
    "BudgetError": "primo.errors",
    "Bundle": "primo.released.bundle",
    "Coefficients": "primo.released.coefficients",
    "Estimation": "primo.released.estimation",
    "InputError": "primo.errors",
    "LedgerError": "primo.errors",
    "NotNumericError": "primo.errors",
    "Plan": "primo.planning.plan",
    "PlanComparison": "primo.forecast",
    "PrimoError": "primo.errors",
    "PrimoRegressor": "primo.regressor",
    "PrivacyError": "primo.errors",
    "Protection": "primo.privacy.protection",
    "Release": "primo.released.release",
    "ReproducibleNoiseWarning": "primo.errors",
    "Signal": "primo.forecast",
    "WeakGuaranteeWarning": "primo.errors",
    "coefficients": "primo.released.coefficients",
    "compare_plans": "primo.forecast",
    "create_ledger": "primo.ledger",
    "epsilon_for": "primo.forecast",
    "extend": "primo.workflow.extend",
    "indicators": "primo.rows.coerce",
    "load_release": "primo.released.release_file",
    "open_cohort": "primo.rows.sources.genotypes.cohort",
    "open_ledger": "primo.ledger",
    "outcomes_for": "primo.forecast",
    "perturbed_outcomes": "primo.workflow.perturbed",
    "read_bundle": "primo.released.bundle",
    "rows_for": "primo.forecast",
    "save_release": "primo.released.release_file",
    "summary_statistics": "primo.released.marginal",
    "table_source": "primo.rows.sources.tabular.tables",
    "with_public_features": "primo.workflow.pipeline",
    "write_bundle": "primo.released.bundle",
}

#: Public modules, loaded when first used as well.
_MODULES = ("plots",)


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    if name in _MODULES:
        return import_module(f"primo.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'primo' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
