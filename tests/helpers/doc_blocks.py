"""Code blocks of Markdown pages, with the reason why one is not run, if it has one."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOT_RUN = re.compile(r"<!-- not run: (.+) -->")


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    code: str
    not_run: str | None  # the reason


def blocks(path):
    """Return the fenced blocks of a page, in order."""
    found, start, language, before = [], None, "", ""
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if not line.lstrip().startswith("```"):
            if start is None and line.strip():
                before = line.strip()
            continue
        if start is None:
            start, language = number, line.strip().removeprefix("```").strip()
            continue
        reason = NOT_RUN.fullmatch(before)
        found.append(
            Block(
                page=str(path.relative_to(ROOT)),
                line=start + 1,
                language=language,
                code="\n".join(lines[start + 1 : number]) + "\n",
                not_run=reason.group(1) if reason else None,
            )
        )
        start, before = None, ""
    assert start is None, f"a block of {path} has no end"
    return found


def pages():
    """Return the pages of docs/; tutorials are run by `make tutorials`."""
    docs = ROOT / "docs"
    return sorted(
        path
        for path in docs.rglob("*.md")
        if path.parent.name != "tutorials" or path.name == "index.md"
    )
