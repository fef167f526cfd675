"""Check the built site: every link and anchor leads somewhere, and nothing is fetched from elsewhere.

`python -m experiments.site.check`, after `zensical build`; part of `make docs`.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE = Path(__file__).parents[2] / "build" / "site"

#: What a browser fetches by itself; a link that somebody has to click is not among it.
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class _Page(HTMLParser):
    """The anchors of a page, where it links to, and what it makes a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {str(found[key]) for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        address = found.get(FETCHED.get(tag, ""))
        if address and not (tag == "link" and found.get("rel") in ("canonical", "prev", "next")):
            self.fetched.append(str(address))


def problems(site: Path) -> list[str]:
    """Return what is wrong with a built site, in words."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.resolve()] = page
    found = []
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        for address in page.fetched:
            if urlsplit(address).netloc:
                found.append(f"{where} fetches {address}")
        if where.name == "404.html":  # its links start at the root of a server
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{where} links to {link}, which does not exist")
            elif target in pages and parts.fragment:
                anchor, there = unquote(parts.fragment), pages[target].anchors
                if anchor not in there:
                    found.append(f"{where} links to {link}, which has no such anchor")
    return found


def main() -> None:
    """Print what is wrong, and fail if anything is."""
    found = problems(SITE)
    for line in found:
        print(line)
    if found or not (SITE / "search.json").is_file():
        sys.exit(f"{len(found)} problems in {SITE}")


if __name__ == "__main__":
    main()
