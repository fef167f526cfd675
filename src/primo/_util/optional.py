"""Libraries that an extra installs: imported when first used, with one message where they are absent."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from primo.errors import InputError

__all__ = ["optional"]


def optional(module: str, *, extra: str, purpose: str) -> Any:
    """Import a module of an optional library, or say what it is for and how to install it.

    Parameters
    ----------
    module
        Its name, such as "zarr" or "cyvcf2.cyvcf2".
    extra
        The extra of primo-dp that installs it.
    purpose
        What it is needed for, as the subject of the sentence: "reading Zarr".
    """
    try:
        return import_module(module)
    except ImportError:
        library = module.partition(".")[0]
    raise InputError(f"{purpose} needs {library}: pip install 'primo-dp[{extra}]'")
