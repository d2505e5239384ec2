"""The parts of a preset: each is one table of its file. `wrapper.adapters.presets` joins them.

Nothing is optional by accident: an unknown key is refused, and what is left out means what is written here.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from consilium.messages import Fault, PromptSent

Text = Annotated[str, StringConstraints(min_length=1)]
Pointer = Annotated[str, StringConstraints(pattern=r"^(/[^/]+)+$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
SettingName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
FileName = Annotated[
    str, StringConstraints(pattern=r"^\.?[A-Za-z0-9_-][A-Za-z0-9._-]*(/\.?[A-Za-z0-9_-][A-Za-z0-9._-]*)*$")
]
"""Below the client's folder, and nowhere else."""


def _relative(pattern: str) -> str:
    if any(step in ("", ".") or ("**" in step and step != "**") for step in pattern.split("/")):
        raise ValueError(f"{pattern!r} is no pattern of files seen from a folder, in which ** stands alone")
    return pattern


def _below(pattern: str) -> str:
    if ".." in pattern.split("/"):
        raise ValueError(f"{pattern!r} leads out of the client's folder")
    return pattern


PatternFromHere = Annotated[str, AfterValidator(_relative)]
"""Of files, seen from some folder: ``*`` is any part of a name, ``**`` any folders."""

PatternBelow = Annotated[PatternFromHere, AfterValidator(_below)]
"""The same, of files below the client's folder, and nowhere else."""

Number = Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)*$")]
ProfileName = Literal["restricted", "native"]
Counter = Literal["tokens_in", "tokens_out", "tokens_cached", "usd"]
BRIDGED = "--"
"""What stands between the arguments of a bridge and those of the client."""

COUNTERS: tuple[Counter, ...] = ("tokens_in", "tokens_out", "tokens_cached", "usd")


class Part(BaseModel):
    """Base of a preset and of its parts: frozen, strict, deaf to nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Version(Part):
    """How the client says its version, the oldest that is understood, and the newest that was tried.

    Without ``known_good``, nobody here has run the client: its preset is written from its documentation.
    """

    argv: tuple[str, ...]
    pattern: Text
    minimum: Number
    known_good: Number | None = None

    def is_older(self, version: str) -> bool:
        """Whether ``version`` is below the oldest that is understood."""
        return _numbers(version) < _numbers(self.minimum)

    def doubt(self, version: str) -> str:
        """Why ``version`` may behave otherwise than the preset says; empty for one that was tried.

        A version is newer as precisely as the newest that was tried is written.
        """
        if self.known_good is None:
            return "was never run with its preset, which is written from its documentation"
        newest = _numbers(self.known_good)
        newer = _numbers(version)[: len(newest)] > newest
        return f"is newer than {self.known_good}, the last that was tried with it" if newer else ""

    @model_validator(mode="after")
    def _a_version_that_was_tried_is_understood(self) -> Self:
        if self.known_good is not None and self.is_older(self.known_good):
            raise ValueError(f"known_good: {self.known_good} is below the minimum")
        return self


class Setting(Part):
    """A value from the caller, or from the wrapper's ``variable``; it has to fit ``pattern``.

    Without ``default`` it has to be given, unless it only adds something if it has a value: ``arguments``,
    which stand at ``{options}``, or variables that are ``set``.
    """

    help: Text
    default: str | None = None
    variable: Variable | None = None
    pattern: Text | None = None
    arguments: tuple[str, ...] = ()
    set: dict[Variable, str] = {}

    @property
    def may_be_left_out(self) -> bool:
        """Whether the client can be called without it."""
        return self.default is None and bool(self.arguments or self.set)


class Run(Part):
    """The arguments of a chat's first turn and of every later one, and how the turn is passed.

    ``{harness}`` stands for the arguments of the harness profile, ``{options}`` for those of the settings.
    ``lead`` is put before every prompt: what keeps the client from taking its first character for a
    command. ``form`` is what the client reads, where that is more than the prompt: ``{prompt}`` stands for it
    as a JSON string. A prompt of more than ``longest`` bytes is not sent.

    ``bridge``: a program of ours that speaks with a client which cannot be asked otherwise. What stands
    before ``--`` in the arguments is for the bridge, and what follows for the client.

    ``output``: ``at_end`` for a client that prints when it is done, so that only the whole turn's time can be
    bounded; ``streamed`` for one that prints as it goes, whose silence means something.
    """

    first: tuple[str, ...]
    next: tuple[str, ...]
    bridge: Literal["acp"] | None = None
    prompt: Literal["stdin"]
    lead: str = ""
    form: Text | None = None
    longest: Annotated[int, Field(gt=0)] | None = None
    output: Literal["at_end", "streamed"]

    @model_validator(mode="after")
    def _a_bridge_knows_what_is_its_own(self) -> Self:
        if self.bridge and not all(BRIDGED in arguments for arguments in (self.first, self.next)):
            raise ValueError(
                f"bridge: {BRIDGED} is missing in first or next, between its arguments and the client's"
            )
        return self


class Chat(Part):
    """Who names a chat, and what a turn does to it.

    ``id``: ``chosen`` is a UUID of ours, passed as ``{new_id}``; ``told`` is one that the client makes up
    and prints. ``turn``: ``same`` goes on in the chat itself, for a client that forgets a turn that failed;
    ``fork`` goes on in a copy with an id of its own, which becomes the seat's chat once the turn has
    succeeded. A failed, revoked or killed turn then leaves no trace. ``model``: ``fixed`` for a client that
    does not go on with another model in the same chat, or not as if nothing had happened.
    """

    id: Literal["chosen", "told"]
    turn: Literal["same", "fork", "restore"]
    model: Literal["fixed", "free"] = "free"
    pattern: Text = r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}"
    """What an id looks like. It stands in arguments and in names of files, and must be nothing else there."""


class Profile(Part):
    """One harness profile (§3.3.B): ``restricted`` has no tools, ``native`` is the client as it is used.

    ``home``: ``own`` keeps the client in the seat's folder; ``user`` lets it find the configuration and the
    login of the person who runs the wrapper. ``instructions``: where the client finds the system prompt,
    in the ``file`` that the arguments name, or ahead of the first ``prompt``. The file is called
    ``system_file``, and begins with ``system_head``. ``replace`` is for what the client would take for its
    own anywhere in a prompt: a piece of text, and how it is written instead.
    ``files`` stand in the client's folder, beside those of its ``state``.
    """

    arguments: tuple[str, ...] = ()
    set: dict[Variable, str] = {}
    home: Literal["own", "user"] = "own"
    instructions: Literal["file", "prompt"] = "file"
    system_file: FileName = "system-prompt.txt"
    system_head: str = ""
    replace: dict[Text, str] = {}
    files: dict[FileName, str] = {}


class Environment(Part):
    """What the client gets of the wrapper's variables (``pass``), and what is set in any case."""

    passed: tuple[Variable, ...] = Field(default=(), alias="pass")
    set: dict[Variable, str] = {}


class Derived(Part):
    """A file of JSON that the client itself prints when it is run with ``argv``, and what is changed in it.

    In each member of the list at ``each``, the keys ``drop`` are left out and the keys ``set`` are set.
    """

    argv: tuple[str, ...]
    each: Pointer
    drop: tuple[Text, ...] = ()
    set: dict[Text, bool | int | str | list[str]] = {}


class State(Part):
    """Where the client keeps its chats.

    ``variables`` are set to the seat's own folder. ``files`` are written there before the first turn; a
    setting in them becomes a JSON string, quotes included. ``derived`` are made there by the client.
    ``proof`` is a pattern for a file that exists as long as the chat ``{id}`` does; ``chat`` are patterns for
    every file that a turn changes and that a later one remembers, where turns are undone by ``restore``.
    """

    variables: tuple[Variable, ...]
    files: dict[FileName, str] = {}
    derived: dict[FileName, Derived] = {}
    proof: PatternBelow
    chat: tuple[PatternBelow, ...] = ()


class KnownFault(Part):
    """What an error message of the client means: a regular expression, searched in what it said.

    Its group ``reset``, if it has one, is when a quota is full again, in the client's words or as a UNIX
    time.
    """

    pattern: Text
    fault: Annotated[Fault, Field(strict=False)]
    prompt_sent: Annotated[PromptSent, Field(strict=False)] = PromptSent.MAYBE


class Network(Part):
    """The hosts that the client has to reach; for the egress proxy."""

    hosts: tuple[Text, ...]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
