"""The council file: what a debate is, who sits in it, and what bounds it (§5.3, §7, `council.yaml`).

One file serves every process: the Arbiter reads the rules and the roster, a wrapper reads its
participant, and `consilium up` reads all of it. Unknown keys are refused everywhere;
`consilium.settings` loads files and names the file and the key in what it refuses.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from consilium.messages import MAX_SPEECH_BYTES, DisconnectPolicy, Label, Name, Topic

Seconds = Annotated[float, Field(gt=0, le=7 * 24 * 3600, allow_inf_nan=False)]
Positive = Annotated[int, Field(gt=0, le=2**53)]
RoleName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
PresetName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]


KeyName = Annotated[str, StringConstraints(pattern=r"^(ctrl\+[abefgj-lnopq-z]|alt\+[a-z]|f[1-8])$")]
"""A key that can be given a meaning (§10): not Ctrl+C, Ctrl+D, nor what is Backspace, Tab or Enter."""

KeyCommand = Literal["away", "back", "status", "quit", "timeout", "newline"]
"""What a key can do for a person."""


class TurnPolicy(StrEnum):
    """Who speaks next (§7.4)."""

    ROUND_ROBIN = "round_robin"
    LEAST_RECENTLY_SPOKEN = "least_recently_spoken"
    MOST_RECENTLY_CONTRADICTED = "most_recently_contradicted"
    MANUAL = "manual"


class Section(BaseModel):
    """Base of every section of the file: frozen, and deaf to nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Caps(Section):
    """What a debate may cost at most (§5.7). At least one is mandatory: nobody is watching the meter."""

    max_rounds: Positive | None = None
    max_tokens: Positive | None = None
    max_seconds: Seconds | None = None
    max_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _at_least_one(self) -> Self:
        if all(cap is None for cap in (self.max_rounds, self.max_tokens, self.max_seconds, self.max_usd)):
            raise ValueError("at least one cap is mandatory: max_rounds, max_tokens, max_seconds or max_usd")
        return self


class Limits(Section):
    """What one seat may take of the others' time, memory and attention."""

    turn_seconds: Seconds = 300
    first_byte_seconds: Seconds = 120
    stall_seconds: Seconds = 120
    heartbeat_seconds: Seconds = 15
    max_pause_seconds: Seconds | None = None
    speech_bytes: Annotated[int, Field(ge=256, le=MAX_SPEECH_BYTES)] = 32 * 1024
    contribution_chars: Annotated[int, Field(ge=100, le=MAX_SPEECH_BYTES)] = 8000
    max_seats: Annotated[int, Field(ge=1, le=4096)] = 64


class RosterSeat(Section):
    """A planned seat (§7.1)."""

    name: Name
    required: bool = True
    disconnect_policy: DisconnectPolicy = DisconnectPolicy.KEEP_ALIVE


class Roster(Section):
    """Who is expected (§7.1) or admitted (§7.2).

    ``static``: only the seats of ``participants``. ``dynamic``: any name that its certificate may use;
    ``required_names`` are waited for.
    """

    mode: Literal["static", "dynamic"] = "static"
    participants: tuple[RosterSeat, ...] = ()
    required_names: tuple[Name, ...] = ()
    wait_for_required_at_start: bool = True
    cold_entry: bool = True

    @property
    def awaited(self) -> frozenset[str]:
        """The names without which the debate does not start."""
        if not self.wait_for_required_at_start:
            return frozenset()
        planned = (seat.name for seat in self.participants if seat.required)
        return frozenset(planned) | frozenset(self.required_names)


HUMAN = "human"
"""The adapter, the preset and the brand of a person."""

PEXPECT = "pexpect"
"""The adapter of a client that is used in a terminal; its model has to end its answers with a token (§12)."""

_OF_A_PERSON = ("timeout_s", "keys")
_OF_A_CLIENT = ("model", "effort", "harness_profile", "cwd", "env", "isolation")


class Participant(Section):
    """A seat as its wrapper sees it (§5.3): client, model, effort and point of view.

    ``role`` names a file of ``roles/``; ``role_prompt`` says it in place. ``env`` passes variables of the
    wrapper's environment on to the client, by name. ``isolation``: whether the seat may start where its
    client is not kept apart in every layer (§14.2).

    ``adapter: human`` is a person, whom no client's settings concern. ``timeout_s`` skips their turn after so
    many seconds without a key (§11), ``keys`` gives commands other keys than the preset's (§10).
    """

    name: Name
    adapter: Literal["native", "pexpect", "human"] = "native"
    preset: PresetName = "llm"
    model: Label | None = None
    effort: Label | None = None
    role: RoleName | None = None
    role_prompt: Annotated[str, StringConstraints(min_length=1, max_length=20_000)] | None = None
    role_label: Label | None = None
    harness_profile: Literal["restricted", "native"] = "restricted"
    cwd: str | None = None
    env: tuple[Label, ...] = ()
    isolation: Literal["strict", "relaxed"] | None = None
    timeout_s: Seconds | None = None
    keys: dict[KeyCommand, KeyName] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_word_says_that_it_is_a_person(self) -> Self:
        given = self.model_fields_set
        # The model is frozen for everybody else; this runs before anybody has it.
        if self.preset == HUMAN and "adapter" not in given:
            object.__setattr__(self, "adapter", HUMAN)
        elif self.adapter == HUMAN and "preset" not in given:
            object.__setattr__(self, "preset", HUMAN)
        return self

    @model_validator(mode="after")
    def _what_concerns_whom(self) -> Self:
        person = self.adapter == HUMAN
        known = type(self).model_fields
        for key in _OF_A_PERSON if not person else _OF_A_CLIENT:
            if getattr(self, key) != known[key].get_default(call_default_factory=True):
                whom = "a client, and this is a person" if person else "a person (adapter: human)"
                raise ValueError(f"{key} is for {whom}")
        return self

    @model_validator(mode="after")
    def _one_role(self) -> Self:
        if self.role is not None and self.role_prompt is not None:
            raise ValueError("role names a file and role_prompt says it in place: give one of them")
        return self


class Council(Section):
    """The whole council file."""

    topic: Topic
    participants: Annotated[tuple[Participant, ...], Field(max_length=4096)] = ()
    roster: Roster = Roster()
    caps: Caps
    limits: Limits = Limits()
    turn_policy: TurnPolicy = TurnPolicy.ROUND_ROBIN
    opening: Literal["sealed", "open"] = "sealed"
    role_visible: bool = True
    identity_visible: bool = True
    rebuttal_rounds: Annotated[int, Field(ge=0, le=1000)] = 1

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        for key, names in (
            ("participants", [seat.name for seat in self.participants]),
            ("roster.participants", [seat.name for seat in self.roster.participants]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{key}: duplicate name {', '.join(twice)}")
        return self

    @model_validator(mode="after")
    def _roster_defaults_to_participants(self) -> Self:
        if self.roster.mode == "static" and not self.roster.participants:
            seats = tuple(RosterSeat(name=seat.name) for seat in self.participants)
            # The model is frozen for everybody else; this runs before anybody has it.
            object.__setattr__(self, "roster", self.roster.model_copy(update={"participants": seats}))
        return self

    @model_validator(mode="after")
    def _everybody_can_come(self) -> Self:
        planned = {seat.name for seat in self.roster.participants}
        if (most := max(len(planned), len(self.participants))) > self.limits.max_seats:
            raise ValueError(f"{most} seats are planned, but limits.max_seats is {self.limits.max_seats}")
        if self.roster.mode == "static" and (strangers := sorted(self.roster.awaited - planned)):
            raise ValueError(f"roster.required_names: no seat is planned for {', '.join(strangers)}")
        return self
