"""README.md leads to every page."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_page_is_in_the_table_and_every_link_leads_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.split("## Read on")[1]
    assert [
        page.name for page in sorted((ROOT / "docs").glob("*.md")) if f"(docs/{page.name})" not in table
    ] == []
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []
