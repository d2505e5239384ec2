"""What `consilium conformance` has to know of a client, beyond how a seat calls it: ``[conformance]``.

It is for a client that shall be tried before a provider on loopback: no seat reads it. Pure.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from consilium.messages import Fault, PromptSent
from wrapper.adapters import templates
from wrapper.adapters.parts import FileName, Part, SettingName, Text, Variable

ENDPOINT_GAPS = frozenset({"url"})
"""What a variable or a setting may name: where the provider is, without a path."""

FILE_GAPS = frozenset({"mark", "made"})
"""What a file may name: words that a client must not pick up, and a file that it must not make."""

Act = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]+$")]


class Tool(Part):
    """The tool of a native client that runs a command: its name, and what it calls the command."""

    name: Text
    argument: Text


class Told(Part):
    """What becomes of a turn at which the provider failed, where that is not what docs/adapters.md says.

    A client that tells less than others makes it necessary. The act is one of the provider's, or ``nowhere``
    for an endpoint where nobody listens. ``prompt_sent`` is never ``no``: who can tell that needs no
    exception.
    """

    fault: Annotated[Fault, Field(strict=False)]
    prompt_sent: Annotated[PromptSent, Field(strict=False)]

    @model_validator(mode="after")
    def _it_is_not_more_than_usual(self) -> Self:
        if self.prompt_sent is PromptSent.NO:
            raise ValueError("prompt_sent: yes or maybe")
        return self


class Conformance(Part):
    """How a client is brought before a provider on loopback, and what there is to try.

    ``key`` is the variable in which the client takes a key, passed as a participant's ``env`` would.
    ``variables`` are the wrapper's, ``settings`` the seat's. ``prompt_limit`` is a prompt, in bytes, that
    the client itself refuses. ``files`` are what a person, or a project, may have set up for the client,
    ``restricted_files`` what only a restricted one is tried with, since it takes the place of others.
    ``ignores_its_folder``: a restricted client picks up nothing even from the folder of its state;
    ``takes_its_folder``: it does so from the folder where it works, which is its own and empty. ``person``
    are files in the home of somebody who has used the client before, without which it does not answer.
    """

    key: Variable | None = None
    variables: dict[Variable, str] = Field(default_factory=dict)
    settings: dict[SettingName, str] = Field(default_factory=dict)
    tool: Tool | None = None
    prompt_limit: Annotated[int, Field(gt=0)] | None = None
    files: dict[FileName, str] = Field(default_factory=dict)
    restricted_files: dict[FileName, str] = Field(default_factory=dict)
    ignores_its_folder: bool = False
    takes_its_folder: bool = False
    person: dict[FileName, str] = Field(default_factory=dict)
    faults: dict[Act, Told] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _gaps_are_those_that_there_are(self) -> Self:
        for table, known in (
            ("variables", ENDPOINT_GAPS),
            ("settings", ENDPOINT_GAPS),
            ("files", FILE_GAPS),
            ("restricted_files", FILE_GAPS),
        ):
            for name, template in getattr(self, table).items():
                templates.check(f"{table}.{name}", template, known)
        return self
