"""Writes the generated pages of the documentation and checks its links.

Usage: python -m tools.documentation [--check]
With --check nothing is written, and a page that is out of date is a fault.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from dsp.config.reference import reference_page
from tools.api_pages import api_pages

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^ {0,3}```.*?^ {0,3}```\s*?$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def pages() -> list[Path]:
    """Give every page that people read."""
    return sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def generated_pages() -> dict[Path, str]:
    """Give the text of every page that is written by a program."""
    found = {DOCS / "reference" / name: text for name, text in api_pages().items()}
    return found | {DOCS / "reference" / "configuration.md": reference_page()}


def stale_pages() -> list[str]:
    """Name the generated pages that are missing, out of date, or generated no more."""
    fresh = generated_pages()
    found = [
        f"{path.relative_to(ROOT)} is out of date: run `make docs` and commit the result"
        for path, text in fresh.items()
        if not path.exists() or path.read_text() != text
    ]
    left = {*(DOCS / "reference" / "api").glob("*.md")} - fresh.keys()
    return found + [f"{path.relative_to(ROOT)} belongs to no module" for path in sorted(left)]


def anchor(heading: str) -> str:
    """Give the anchor of a heading as GitHub makes it."""
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.replace(" ", "-")


def broken_links(page: Path, root: Path = ROOT) -> Iterator[str]:
    """Name the relative links of a page that lead nowhere."""
    text = _CODE.sub("", _FENCE.sub("", page.read_text()))
    for target in _LINK.findall(text):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, fragment = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        where = f"{page.relative_to(root)}: link to {target}"
        if not goal.is_relative_to(root.resolve()):
            yield f"{where} leaves the project"
        elif not goal.exists():
            yield f"{where} leads nowhere"
        elif fragment and fragment not in map(anchor, _HEADING.findall(goal.read_text())):
            yield f"{where}: no such heading"


def unreachable_pages() -> list[str]:
    """Name the pages under docs/ that no other page links to."""
    linked = set()
    for page in pages():
        for target in _LINK.findall(page.read_text()):
            linked.add((page.parent / target.partition("#")[0]).resolve())
    return [
        f"{page.relative_to(ROOT)}: no page links to it"
        for page in pages()
        if page.is_relative_to(DOCS) and page.resolve() not in linked
    ]


def main(arguments: list[str]) -> int:
    """Write or check; the exit code tells whether all is well."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    if not arguments:
        for path, text in generated_pages().items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    faults = [*stale_pages(), *unreachable_pages()]
    faults += [fault for page in pages() for fault in broken_links(page)]
    print(*faults, sep="\n", end="\n" if faults else "", file=sys.stderr)
    if not faults:
        print(f"[docs] {len(pages())} pages, every link leads somewhere")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
