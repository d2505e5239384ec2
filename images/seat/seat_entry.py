"""The seat image's entry point: root for as long as it takes to build the fences, and then never again.

1. The client's user may send packets to the places of CONSILIUM_REACH and nowhere else (nftables, in this
   container's own network namespace).
2. The seat's volume gets two folders: the wrapper's, and the client's, which is the client's home.
3. What the container has under /run/secrets, a key a file, becomes variables of the wrapper's, by the files'
   names. Nothing else of the container knows them: neither its configuration, nor what `docker exec` starts.
4. This process becomes the wrapper's user for good, with the two capabilities that starting a client as
   another user takes, and runs `consilium` with the arguments that it was given.

CONSILIUM_REACH is ``host:port,host:port``. Names are resolved here and once: the client has no resolver. A
URL to one of them, in the variables that lead there (CONSILIUM_MODEL_URL, HTTPS_PROXY, HTTP_PROXY) or in the
arguments, gets the address that the fence is made for.

With `login` as its last argument (`docker compose run --rm claude login`) it opens the login of the client of
the seat CONSILIUM_SEAT, behind the same fences.

With CONSILIUM_ISOLATION=strict, which the image sets, whatever fails ends the container with exit code 2.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit, urlunsplit

from wrapper.isolation.fence import NamedPlace, Place, named_places, rules
from wrapper.isolation.launch import (
    CLIENT_USER,
    IMAGE_CLIENT,
    IMAGE_WRAPPER,
    PORT,
    User,
    wrapper_for_good,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

STATE = Path("/var/lib/consilium")
SEAT, CLIENT = STATE / "seat", STATE / "client"

SECRETS = Path("/run/secrets")
SECRET_BYTES = 16 * 1024

LEADING_THERE = ("CONSILIUM_MODEL_URL", "HTTPS_PROXY", "HTTP_PROXY")

OURS = ("CONSILIUM_", "LD_", "PYTHON")
"""What variables begin with that are the wrapper's own, or change how programs start."""

RESOLVE_SECONDS = 30.0
"""How long a name is waited for: services start in any order."""

CONFIGURATION = 2


def stop(message: str, hint: str) -> NoReturn:
    """End the container with a sentence and the way out."""
    sys.stderr.write(f"consilium-seat: {message}\n  {hint}\n")
    sys.exit(CONFIGURATION)


def main(arguments: list[str]) -> NoReturn:
    """Build the fences, then become `consilium` with ``arguments``."""
    environment = dict(os.environ)
    strict = environment.get("CONSILIUM_ISOLATION", "strict") != "relaxed"
    if os.geteuid() != 0:
        stop(
            "the entry point has to begin as root: it builds the client's fences and then drops for good",
            "leave `user:` out of the service",
        )
    try:
        wanted = named_places(environment.get("CONSILIUM_REACH", ""))
    except ValueError as error:
        stop(f"CONSILIUM_REACH: {error}", "give host:port, several with commas between")
    client = client_of(environment)
    found = {place: resolve(place) for place in wanted}
    fence_in(rules(client.uid, [place for places in found.values() for place in places]), strict=strict)
    give(SEAT, IMAGE_WRAPPER)
    give(CLIENT, client)
    for name in LEADING_THERE:
        if value := environment.get(name):
            environment[name] = by_address(value, found)
    environment |= secrets(environment)
    environment["HOME"] = str(SEAT)
    drop = wrapper_for_good(IMAGE_WRAPPER, setpriv=tool("setpriv"))
    words = [by_address(word, found) for word in meant(arguments, environment)]
    os.execve(drop[0], [*drop, tool("consilium"), *words], environment)  # noqa: S606 - no shell


def meant(arguments: list[str], environment: Mapping[str, str]) -> list[str]:
    """The words for `consilium`: a seat's own, or those of its login where that was asked for."""
    if arguments[-1:] != ["login"]:
        return arguments
    seat = environment.get("CONSILIUM_SEAT") or stop(
        "nobody says whose login this is", "give the service CONSILIUM_SEAT, the seat's name"
    )
    where = [word for word in arguments if word.startswith(("--council=", "--state="))]
    return ["seat", "login", seat, *where]


def client_of(environment: Mapping[str, str]) -> User:
    """The user that the client runs as."""
    text = environment.get(CLIENT_USER)
    try:
        user = User.parse(text) if text else IMAGE_CLIENT
    except ValueError as error:
        stop(f"{CLIENT_USER}: {error}", "give UID:GID, a pair that no other seat of this host has")
    if user.uid == IMAGE_WRAPPER.uid:
        stop(f"{CLIENT_USER}: {text} is the wrapper's user", "give another: they are kept apart by it")
    return user


def tool(name: str) -> str:
    """Where the program ``name`` is."""
    return shutil.which(name) or stop(f"{name} is not in this image", "build it FROM the seat image")


def resolve(wanted: NamedPlace) -> list[Place]:
    """Every address of a name. Waits for it, and says in the end that it does not resolve."""
    if wanted.port != PORT:
        stop(
            f"CONSILIUM_REACH: {wanted.host}:{wanted.port} is not on port {PORT}",
            f"whatever a client may reach listens on {PORT}: its file fence knows ports, not addresses",
        )
    until = time.monotonic() + RESOLVE_SECONDS
    while True:
        try:
            answers = socket.getaddrinfo(wanted.host, wanted.port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if time.monotonic() > until:
                stop(
                    f"CONSILIUM_REACH: {wanted.host} does not resolve ({error.strerror})",
                    "name a service of a network that this one is in, and start it first (depends_on)",
                )
            time.sleep(0.5)
        else:
            return sorted({Place(str(address[0]), wanted.port) for *_, address in answers})


def fence_in(text: str, *, strict: bool) -> None:
    """Load the rules. Without them a strict seat does not start."""
    try:
        done = subprocess.run(  # noqa: S603 - no shell; the rules go by standard input
            [tool("nft"), "-f", "-"], input=text, text=True, capture_output=True, check=False
        )
        why = done.stderr.strip().splitlines()[0] if done.returncode else ""
    except OSError as error:
        why = str(error)
    if not why:
        return
    message = f"the packet fence (nftables) cannot be built: {why}"
    if strict:
        stop(
            message,
            "give the container cap_add: [NET_ADMIN], or say CONSILIUM_ISOLATION=relaxed and go without",
        )
    sys.stderr.write(f"consilium-seat: {message}; relaxed: the client is not held back from the network\n")


def give(folder: Path, owner: User) -> None:
    """Make ``folder`` and give it to ``owner``, who alone can look into it.

    A folder that is there already is not touched: root here may not even look into it.
    """
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if (found.st_uid, found.st_mode) != (owner.uid, 0o040700):
            stop(
                f"{folder} has to belong to user {owner.uid}, with mode 0700, "
                f"and belongs to {found.st_uid} ({found.st_mode & 0o7777:04o})",
                "give the seat a volume of its own, mounted at /var/lib/consilium",
            )
    except OSError as error:
        stop(
            f"{folder} cannot be made: {error.strerror}",
            "mount a volume that root may write at /var/lib/consilium",
        )
    else:
        os.chown(folder, owner.uid, owner.gid)


def secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that the container's secrets stand for; an empty file, such as /dev/null, for none."""
    found = {}
    for file in sorted(SECRETS.iterdir()) if SECRETS.is_dir() else ():
        value = secret(file)
        if not value:
            continue
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", file.name) or file.name.startswith(OURS):
            stop(f"the secret {file.name} is no variable that a client could be given", "rename its target")
        if file.name in environment:
            stop(f"{file.name} is given as a secret and as a variable", "leave the variable out")
        found[file.name] = value
    return found


def secret(file: Path) -> str:
    """The one line that a secret holds."""
    try:
        with file.open("rb") as opened:
            text = opened.read(SECRET_BYTES + 1).decode().removesuffix("\n").removesuffix("\r")
    except PermissionError:
        stop(
            f"the secret {file.name} cannot be read: root in here has no right over other users' files",
            "let everybody read the file (chmod 644), and nobody into its folder (chmod 700)",
        )
    except (OSError, UnicodeDecodeError) as error:
        stop(f"the secret {file.name} cannot be read: {error}", "it has to be a file with one line of text")
    if len(text) > SECRET_BYTES or not text.isprintable():
        stop(f"the secret {file.name} is not one line of text", "it holds a key, and nothing else")
    return text


def by_address(url: str, found: dict[NamedPlace, list[Place]]) -> str:
    """``url`` with its host replaced by its address, if it leads to a place of ours."""
    try:
        parts = urlsplit(url)
        places = found.get(NamedPlace(parts.hostname or "", parts.port or 0))
    except ValueError:  # no URL that anybody could follow
        return url
    if not places:
        return url
    address = places[0].address
    return urlunsplit(parts._replace(netloc=f"[{address}]:{PORT}" if ":" in address else f"{address}:{PORT}"))


if __name__ == "__main__":
    main(sys.argv[1:])
