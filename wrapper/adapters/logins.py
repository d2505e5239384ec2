"""How a client is logged in, as data: ``[login]`` of a preset. Pure."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from wrapper.adapters.parts import Part, PatternBelow, Variable


class Login(Part):
    """What proves a login, and how one is made.

    Each of ``variables`` is one, where a participant's ``env`` passes it. ``status`` are the arguments with
    which the client says by exit code 0 that it is logged in; ``files`` are patterns, below the client's
    HOME, of which each is a login, for a client that does not say so. ``argv`` opens the client's own login.
    ``needed``: whether a turn can be had only with one.
    """

    variables: tuple[Variable, ...] = ()
    status: tuple[str, ...] = ()
    files: tuple[PatternBelow, ...] = ()
    argv: tuple[str, ...] = ()
    needed: bool = True

    @model_validator(mode="after")
    def _a_login_can_be_proved(self) -> Self:
        if self.needed and not (self.variables or self.status or self.files):
            raise ValueError("variables, status or files: what shows that the client is logged in")
        return self
