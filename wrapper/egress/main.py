"""`consilium egress`: the proxy's process. Reads who may be reached, listens, carries until it is stopped.

A council file is read again when it has changed; one that cannot be read then leaves the list as it was.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import orjson
from anyio.abc import SocketAttribute, SocketListener

from consilium.config import HUMAN
from consilium.errors import UserError
from consilium.settings import load_council
from wrapper.adapters.presets import load_preset, own_presets
from wrapper.egress.counting import Counts, served
from wrapper.egress.proxy import Proxy
from wrapper.egress.request import is_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

log = logging.getLogger("consilium.egress")

PORT = 8888
"""Where it listens unless told otherwise; the seats' packet filter opens this port and no other."""

FOLLOW_SECONDS = 1.0
"""How often it is looked whether the council file has changed."""

ALLOW = "CONSILIUM_ALLOW"
"""The variable that allows more hosts, with commas between: for a service whose words are fixed."""

EXAMPLES = """\
examples:
  consilium egress --council council.yaml
  consilium egress --preset claude --preset codex --host 0.0.0.0
  consilium egress --allow api.example.org --metrics-host 127.0.0.1 --metrics-port 9464

Clients reach it by HTTPS_PROXY=http://HOST:8888. It relays CONNECT to port 443 of the hosts on its list,
letter by letter, and nothing else; it resolves their names itself, refuses addresses that are not public, and
lets a tunnel begin only with a TLS ClientHello that names the same host. Each refusal is a line on standard
error.
"""


def parser() -> argparse.ArgumentParser:
    """The command line of ``consilium egress``."""
    made = argparse.ArgumentParser(
        prog="consilium egress",
        description="Run the proxy that is the seats' only way out, until it is stopped.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    whom = made.add_argument_group("who may be reached (at least one of these)")
    whom.add_argument(
        "--council", type=Path, metavar="FILE", help="what the clients of this council file's seats need"
    )
    whom.add_argument(
        "--preset", action="append", default=[], metavar="NAME", help="what this client needs (repeat it)"
    )
    whom.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="HOST",
        help=f"this host (repeat it; or {ALLOW}, with commas between)",
    )
    where = made.add_argument_group("where")
    where.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    where.add_argument(
        "--port", type=int, default=PORT, help="port to listen on (default %(default)s; 0 is any free one)"
    )
    where.add_argument(
        "--metrics-host",
        default="127.0.0.1",
        metavar="HOST",
        help="address of the metrics (default %(default)s)",
    )
    where.add_argument(
        "--metrics-port", type=int, metavar="PORT", help="serve metrics there (default: nowhere)"
    )
    return made


def main(argv: Sequence[str]) -> int:
    """Run the proxy until SIGTERM or SIGINT; returns 0. Raises `UserError`."""
    options = parser().parse_args(argv)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    more = [host for part in os.environ.get(ALLOW, "").split(",") if (host := part.strip())]
    plain = [*options.allow, *more]

    def listed() -> frozenset[str]:
        return allowed(options.council, options.preset, plain)

    hosts = listed()
    counts = Counts()
    with ExitStack() as stack:
        said: dict[str, object] = {"event": "listening", "hosts": sorted(hosts)}
        if options.metrics_port is not None:
            _check_port(options.metrics_port, "--metrics-port")
            said["metrics"] = stack.enter_context(served(counts, options.metrics_host, options.metrics_port))
        follow = None if options.council is None else Followed(options.council, listed)
        anyio.run(_serve, Proxy(hosts, counts), options.host, options.port, said, follow)
    return 0


def allowed(council: Path | None, presets: Iterable[str], hosts: Iterable[str]) -> frozenset[str]:
    """The list: what each preset's client needs, and ``hosts``. Raises `UserError`."""
    names, plain = list(presets), list(hosts)
    if council is None and not names and not plain:
        raise UserError("nobody may be reached", hint="give --council FILE, --preset NAME or --allow HOST")
    if council is not None:
        seats = load_council(council).participants
        names += [seat.preset for seat in seats if seat.adapter != HUMAN]
    for host in plain:
        if not is_host(host):
            raise UserError(
                f"--allow {host}: no host's full name in lower case",
                hint="an address, a pattern, a port or a part of a name cannot be allowed",
            )
    found = {host for name in names for host in load_preset(name, own_presets(council)).network.hosts}
    return frozenset(found.union(plain))


def _check_port(port: int, option: str) -> None:
    if not 0 <= port <= 65535:
        raise UserError(f"{option} {port}: a port is between 0 and 65535", hint="0 takes any free one")


@dataclass(frozen=True, slots=True)
class Followed:
    """A council file, and the list that it and the options give. `listed` raises `UserError`."""

    path: Path
    listed: Callable[[], frozenset[str]]

    def look(self) -> tuple[int, ...]:
        """What tells one state of the file from another; nothing if it is not there."""
        with suppress(OSError):
            found = self.path.stat()
            return found.st_ino, found.st_size, found.st_mtime_ns
        return ()


async def _follow(proxy: Proxy, council: Followed, seen: tuple[int, ...]) -> None:
    while True:
        await anyio.sleep(FOLLOW_SECONDS)
        if (now := council.look()) == seen:
            continue
        seen = now
        try:
            hosts = council.listed()
        except UserError as error:
            log.warning("the council file has changed and cannot be read; the list stays: %s", error.message)
        else:
            proxy.allow(hosts)
            log.info(
                "the council file has changed; may be reached now: %s", ", ".join(sorted(hosts)) or "nobody"
            )


async def _serve(
    proxy: Proxy, host: str, port: int, said: dict[str, object], council: Followed | None
) -> None:
    _check_port(port, "--port")
    try:
        listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    except OSError as error:
        raise UserError(
            f"nothing can listen on {host}, port {port}: {error.strerror or error}",
            hint="give another --host or --port",
        ) from None
    async with listener:
        said["port"] = listener.extra(SocketAttribute.local_port)
        sys.stdout.write(orjson.dumps(said).decode() + "\n")
        sys.stdout.flush()
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with anyio.create_task_group() as tasks:
                for each in listener.listeners:
                    assert isinstance(each, SocketListener)
                    tasks.start_soon(proxy.serve, each)
                if council is not None:
                    tasks.start_soon(_follow, proxy, council, council.look())
                async for _ in signals:
                    tasks.cancel_scope.cancel()
