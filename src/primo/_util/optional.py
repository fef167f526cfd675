"""Optional libraries: imported when used, with one message if they are not installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from primo.errors import InputError

__all__ = ["optional"]


def optional(module: str, *, purpose: str, extra: str | None = None, instead: str = "") -> Any:
    """Import a module of an optional library, or say what it is for and how to install it.

    Parameters
    ----------
    module
        Its name, such as "zarr" or "cyvcf2.cyvcf2".
    purpose
        What it is needed for, as the subject of the sentence: "reading Zarr".
    extra
        The extra of primo-dp that installs it; by default it is installed under its own name.
    instead
        What can be done without it, if anything: "use backend 'primo'".
    """
    try:
        return import_module(module)
    except ImportError:
        library = module.partition(".")[0]
    package = f"'primo-dp[{extra}]'" if extra else library.replace("_", "-")
    otherwise = f", or {instead}" if instead else ""
    raise InputError(f"{purpose} needs {library}: pip install {package}{otherwise}")
