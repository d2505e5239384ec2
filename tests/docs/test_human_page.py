"""docs/human.md says of keys and commands what the preset and the code say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import arbiter.options
import council.join_words
import council.moderate
import pki.main
import wrapper.main
from wrapper.adapters.presets import load_person
from wrapper.human.commands import Command
from wrapper.human.pages import key_name

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

PARSERS: dict[str, Callable[[], argparse.ArgumentParser]] = {
    "arbiter": arbiter.options.parser,
    "join": council.join_words.parser,
    "moderate": council.moderate.parser,
    "pki": pki.main.parser,
    "seat": wrapper.main.parser,
}

PAGE = (Path(__file__).parents[2] / "docs" / "human.md").read_text(encoding="utf-8")


def test_every_key_and_every_command_is_there_as_it_is() -> None:
    table = PAGE.split("<!-- keys -->")[1].split("<!-- /keys -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[2:]]
    by_word = {word: key for key, word, _ in rows}
    keys = load_person("human").person.keys
    assert {word.strip("`/") for word in by_word if word} == {command.value for command in Command}
    for command in Command:
        key = dict(keys).get(command.value)  # type: ignore[call-overload]  # some commands have none
        assert by_word[f"`/{command}`"] == ("" if key is None else key_name(key))
    assert rows[1][0] == key_name(keys["newline"])


def test_the_timeout_is_off_as_the_page_says() -> None:
    assert load_person("human").person.timeout_s is None
    assert re.search(r"`/timeout off`, the default", PAGE)


def test_every_command_line_is_understood_and_they_fit_together() -> None:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    lines = [shlex.split(line) for kind, block in blocks if not kind for line in block.splitlines()]
    assert {line[1] for line in lines} == set(PARSERS)
    issued, used = set(), set()
    for line in lines:
        assert line[0] == "consilium"
        options = PARSERS[line[1]]().parse_args(line[2:])
        if line[1:3] == ["pki", "issue"]:
            issued.add(options.name)
        used |= {Path(word).name for word in line if re.fullmatch(r"certs/\w+", word)}
    assert used == issued
