"""What docs/metrics.md has to say, from the catalogue. As a program, it brings the page up to date."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from arbiter.metrics.catalogue import ARBITER, DEBATE, SEATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arbiter.metrics.catalogue import Figure

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"

SECTIONS = {"debate": DEBATE, "seats": SEATS, "arbiter": ARBITER}


def table(figures: Sequence[Figure]) -> str:
    """One section's table."""
    rows = [
        f"| `{figure.name}` | {figure.kind} | {', '.join(f'`{label}`' for label in figure.labels)} "
        f"| {figure.unit} | {figure.meaning} |"
        for figure in figures
    ]
    return "\n".join(
        ["| name | type | labels | unit | meaning |", "| --- | --- | --- | --- | --- |", *rows, ""]
    )


def shown(page: str, section: str) -> str:
    """What the page has between the marks of a section."""
    begin, end = f"<!-- {section} -->\n", f"<!-- /{section} -->"
    return page[page.index(begin) + len(begin) : page.index(end)]


def renewed(page: str) -> str:
    """The page with its tables as they have to be."""
    for section, figures in SECTIONS.items():
        begin, end = f"<!-- {section} -->\n", f"<!-- /{section} -->"
        page = page.replace(begin + shown(page, section) + end, begin + table(figures) + end)
    return page


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE} is up to date\n")
