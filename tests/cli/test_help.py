"""Help answers at once: it loads click and the command's own module, and nothing heavy."""

import json
import subprocess
import sys

import click
import pytest

from primo.cli import main

#: Modules that Python, click and a command's options need: about 210 in Python 3.11. NumPy alone brings
#: 150 more, the libraries behind a fit a thousand.
MOST_MODULES = 260
HEAVY = {"cryptography", "jinja2", "jsonschema", "matplotlib", "mpmath", "numpy", "pyarrow", "rich"}
HEAVY |= {"scipy", "sklearn", "sqlite3", "threadpoolctl"}

SCRIPT = """
import json, sys
sys.argv = ["primo", *sys.argv[1:]]
from primo.cli.app import main
try:
    main.main()
except SystemExit as end:
    print(json.dumps([end.code, sorted(sys.modules)]), file=sys.stderr)
"""


def commands(group=main, above=()):
    """Yield the words of every command: () for the program itself, ("ledger", "init"), ..."""
    yield above
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*above, name))
        else:
            yield (*above, name)


@pytest.mark.parametrize("words", list(commands()), ids=lambda words: " ".join(words) or "primo")
def test_help_loads_nothing_heavy(words):
    line = [sys.executable, "-c", SCRIPT, *words, "--help"]
    ran = subprocess.run(line, capture_output=True, text=True, check=True)
    code, modules = json.loads(ran.stderr)
    assert code == 0
    assert ran.stdout.startswith("Usage:")
    assert not HEAVY & {name.partition(".")[0] for name in modules}
    assert len(modules) <= MOST_MODULES


def test_the_public_names_load_nothing_until_used():
    script = "import sys, primo; dir(primo); print(sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "primo.errors" not in ran.stdout
    assert "numpy" not in ran.stdout


@pytest.mark.parametrize("module", ["workflow.fit", "forecast", "report.page", "released.bundle"])
def test_no_command_waits_for_scipy_stats(module):
    """It takes half a second of CPU to load; `scipy.special` has the two functions that are needed."""
    script = f"import sys, primo.{module}; print('scipy.stats' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
