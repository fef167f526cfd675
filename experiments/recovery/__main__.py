"""Run the attacks; print or write what was found."""

from __future__ import annotations

import argparse

from experiments.data import SHARED
from experiments.recovery import __doc__ as description
from experiments.recovery.figure import draw
from experiments.recovery.page import generated, write
from experiments.recovery.study import FULL, QUICK, run


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="experiments.recovery", description=description)
    parser.add_argument("--quick", action="store_true", help="in less than a minute, one core")
    parser.add_argument("--simulated", action="store_true", help="people by msprime, not real ones")
    parser.add_argument("--write", action="store_true", help="rewrite docs/recovery.md and .svg")
    options = parser.parse_args()
    if options.write and (options.quick or options.simulated):
        parser.error("the page holds the full run on real people: --write goes alone")
    if options.write and not SHARED.is_dir():
        parser.error(f"the page holds real people, whose genotypes are expected in {SHARED}")
    findings = run(QUICK if options.quick else FULL, simulated=options.simulated)
    if options.write:
        write(findings)
        draw(findings)
    else:
        print(generated(findings))


if __name__ == "__main__":
    main()
