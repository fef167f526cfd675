"""The installed command as a process of its own: what it writes, and how it ends."""

import subprocess
import sys

import pytest

SCRIPT = "from primo.cli import main; import atexit; atexit.register(print, 'at the end'); main()"


def run(*line):
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, *line],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return found.returncode, found.stdout, found.stderr


def test_all_is_written_and_what_was_registered_is_done():
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("primo, version")
    assert out.endswith("at the end\n")


@pytest.mark.parametrize("line", [("nonsense",), ("fit", "--epsilon", "3")])
def test_bad_input_has_its_exit_code(line):
    code, _, err = run(*line)
    assert code == 2
    assert err


def test_no_thread_of_a_library_is_taken_down():
    """`os._exit` is what keeps Arrow's threads from aborting a process that has done its work."""
    script = (
        "import os; from primo.cli import main; real = os._exit;"
        " os._exit = lambda code: (print('left', code, flush=True), real(code)); main()"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, "--version"],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert found.stdout.endswith("left 0\n")
