"""docs/command-line.md is what the program says of itself."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date():
    from experiments.command_reference import page

    written = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m experiments.command_reference"
