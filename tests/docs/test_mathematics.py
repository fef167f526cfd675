"""Every citation of docs/mathematics.md names a section that exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
FOLDERS = ("src", "baselines", "benchmarks", "experiments", "tests", "docs")
MENTION = re.compile(r"mathematics\.md(?![)#])(?:\s+section\s+(\d+))?")


def sections():
    return {int(number) for number in re.findall(r"^## (\d+)\. ", PAGE, re.M)}


def citations():
    """The section that each mention names, or None, with its place."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".py", ".md") or path == Path(__file__):
                continue
            text = path.read_text(encoding="utf-8")
            for found in MENTION.finditer(text):
                if text[found.start() - 1] != "/" and not text[found.end() :].startswith("]"):
                    line = text.count("\n", 0, found.start()) + 1
                    yield f"{path.relative_to(ROOT)}:{line}", found.group(1)


def test_sections_are_numbered_one_after_the_other():
    numbers = sections()
    assert numbers == set(range(1, len(numbers) + 1))
    assert len(numbers) >= 10


def test_every_citation_names_a_section_that_exists():
    cited = dict(citations())
    assert len(cited) > 10
    lost = {
        where: number
        for where, number in cited.items()
        if number is None or int(number) not in sections()
    }
    assert not lost


def test_modules_that_the_page_names_exist():
    package = ROOT / "src" / "primo"
    names = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", PAGE))
    homes = [package, ROOT, *(package / "released" / name for name in ("estimate", "uncertainty"))]
    assert len(names) > 20
    lost = {name for name in names if not any((home / name).exists() for home in homes)}
    assert not lost
