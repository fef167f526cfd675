"""Put one mistake after another into a copy of primo and check that its tests notice.

`python -m benchmarks.mutants` runs all; `--quick` leaves out the slow ones; words choose by name. The
tests run in processes of their own against the copy, two at a time. The unchanged copy has to pass
all of them first. Ends with an error if a mutant survives, or does not fit the source any more.
"""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutants.catalogue import MUTANTS
from benchmarks.mutants.model import Mutant, OutOfDateError

ROOT = Path(__file__).parents[2]
AT_ONCE = 2
TEST_TIMEOUT = 600.0  # seconds for the tests of a mutant

# Runs pytest after checking that primo is the copy, which the path alone does not guarantee.
_RUN = """
import sys, primo, pytest
if not primo.__file__.startswith(sys.argv[1]):
    sys.exit(f"the tests would run against {primo.__file__}")
sys.exit(pytest.main(sys.argv[2:]))
"""


# Errors of a replacement that makes no sense; a test that fails because of them has noticed nothing.
_NONSENSE = ("NameError", "AttributeError", "TypeError", "ImportError", "ModuleNotFoundError")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the tests said."""

    kind: str  # "passed", "failed", or "broken" if they did not run
    seconds: float
    detail: str  # the test that failed, or what went wrong

    @property
    def killer(self) -> str:
        """The test that failed, without its folder."""
        return self.detail.rsplit("/", maxsplit=1)[-1]


def copied(folder: Path) -> Path:
    """Copy the package; compiled files too, which are valid for files of the same age."""
    package = folder / "primo"
    shutil.copytree(ROOT / "src" / "primo", package, ignore=shutil.ignore_patterns("*.nb[ci]"))
    return package


def run_tests(folder: Path, tests: Sequence[str]) -> Verdict:
    """Run tests against the copy in a folder, up to the first that fails."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "300",  # so that the reason of a failure is not cut off
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # they would take half of the time
        # Examples that hypothesis finds for a mistake must not be used again for the real code.
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
    }
    options = ["-x", "-q", "--no-header", "--tb=line", "-rf", "-p", "no:cacheprovider"]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-c", _RUN, str(folder), *options, *tests],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TEST_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Verdict(
            kind="broken", seconds=TEST_TIMEOUT, detail=f"no end after {TEST_TIMEOUT:.0f} s"
        )
    seconds = time.perf_counter() - start
    if done.returncode == 0:
        return Verdict(kind="passed", seconds=seconds, detail="")
    failed = re.search(r"^FAILED (\S+?::\S.*?)(?: - (.*))?$", done.stdout, re.MULTILINE)
    if done.returncode == 1 and failed and not (failed[2] or "").startswith(_NONSENSE):
        return Verdict(kind="failed", seconds=seconds, detail=failed[1])
    return Verdict(kind="broken", seconds=seconds, detail=(done.stdout + done.stderr)[-2000:])


def judge(mutant: Mutant | None, tests: Sequence[str]) -> Verdict:
    """Run tests with a mistake put in, or without one."""
    with tempfile.TemporaryDirectory(prefix="primo-mutant-") as name:
        folder = Path(name).resolve()
        package = copied(folder)
        try:
            if mutant is not None:
                mutant.apply(package)
        except (OutOfDateError, SyntaxError) as error:
            return Verdict(kind="broken", seconds=0.0, detail=str(error))
        return run_tests(folder, tests)


def chosen(quick: bool, words: Sequence[str]) -> list[Mutant]:
    """Return the mutants asked for that can be made here."""
    found = []
    for mutant in MUTANTS:
        if (quick and mutant.slow) or (words and not any(word in mutant.name for word in words)):
            continue
        if mutant.needs is not None and importlib.util.find_spec(mutant.needs) is None:
            print(f"left out, because {mutant.needs} is not installed: {mutant.name}")
            continue
        found.append(mutant)
    return found


def check_unchanged(mutants: Sequence[Mutant], pool: ThreadPoolExecutor) -> bool:
    """Check that all tests pass without a mistake; otherwise a failure would prove nothing."""
    tests = sorted({test for mutant in mutants for test in mutant.killers})
    shares = [share for i in range(AT_ONCE) if (share := tests[i::AT_ONCE])]
    verdicts = list(pool.map(lambda share: judge(None, share), shares))
    for verdict in verdicts:
        if verdict.kind != "passed":
            print(f"without any mistake, the tests {verdict.kind}: {verdict.detail}")
    seconds = max(verdict.seconds for verdict in verdicts)
    print(f"{len(tests)} tests or groups of tests; the unchanged source: {seconds:.0f} s\n")
    return all(verdict.kind == "passed" for verdict in verdicts)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out the slow ones")
    parser.add_argument("words", nargs="*", help="only mutants with one of these in their name")
    options = parser.parse_args(arguments)
    mutants = chosen(options.quick, options.words)
    start, alive = time.perf_counter(), 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        if not check_unchanged(mutants, pool):
            return 1
        print(f"{'mutant':<76} {'file':<35} {'s':>4}  killed by")
        verdicts = pool.map(lambda mutant: judge(mutant, mutant.killers), mutants)
        for mutant, verdict in zip(mutants, verdicts, strict=True):
            killed = verdict.kind == "failed"
            alive += not killed
            result = verdict.killer if killed else f"ALIVE ({verdict.kind}) {verdict.detail}"
            print(
                f"{mutant.name:<76} {mutant.files:<35} {verdict.seconds:4.0f}  {result}", flush=True
            )
    seconds = time.perf_counter() - start
    print(f"\n{len(mutants) - alive} of {len(mutants)} mutants killed, in {seconds:.0f} s")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
