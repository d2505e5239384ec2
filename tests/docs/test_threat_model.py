"""docs/threat-model.md names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / "docs" / name).read_text() for name in ("threat-model.md", "security.md")}

NAMED = re.compile(r"`(tests/[a-z0-9_/]+\.py)(?:::(test_[a-z0-9_]+))?`")


def test_every_test_that_is_named_exists() -> None:
    named = NAMED.findall(PAGES["threat-model.md"])
    assert len(named) > 30
    missing = [
        (path, test)
        for path, test in named
        if not (ROOT / path).exists()
        or (test and re.search(rf"^(async )?def {test}\(", (ROOT / path).read_text(), re.MULTILINE) is None)
    ]
    assert missing == []


def test_every_row_of_a_countermeasure_names_a_test() -> None:
    rows = [
        line
        for section in PAGES["threat-model.md"].split("\n## ")[2:]
        for line in section.splitlines()
        if line.startswith("|") and not line.startswith(("| attempt", "|---"))
    ]
    assert len(rows) > 25
    assert [row for row in rows if not NAMED.search(row)] == []


def test_every_command_and_file_of_the_security_page_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"`?make ([a-z-]+)", PAGES["security.md"]))
    assert len(targets) > 4
    assert [target for target in targets if f"\n{target}:" not in makefile] == []
    files = set(re.findall(r"`((?:images|tests|docs)/[a-z_/.*-]+|constraints\.txt)`", PAGES["security.md"]))
    assert [name for name in files if not list(ROOT.glob(name.rstrip("/")))] == []
