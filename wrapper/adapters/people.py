"""The preset of a person: how long to wait for one, and which key does what. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, get_args

from pydantic import model_validator

from consilium.config import KeyCommand, KeyName, PresetName, Seconds
from wrapper.adapters.parts import Part, Text

if TYPE_CHECKING:
    from collections.abc import Mapping


class PersonTable(Part):
    """How a person is waited for, and which key does what (§10, §11)."""

    timeout_s: Seconds | None = None
    keys: dict[KeyCommand, KeyName]

    @model_validator(mode="after")
    def _each_command_has_a_key_of_its_own(self) -> Self:
        if missing := [command for command in get_args(KeyCommand) if command not in self.keys]:
            raise ValueError(f"keys: {missing[0]} has no key")
        check_keys(self.keys)
        return self


class PersonPreset(Part):
    """A person, who has no program."""

    name: PresetName
    brand: Text
    person: PersonTable


def check_keys(keys: Mapping[KeyCommand, KeyName]) -> None:
    """Refuse a key that would have to do two things. Raises `ValueError`."""
    for command, key in keys.items():
        others = [other for other in keys if other != command and keys[other] == key]
        if others:
            raise ValueError(f"keys: {key} cannot be both {command} and {others[0]}")
