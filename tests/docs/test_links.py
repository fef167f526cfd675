"""Links between pages, and their anchors, lead somewhere; every page is in the site's navigation."""

import re
from pathlib import Path

import pytest

import primo

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ROOT_PAGES = [ROOT / n for n in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [*sorted(DOCS.rglob("*.md")), *ROOT_PAGES]
NAVIGATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
#: Pages that experiments/site/assemble.py makes of files at the root.
MADE = {"reference/changelog.md", "reference/security.md", "reference/contributing.md"}


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))


def slug(heading):
    """The anchor of a heading, as GitHub and the site make it."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip()
    plain = re.sub(r"[`*]", "", plain)
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")


def anchors(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    found, seen = set(), {}
    for heading in re.findall(r"^#{1,6} (.+)$", text, re.M):
        given = re.search(r"\{ *#([\w-]+) *\}$", heading)
        name = given.group(1) if given else slug(heading)
        count = seen.get(name, 0)
        seen[name] = count + 1
        found.add(name if not count else f"{name}-{count}")
        found.add(name if not count else f"{name}_{count}")
    return found


def links(path):
    text = without_code(path.read_text(encoding="utf-8"))
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if ":" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_anchors(page):
    for link in links(page):
        where, _, anchor = link.partition("#")
        target = (page.parent / where).resolve() if where else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), link


def test_a_broken_anchor_is_noticed():
    assert "3-the-arithmetic-is-exact" in anchors(DOCS / "guarantee.md")
    assert "nowhere" not in anchors(DOCS / "guarantee.md")
    assert "epsilon" in anchors(DOCS / "glossary.md")


def test_every_page_is_in_the_navigation_once():
    named = re.findall(r"([\w/-]+\.md)$", NAVIGATION, re.M)
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} | MADE
    assert sorted(named) == sorted(there)


def test_sections():
    tabs = re.findall(r"^  - ([A-Z][\w-]+):$", NAVIGATION, re.M)
    assert tabs == ["Start", "Tutorials", "How-to", "Explanation", "Reference", "Evidence"]


def test_the_reference_has_every_public_name():
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^::: primo\.(\w+)$", page, re.M))
    assert shown == {name for name in primo.__all__ if name != "__version__"}


def test_the_glossary_has_the_words_of_the_program():
    words = anchors(DOCS / "glossary.md")
    needed = {"row", "protection", "bounds", "release", "epsilon", "delta", "mu", "features"}
    assert needed | {"outcomes", "plan", "ledger", "coefficients", "norm"} <= words
