"""Put the pages of the site together in build/docs: `python -m experiments.site.assemble`.

The pages of docs/ are copied; tutorials are taken as they ran (`experiments.site.tutorials`); the
changelog, the security policy and the guide for contributors, which lie at the root, become pages.
What is built from that folder does not depend on which program builds it.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from experiments.site.tutorials import ROOT, TARGET, as_given, as_markdown, sources

DOCS = ROOT / "docs"
ASSEMBLED = ROOT / "build" / "docs"

#: Files at the root of the repository, and the pages they become.
PAGES = {
    "CHANGELOG.md": "reference/changelog.md",
    "SECURITY.md": "reference/security.md",
    "CONTRIBUTING.md": "reference/contributing.md",
}


def assemble() -> None:
    """Write build/docs afresh."""
    shutil.rmtree(ASSEMBLED, ignore_errors=True)
    shutil.copytree(DOCS, ASSEMBLED, ignore=shutil.ignore_patterns("results"))
    for path in sources():
        executed = TARGET / f"{path.stem}.ipynb"
        if not executed.is_file():
            sys.exit(f"{executed.relative_to(ROOT)} is missing; run make tutorials")
        page = ASSEMBLED / "tutorials" / path.name
        page.write_text(_shown(executed), encoding="utf-8")
        _write_notebook(executed, page.with_suffix(".ipynb"))
    for page in ASSEMBLED.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        above = "../" * (len(page.relative_to(ASSEMBLED).parts) - 1)
        for name, target in PAGES.items():
            text = re.sub(rf"\]\((?:\.\./)+{re.escape(name)}\b", f"]({above}{target}", text)
        # To highlight commands; as "console" they would count as what a program printed.
        page.write_text(text.replace("```console\n", "```bash\n"), encoding="utf-8")
    for name, target in PAGES.items():
        (ASSEMBLED / target).write_text(from_root(name), encoding="utf-8")


def from_root(name: str) -> str:
    """Return a file at the root as a page in reference/: its links lead on from there."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](../")
    for other, target in PAGES.items():
        text = text.replace(f"]({other})", f"]({Path(target).name})")
    return text


def _shown(executed: Path) -> str:
    import nbformat

    text = as_markdown(nbformat.read(executed, as_version=4))
    return text.replace("\n\n", f"\n\n[Download this notebook]({executed.name})\n\n", 1)


def _write_notebook(executed: Path, target: Path) -> None:
    """Write a tutorial for readers who run it themselves: without output and hidden cells."""
    import nbformat

    nbformat.write(as_given(nbformat.read(executed, as_version=4)), target)


if __name__ == "__main__":
    assemble()
