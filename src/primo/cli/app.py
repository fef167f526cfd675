"""The `primo` command: its group, its exit codes, and how errors are shown.

Exit code 0: done. 1: could not be done (budget used up, ledger locked, disk full, interrupted).
2: the request or a file is wrong; the message says which and what to do.
"""

from __future__ import annotations

import atexit
import contextlib
import difflib
import json
import os
import sys
import traceback
import warnings
from importlib import import_module
from typing import Any, NoReturn

import click

from primo.cli.render import in_options, in_parts
from primo.errors import BudgetError, LedgerError, PrimoError, PrimoWarning

__all__ = ["main"]

#: Commands and what they do, without loading them.
_COMMANDS = {
    "plan": "Predict the accuracy of every way to protect and fit.",
    "fit": "Fit all outcomes under one privacy budget and publish a release.",
    "extend": "Release new outcomes of the same people.",
    "predict": "Predict all outcomes for the rows of a file.",
    "ld-blocks": "Find blocks of linked variants in a public panel.",
    "score-file": "Export polygenic scores for plink2 or the PGS Catalog.",
    "sumstats": "Export the effect of every variant as summary statistics.",
    "inspect": "Verify a release and print its privacy statement.",
    "report": "Write one self-contained HTML page about a release.",
    "registry-entry": "Write the record that public registries of deployments ask for.",
    "ledger": "Manage a ledger: limits, charges, history.",
    "audit": "Attack the program itself and see how much of epsilon can be proved.",
    "demo": "Run every step on simulated people.",
    "doctor": "Check this machine: what is installed, exact arithmetic, speed.",
    "completion": "Print the completion script of a shell.",
}


class _Commands(click.Group):
    """Commands loaded when they are called: `primo --help` must not wait for scipy."""

    _for_machines = False  # whether --json was given

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module = name.replace("-", "_")
        command: click.Command = getattr(import_module(f"primo.cli.{module}"), module)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for one that does not exist, name the nearest."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], _COMMANDS, n=1)
            hint = (
                f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(_COMMANDS)}"
            )
            ctx.fail(f"no command is called {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        """Run as the installed command, and end the process."""
        try:
            self.main(*args, **options)
        except SystemExit as end:
            _end(end.code)
        _end(0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what click finds wrong with its options is JSON as well, if that is wanted."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if self._for_machines:
                _show_error(type(error).__name__, error.format_message(), error.exit_code)
            raise

    def call(self, line: list[str]) -> None:
        """Run a command line inside this process; errors come back as exceptions."""
        super().main(line, prog_name="primo", standalone_mode=False)

    def main(self, *args: Any, **options: Any) -> Any:
        """Run, and turn every error into a sentence and an exit code."""
        warnings.showwarning = _show_warning
        line = list(args[0] if args else options.get("args") or sys.argv[1:])

        self._for_machines = "--json" in line

        def leave(message: str, code: int, error: BaseException | None) -> NoReturn:
            called = line[0] if line else ""
            _leave(message, code, error, command=called, for_machines=self._for_machines)

        try:
            return super().main(*args, **{**options, "standalone_mode": True})
        except PrimoError as error:
            message = in_options(error, command=line[0] if line else "")
            leave(message, 1 if isinstance(error, BudgetError | LedgerError) else 2, error)
        except KeyboardInterrupt:
            leave("interrupted", 1, None)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except OSError as error:
            # The name of a file and the system's reason; never its content.
            where = f"{error.filename}: " if error.filename else ""
            leave(f"{where}{error.strerror or type(error).__name__}", 1, error)
        except MemoryError as error:
            leave("out of memory; use fewer features or outcomes at once", 1, error)
        except Exception as error:
            # The text of a foreign exception may quote a cell, so only its kind is shown.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            leave(
                f"unexpected {type(error).__name__} at {os.path.basename(frame.filename)}:"
                f"{frame.lineno}. This is a bug in primo; its message is withheld because it could "
                "quote data. PRIMO_DEBUG=1 shows it on this terminal",
                1,
                error,
            )


def _end(code: int | str | None) -> NoReturn:
    """End the process without shutting down the interpreter.

    An Arrow thread that releases a Python object while the interpreter shuts down aborts the process
    (apache/arrow#34314), after all work is done: one run of `primo fit` in twenty-five had exit code
    134. Functions that are registered with `atexit` run here.
    """
    if isinstance(code, str):
        click.echo(code, err=True)
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code or 0)


def _show_error(kind: str, message: str, code: int, **parts: str | None) -> None:
    """Print an error for machines: the option that is wrong and the remedy, where they are known."""
    known = {"argument": None, "remedy": None, **parts}
    click.echo(
        json.dumps({"error": {"kind": kind, "message": message, **known, "exit_code": code}})
    )


def _leave(
    message: str, code: int, error: BaseException | None, *, command: str, for_machines: bool
) -> NoReturn:
    if os.environ.get("PRIMO_DEBUG") and error is not None:
        traceback.print_exception(error)
    if for_machines:
        kind = type(error).__name__ if error is not None else "Interrupted"
        found = in_parts(error, command=command) if isinstance(error, PrimoError) else {}
        _show_error(kind, message, code, **found)
    click.echo(f"primo: {message}", err=True)
    sys.exit(code)


def _show_warning(message: Any, category: type[Warning] = UserWarning, *_: Any, **__: Any) -> None:
    if issubclass(category, RuntimeWarning) and not os.environ.get("PRIMO_DEBUG"):
        return  # from NumPy's arithmetic: no use to a user, and may depend on private values
    text = in_options(message) if isinstance(message, PrimoWarning) else message
    click.echo(f"Note: {text}", err=True)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `primo demo`, then `primo fit --help`. Exit codes: 0 done, 1 could not be "
    "done, 2 bad input.",
)
@click.version_option(package_name="primo-dp", prog_name="primo")
def main() -> None:
    """Private linear regression of many outcomes under one privacy budget."""
