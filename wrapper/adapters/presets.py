"""What is known of a client, as data: how it is called, what it prints, where it keeps its chats (§3.3.B).

A preset is a TOML file. Nothing in it is optional by accident: unknown keys, unknown gaps in a template and
patterns that do not compile are refused when it is loaded, in words that name the file and the key.

``{name}`` in a template is one of the preset's settings or one of `GAPS`.
"""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from consilium.config import PresetName
from consilium.errors import UserError
from consilium.messages import Fault, PromptSent
from wrapper.adapters import templates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GAPS = frozenset({"home", "system_file"})
"""What every template may name: the folder of the client's state, and the file with the system prompt."""

ID_GAP = "id"
"""What a template for an existing chat names as well."""

Text = Annotated[str, StringConstraints(min_length=1)]
Pointer = Annotated[str, StringConstraints(pattern=r"^(/[^/]+)+$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
SettingName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$")]
Number = Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)*$")]


class Part(BaseModel):
    """Base of a preset and of its parts: frozen, strict, deaf to nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Version(Part):
    """How the client says its version, and the oldest that is understood."""

    argv: tuple[str, ...]
    pattern: Text
    minimum: Number


class Setting(Part):
    """A value from the caller, or from the wrapper's ``variable``; without ``default`` it has to be given."""

    help: Text
    default: str | None = None
    variable: Variable | None = None


class Run(Part):
    """The arguments of a chat's first turn and of every later one, and how the turn is passed.

    ``output``: ``at_end`` for a client that prints when it is done, so that only the whole turn's time can be
    bounded; ``streamed`` for one that prints as it goes, whose silence means something.
    """

    first: tuple[str, ...]
    next: tuple[str, ...]
    prompt: Literal["stdin"]
    output: Literal["at_end", "streamed"]


class Environment(Part):
    """What the client gets of the wrapper's variables (``pass``), and what is set in any case."""

    passed: tuple[Variable, ...] = Field(default=(), alias="pass")
    set: dict[Variable, str] = {}


class State(Part):
    """Where the client keeps its chats.

    ``variables`` are set to the seat's own folder. ``files`` are written there before the first turn; a
    setting in them becomes a JSON string, quotes included. ``proof`` is a pattern for a file that exists as
    long as the chat ``{id}`` does.
    """

    variables: tuple[Variable, ...]
    files: dict[FileName, str] = {}
    proof: Text


class AnswerPlaces(Part):
    """Where in the client's output things are: JSON pointers (RFC 6901)."""

    format: Literal["json"]
    id: Pointer
    text: Pointer
    model: Pointer | None = None
    tokens_in: Pointer | None = None
    tokens_out: Pointer | None = None
    tokens_cached: Pointer | None = None
    usd: Pointer | None = None


class KnownFault(Part):
    """What an error message of the client means: a regular expression, searched in what it said."""

    pattern: Text
    fault: Annotated[Fault, Field(strict=False)]
    prompt_sent: Annotated[PromptSent, Field(strict=False)] = PromptSent.MAYBE


class Network(Part):
    """The hosts that the client has to reach; for the egress proxy."""

    hosts: tuple[Text, ...]


class Preset(Part):
    """One client."""

    name: PresetName
    brand: Text
    executable: Text
    install: Text
    version: Version
    settings: dict[SettingName, Setting] = {}
    run: Run
    env: Environment = Environment()
    state: State
    answer: AnswerPlaces
    faults: tuple[KnownFault, ...] = ()
    network: Network

    @model_validator(mode="after")
    def _templates_name_what_there_is(self) -> Self:
        known = GAPS | self.settings.keys()
        for where, template, also in self._templates():
            try:
                unknown = templates.names(template) - known - also
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from None
            if unknown:
                offered = ", ".join(sorted(known | also))
                raise ValueError(f"{where}: nothing is called {{{min(unknown)}}} here; there is {offered}")
        return self

    @model_validator(mode="after")
    def _patterns_compile(self) -> Self:
        patterns = {f"faults[{place}].pattern": known.pattern for place, known in enumerate(self.faults)}
        for where, pattern in {"version.pattern": self.version.pattern, **patterns}.items():
            try:
                groups = re.compile(pattern).groups
            except re.error as error:
                raise ValueError(f"{where}: {error}") from None
            if where == "version.pattern" and groups != 1:
                raise ValueError(f"{where}: one group, which is the version's number")
        return self

    @model_validator(mode="after")
    def _no_setting_is_called_like_a_gap(self) -> Self:
        if taken := self.settings.keys() & (GAPS | {ID_GAP}):
            raise ValueError(f"settings: {min(taken)} has a meaning of its own; choose another name")
        return self

    def _templates(self) -> Iterator[tuple[str, str, frozenset[str]]]:
        """Every template: where it is, what it says, and what it may name besides."""
        nothing, an_id = frozenset[str](), frozenset({ID_GAP})
        for place, argument in enumerate(self.run.first):
            yield f"run.first[{place}]", argument, nothing
        for place, argument in enumerate(self.run.next):
            yield f"run.next[{place}]", argument, an_id
        for name, value in self.env.set.items():
            yield f"env.set.{name}", value, nothing
        for name, content in self.state.files.items():
            yield f"state.files.{name}", content, nothing
        yield "state.proof", self.state.proof, an_id

    @property
    def reports_usage(self) -> bool:
        """Whether the client says what a turn takes in tokens, as far as this preset can read it."""
        return self.answer.tokens_in is not None or self.answer.tokens_out is not None

    def settings_from(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The settings that the wrapper's ``environment`` gives."""
        return {
            name: environment[setting.variable]
            for name, setting in self.settings.items()
            if setting.variable is not None and environment.get(setting.variable)
        }

    def complete(self, given: Mapping[str, str]) -> dict[str, str]:
        """A value for every setting. Raises `UserError` for one that is unknown, missing or not one line."""
        for name, value in given.items():
            if name not in self.settings:
                known = ", ".join(self.settings) or "none"
                raise UserError(f"the client {self.name} has no setting {name}", hint=f"it has: {known}")
            if not value.isprintable():
                raise UserError(f"the setting {name} of the client {self.name} must be one line of text")
        return {name: self._value(name, given) for name in self.settings}

    def _value(self, name: str, given: Mapping[str, str]) -> str:
        setting = self.settings[name]
        value = given.get(name, setting.default)
        if value is None:
            also = f", or the variable {setting.variable}" if setting.variable else ""
            raise UserError(f"the client {self.name} needs the setting {name}{also}", hint=setting.help)
        return value


def load_preset(name: str, extra: Path | None = None) -> Preset:
    """The preset called ``name``: ``name.toml`` in the folder ``extra``, else among those that come along.

    Raises `UserError` if there is none, or if it is not a preset.
    """
    files = {
        path.stem: path for folder in (_packaged(), extra) if folder for path in sorted(folder.glob("*.toml"))
    }
    if name not in files:
        close = get_close_matches(name, files, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        raise UserError(
            f"there is no preset called {name!r}", hint=f"{meant}known: {', '.join(sorted(files))}"
        )
    return read_preset(files[name])


def read_preset(path: Path) -> Preset:
    """The preset in the file ``path``. A `UserError` names the file, the key and the rule."""
    try:
        tree = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, or not TOML
        raise UserError(f"{path}: {error}") from None
    if tree.get("name") != path.stem:
        raise UserError(f"{path}: name must be {path.stem!r}, like the file")
    try:
        return Preset.model_validate_json(orjson.dumps(tree, option=orjson.OPT_PASSTHROUGH_DATETIME))
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
