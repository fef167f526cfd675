"""`primo doctor`: what is installed, whether arithmetic is exact here, and how fast this machine is."""

from __future__ import annotations

import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import click

from primo.cli.options import json_option
from primo.cli.output import say, show_json, table

if TYPE_CHECKING:
    from primo.rows.exactness import Check

__all__ = ["doctor"]

#: Optional packages: the extra that brings each, and what it enables.
OPTIONAL = {
    "Pgenlib": ("genomics", "PLINK 2 files (--pfile)"),
    "cyvcf2": ("genomics", "VCF and BCF files (--vcf)"),
    "bgen": ("genomics", "BGEN files (--bgen)"),
    "zarr": ("genomics", "Zarr arrays and VCF Zarr (--vcf-zarr)"),
    "distributed": ("cluster", "a Dask cluster (--scheduler)"),
    "psycopg": ("postgres", "a ledger in PostgreSQL"),
    "numba": ("fast", "compiled loops: reading and rounding rows several times faster"),
    "opendp": ("opendp", "noise drawn by OpenDP (--backend opendp)"),
    "matplotlib": ("plots", "figures (primo.plots)"),
}
_NEEDED = ("numpy", "scipy", "scikit-learn", "pyarrow", "cryptography")


@click.command(epilog="Example:  primo doctor")
@click.option(
    "--speed/--no-speed", default=True, help="Measure how fast this machine is (seconds)."
)
@json_option
@click.pass_context
def doctor(ctx: click.Context, /, speed: bool, json_: bool) -> None:
    """Say what is installed, whether BLAS is exact here, and how fast this machine is.

    Reads no data and no ledger. The exit code is 1 if BLAS does not add integers exactly: releases of
    this machine would then not have the guarantee that they state.
    """
    from primo.rows.exactness import probe

    installed = {name: _version(name) for name in ("primo-dp", *_NEEDED, *OPTIONAL)}
    checks = probe()
    measured = _speed() if speed else None
    exact = all(check.exact for check in checks)
    if json_:
        show_json(
            {
                "python": platform.python_version(),
                "system": platform.platform(),
                "cores": os.cpu_count(),
                "installed": installed,
                "blas": _blas(),
                "exact": exact,
                "checks": {check.name: check.exact for check in checks},
                "speed": measured,
            }
        )
    else:
        _show(installed, checks, measured)
    if not exact:
        ctx.exit(1)


def _show(
    installed: dict[str, str | None], checks: list[Check], measured: dict[str, float] | None
) -> None:
    """Print what was found, for people."""
    say(
        f"primo {installed['primo-dp']}, Python {platform.python_version()}, {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores ({sys.executable})"
    )
    say(", ".join(f"{name} {installed[name]}" for name in _NEEDED))
    say("\nOptional packages")
    rows = [
        [name, installed[name] or f"not installed: pip install 'primo-dp[{extra}]'", enables]
        for name, (extra, enables) in OPTIONAL.items()
    ]
    say(table(["package", "version", "enables"], rows))
    say(f"\nBLAS: {_blas()}")
    wrong = [check.name for check in checks if not check.exact]
    if wrong:
        say(
            f"NOT EXACT in {len(wrong)} of {len(checks)} products ({'; '.join(wrong)}). Do not make "
            "releases on this machine: install NumPy from its official wheels, and try again."
        )
    else:
        say(f"Exact: all {len(checks)} products of integers are right to the last bit.")
    if measured is not None:
        say(
            f"\nSpeed: products at {measured['gflops']:.0f} GFLOP/s; a fit of {_ROWS} rows, {_WIDE} "
            f"features and {_WIDE} outcomes in memory takes {measured['fit_seconds']:.2f} s."
        )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _blas() -> str:
    """Name the BLAS that NumPy uses, with its threads."""
    import numpy as np
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    found = [
        f"{lib['internal_api']} {lib['version']} ({lib.get('architecture', 'unknown kernels')}, "
        f"{lib['num_threads']} threads)"
        for lib in threadpool_info()
        if lib["user_api"] == "blas"
    ]
    return "; ".join(dict.fromkeys(found)) or "one that threadpoolctl does not know"


_ROWS, _WIDE = 50_000, 50


def _speed() -> dict[str, float]:
    """Time a product and a fit on simulated rows; the second run counts, the first one loads."""
    import numpy as np

    from primo.regressor import PrimoRegressor

    rng = np.random.default_rng(0)
    square = rng.random((1500, 1500))
    rows = rng.uniform(-1, 1, size=(_ROWS, _WIDE))
    model = PrimoRegressor(epsilon=1, delta=1e-8, feature_bounds=(-1, 1), outcome_bounds=(-1, 1))

    def seconds(work: Any) -> float:
        work()
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return {
        "gflops": 2 * 1500**3 / 1e9 / seconds(lambda: square @ square),
        "fit_seconds": seconds(lambda: model.fit(rows, rows)),
    }
