"""What is known of a client, as data: how it is called, what it prints, where it keeps its chats (§3.3.B).

A preset is a TOML file; docs/adapters.md tells how to write one. Unknown keys, unknown gaps in a template and
patterns that do not compile are refused when it is loaded, in words that name the file and the key.
"""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Self

import orjson
from pydantic import Field, ValidationError, model_validator

from consilium.config import HUMAN, PresetName
from consilium.errors import UserError
from wrapper.adapters import gaps
from wrapper.adapters.logins import Login
from wrapper.adapters.parts import (
    Chat,
    Environment,
    KnownFault,
    Network,
    Part,
    PatternFromHere,
    Profile,
    ProfileName,
    Run,
    Setting,
    SettingName,
    State,
    Text,
    Version,
)
from wrapper.adapters.people import PersonPreset
from wrapper.adapters.places import AnswerPlaces
from wrapper.adapters.screens import Terminal
from wrapper.adapters.trying import Conformance

if TYPE_CHECKING:
    from collections.abc import Mapping


OWN_PRESETS = "presets"
"""The folder beside a council file in which presets of its own stand."""


class Preset(Part):
    """One client.

    ``behind`` are patterns of the program itself, seen from the folder of what ``executable`` really is: a
    launcher would leave it running when it is killed. ``interpreter`` is what runs it, if it is not a program
    by itself.
    """

    name: PresetName
    brand: Text
    executable: Text
    behind: tuple[PatternFromHere, ...] = ()
    interpreter: tuple[Text, ...] = ()
    install: Text
    version: Version
    settings: dict[SettingName, Setting] = Field(default_factory=dict)
    run: Run
    chat: Chat
    profiles: dict[ProfileName, Profile]
    env: Environment = Environment()
    state: State
    answer: AnswerPlaces
    faults: tuple[KnownFault, ...] = ()
    network: Network
    login: Login | None = None
    terminal: Terminal | None = None
    conformance: Conformance | None = None

    @model_validator(mode="after")
    def _gaps_are_those_that_there_are(self) -> Self:
        gaps.check_names(self)
        return self

    @model_validator(mode="after")
    def _patterns_compile(self) -> Self:
        patterns = {
            "version.pattern": self.version.pattern,
            "chat.pattern": self.chat.pattern,
            **{f"settings.{name}.pattern": one.pattern for name, one in self.settings.items() if one.pattern},
            **{f"faults[{place}].pattern": known.pattern for place, known in enumerate(self.faults)},
        }
        for where, pattern in patterns.items():
            try:
                groups = re.compile(pattern).groups
            except re.error as error:
                raise ValueError(f"{where}: {error}") from None
            if where == "version.pattern" and groups != 1:
                raise ValueError(f"{where}: one group, which is the version's number")
        return self

    @model_validator(mode="after")
    def _an_interpreter_has_something_to_run(self) -> Self:
        if self.interpreter and not self.behind:
            raise ValueError("interpreter: it runs what `behind` finds, and there is no such key")
        return self

    @model_validator(mode="after")
    def _it_is_tried_with_settings_that_there_are(self) -> Self:
        tried = self.conformance.settings if self.conformance else {}
        if unknown := tried.keys() - self.settings.keys():
            raise ValueError(f"conformance.settings: there is no setting {min(unknown)}")
        return self

    @model_validator(mode="after")
    def _it_has_a_profile(self) -> Self:
        if not self.profiles:
            raise ValueError("profiles: restricted, native or both")
        return self

    @model_validator(mode="after")
    def _gaps_are_where_they_have_to_be(self) -> Self:
        gaps.check_places(self)
        return self

    @model_validator(mode="after")
    def _what_is_put_back_is_known(self) -> Self:
        if (self.chat.turn == "restore") != bool(self.state.chat):
            raise ValueError(
                "state.chat: the files that chat.turn = restore puts back, and no other turn does"
            )
        return self

    @property
    def reports_usage(self) -> bool:
        """Whether the client says what a turn takes in tokens, as far as this preset can read it."""
        return bool(self.answer.counted("tokens_in") or self.answer.counted("tokens_out"))

    def takes_as_login(self, variable: str) -> bool:
        """Whether the client takes ``variable`` for a login, in whose place another one serves as well."""
        return self.login is not None and variable in self.login.variables

    def profile(self, name: ProfileName) -> Profile:
        """The harness profile ``name``. Raises `UserError` if the client has none that is known."""
        if name not in self.profiles:
            known = ", ".join(self.profiles)
            raise UserError(f"the client {self.name} has no harness profile {name}", hint=f"it has: {known}")
        return self.profiles[name]

    def in_terminal(self, name: ProfileName) -> Terminal:
        """How the client is used in a terminal, in the harness profile ``name``. Raises `UserError`."""
        if self.terminal is None:
            raise UserError(
                f"the client {self.name} cannot be used in a terminal: its preset has no [terminal]",
                hint="adapter: native drives it by its non-interactive mode",
            )
        if name not in self.terminal.harness:
            known = ", ".join(self.terminal.harness)
            raise UserError(
                f"the client {self.name} has no harness profile {name} in a terminal", hint=f"it has: {known}"
            )
        return self.terminal

    def settings_from(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The settings that the wrapper's ``environment`` gives."""
        return {
            name: environment[setting.variable]
            for name, setting in self.settings.items()
            if setting.variable is not None and environment.get(setting.variable)
        }

    def complete(self, given: Mapping[str, str]) -> dict[str, str]:
        """A value for every setting that needs one. Raises `UserError` for one that is missing or unfit."""
        for name, value in given.items():
            if name not in self.settings:
                known = ", ".join(self.settings) or "none"
                raise UserError(f"the client {self.name} has no setting {name}", hint=f"it has: {known}")
            if not value.isprintable():
                raise UserError(f"the setting {name} of the client {self.name} must be one line of text")
        values = {name: self._value(name, given) for name in self.settings}
        return {name: value for name, value in values.items() if value is not None}

    def _value(self, name: str, given: Mapping[str, str]) -> str | None:
        setting = self.settings[name]
        value = given.get(name, setting.default)
        if value is None and not setting.may_be_left_out:
            also = f", or the variable {setting.variable}" if setting.variable else ""
            raise UserError(f"the client {self.name} needs the setting {name}{also}", hint=setting.help)
        if value is not None and setting.pattern and not re.fullmatch(setting.pattern, value):
            raise UserError(
                f"the setting {name} of the client {self.name} cannot be {value!r}", hint=setting.help
            )
        return value


def load_preset(name: str, extra: Path | None = None) -> Preset:
    """The preset called ``name``: ``name.toml`` in the folder ``extra``, else among those that come along.

    Raises `UserError` if there is none, or if it is not a client's.
    """
    return read_preset(_file(name, extra))


def load_person(name: str, extra: Path | None = None) -> PersonPreset:
    """The preset of a person called ``name``. Raises `UserError` if there is none, or if it is a client's."""
    found = _read(_file(name, extra))
    if isinstance(found, Preset):
        raise UserError(
            f"the preset {name} is a client's, not a person's",
            hint=f"leave out adapter: human, or take the preset {HUMAN}",
        )
    return found


def read_preset(path: Path) -> Preset:
    """The client's preset in the file ``path``. A `UserError` names the file, the key and the rule."""
    found = _read(path)
    if isinstance(found, PersonPreset):
        raise UserError(
            f"the preset {found.name} is a person's, not a client's", hint="it goes with adapter: human"
        )
    return found


def own_presets(council_file: Path | None) -> Path | None:
    """The folder `presets/` beside a council file, where it has presets of its own."""
    folder = None if council_file is None else council_file.parent / OWN_PRESETS
    return folder if folder is not None and folder.is_dir() else None


def preset_names() -> list[str]:
    """The presets that come along, people's too."""
    return sorted(path.stem for path in _packaged().glob("*.toml"))


def _file(name: str, extra: Path | None) -> Path:
    files = {
        path.stem: path for folder in (_packaged(), extra) if folder for path in sorted(folder.glob("*.toml"))
    }
    if name not in files:
        close = get_close_matches(name, files, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        raise UserError(
            f"there is no preset called {name!r}", hint=f"{meant}known: {', '.join(sorted(files))}"
        )
    return files[name]


def _read(path: Path) -> Preset | PersonPreset:
    """Whatever preset the file holds: a person's, if it has the table ``person``."""
    try:
        tree = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, or not TOML
        raise UserError(f"{path}: {error}") from None
    if tree.get("name") != path.stem:
        raise UserError(f"{path}: name must be {path.stem!r}, like the file")
    model: type[Preset | PersonPreset] = PersonPreset if "person" in tree else Preset
    try:
        return model.model_validate_json(orjson.dumps(tree, option=orjson.OPT_PASSTHROUGH_DATETIME))
    except ValidationError as error:
        raise UserError(f"{path}: {_first_problem(error)}") from None
    except TypeError as error:  # a date, or a number beyond 64 bits: no preset holds one
        raise UserError(f"{path}: {error}") from None


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{place}: there is no such key"
    words = problem["msg"].removeprefix("Value error, ")
    return f"{place}: {words}" if place else words


def _packaged() -> Path:
    return Path(__file__).parent.parent / "presets"
