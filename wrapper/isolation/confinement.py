"""How a seat's client is confined, as the command line says and the system allows (§14.2).

`strict` stands for all layers: a user of its own, the packet fence, Landlock. Where one is missing, the seat
does not start. `relaxed` takes what is there and says what is not: on a plain host the client has a process
group of its own and a clean environment, and can read what its person can.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from consilium.errors import UserError
from wrapper.isolation import launcher
from wrapper.isolation.launch import CLIENT_USER, User

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

Isolation = Literal["strict", "relaxed"]

ISOLATION, CLIENT_HOME = "CONSILIUM_ISOLATION", "CONSILIUM_CLIENT_HOME"

_CAP_SETGID, _CAP_SETUID = 6, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherUser:
    """The user that a seat's client runs as, and the folder that belongs to it.

    ``fenced``: behind Landlock.
    """

    user: User
    home: Path
    fenced: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What is done with every client of this seat. ``missing`` says what a relaxed seat goes without."""

    isolation: Isolation = "relaxed"
    client: OtherUser | None = None
    missing: tuple[str, ...] = ()


PLAIN = Confinement()
"""A client that runs as whoever we are."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that `confinement` reads."""
    parser.add_argument(
        "--isolation",
        choices=("strict", "relaxed"),
        help="strict: do not start unless the client is kept apart in every layer; relaxed: take what is "
        f"there (default: the participant's `isolation`, {ISOLATION}, else relaxed)",
    )
    parser.add_argument(
        "--client-user",
        metavar="UID:GID",
        help=f"the user that the client runs as; it is no other seat's (or {CLIENT_USER})",
    )
    parser.add_argument(
        "--client-home",
        type=Path,
        metavar="DIR",
        help=f"that user's folder, where the client keeps its chats (or {CLIENT_HOME})",
    )


def confinement(
    options: argparse.Namespace, wish: Isolation | None, environment: Mapping[str, str]
) -> Confinement:
    """What can be done here. Raises `UserError` where strict is asked for and a layer is missing.

    ``wish`` is the participant's. The packet fence cannot be seen from here: `wrapper.isolation.trial` tries
    it.
    """
    isolation = options.isolation or wish or _isolation(environment.get(ISOLATION))
    client = _client(options, environment)
    missing = tuple(_missing(client))
    if isolation == "strict" and missing:
        raise refusal(missing)
    if client is not None and not _may_change_user():
        client = None
    return Confinement(isolation=isolation, client=client, missing=missing)


def refusal(missing: tuple[str, ...]) -> UserError:
    """What a strict seat says that does not start."""
    return UserError(
        f"isolation: strict, and {'; '.join(missing)}",
        hint="run the seat in its image (docs/adr/0007), or say isolation: relaxed and go without",
    )


def _isolation(text: str | None) -> Isolation:
    match text:
        case "strict" | "relaxed":
            return text
        case None | "":
            return "relaxed"
        case _:
            raise UserError(f"{ISOLATION} must be strict or relaxed (given: {text!r})")


def _client(options: argparse.Namespace, environment: Mapping[str, str]) -> OtherUser | None:
    who = options.client_user or environment.get(CLIENT_USER)
    home = options.client_home or environment.get(CLIENT_HOME)
    if not who and not home:
        return None
    if not who or not home:
        raise UserError(
            "a client with a user of its own needs a folder of its own",
            hint="give both --client-user and --client-home, or neither",
        )
    folder = Path(home)
    if not folder.is_absolute():
        raise UserError(f"--client-home {home} has to be an absolute path")
    return OtherUser(user=_user(who), home=folder, fenced=launcher.abi() > 0)


def _user(text: str) -> User:
    try:
        user = User.parse(text)
    except ValueError as error:
        raise UserError(f"--client-user: {error}", hint="it is neither root nor the wrapper") from None
    if user.uid == os.getuid():
        raise UserError(f"the client cannot run as user {text}", hint="it is neither root nor the wrapper")
    return user


def _missing(client: OtherUser | None) -> list[str]:
    if client is None:
        return ["the client has no user of its own (--client-user)"]
    missing = []
    if not _may_change_user():
        missing.append("the wrapper may not start a client as another user (capabilities SETUID and SETGID)")
    if (version := launcher.abi()) < launcher.NETWORK_ABI:
        has = f"has version {version} of it" if version else "has none, or does not allow it"
        missing.append(
            f"Landlock's version {launcher.NETWORK_ABI} (Linux 6.7) is needed and this kernel {has}"
        )
    if os.getpid() == 1:
        missing.append("nobody collects what a client leaves (the container needs an init: `init: true`)")
    return missing


def _may_change_user() -> bool:
    status = Path("/proc/self/status").read_text("ascii", errors="replace")
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    wanted = 1 << _CAP_SETGID | 1 << _CAP_SETUID
    return int(effective.split()[1], 16) & wanted == wanted
