"""Check a built site: every link inside it must lead to a file, and to a place in it, that is there.

Run by `make docs`: python docs/check_links.py build/docs
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# The place where a link points: the attribute of each element that holds an address.
ADDRESS = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """The addresses and the anchors of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the element is called and where it leads."""
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag in ADDRESS and ADDRESS[tag] in values:
            self.links.append(values[ADDRESS[tag]])


def pages_of(site: Path) -> list[Path]:
    """List the pages of a site; the theme keeps a template among its static files."""
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.relative_to(site).parts)


def broken_links(site: Path) -> list[str]:
    """List the links of all pages that lead nowhere, each with its page."""
    pages = {path.resolve(): Page(path) for path in pages_of(site)}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            target = target / "index.html" if target.is_dir() else target
            there = target in pages and unquote(address.fragment) in pages[target].anchors
            if not there and (target in pages or not target.is_file()):
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    return broken


def main() -> int:
    """Print what is broken; the exit status says whether anything is."""
    site = Path(sys.argv[1])
    if not (site / "index.html").is_file():
        print(f"{site} holds no built site: run make docs", file=sys.stderr)
        return 2
    broken = broken_links(site)
    for line in broken:
        print(f"broken link: {line}", file=sys.stderr)
    if not broken:
        print(f"{len(pages_of(site))} pages, every link inside the site resolves")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
