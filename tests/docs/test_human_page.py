"""docs/human.md says of keys and commands what the preset and the code say."""

from __future__ import annotations

import re
from pathlib import Path

from wrapper.adapters.presets import load_person
from wrapper.human.commands import Command
from wrapper.human.pages import key_name

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
