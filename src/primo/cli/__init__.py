"""The command line: thin over the library, one module per command."""

from primo.cli.app import main

__all__ = ["main"]
