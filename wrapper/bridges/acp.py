"""Takes one turn over the Agent Client Protocol, and tells it in lines of JSON (§3.3.B, §6.6).

Run as ``python -I -S acp.py PROGRAM [OPTION VALUE ...] -- ARGUMENT ...``, in the client's place and behind
its fence. Reads the prompt from standard input, starts PROGRAM with the ARGUMENTs, and speaks version 1 of
the protocol (https://agentclientprotocol.com) with it. Without options the turn begins a chat.

- ``--fork ID``, ``--resume ID``: it is taken in a copy of a chat, or in the chat itself.
- ``--set CATEGORY=VALUE`` chooses among what the agent offers, such as ``mode=default``. What it does not
  offer is an error.
- ``--cwd FOLDER`` is where the chat belongs; without it, where this is run.
- ``--record PATTERN`` names the files in which the client writes a chat down; ``{id}`` stands for the chat,
  ``$NAME`` for a variable. What this turn added to them is printed, of the types that ``--type NAME`` names.

Every line that is printed is an object with a ``type``:

- ``message``: a piece of the answer, as ``text``;
- ``refused``: what the agent asked to be allowed to do, as ``call``, and was not;
- ``record``: a line of the client's own, as ``record``;
- ``end``: the turn has ended; ``session`` is the chat, ``stop`` and ``usage`` are the agent's words;
- ``error``: the agent answered with an error, as ``message``, which begins with what it was asked for.

Nothing is offered to the agent: no files, no terminal, no MCP server. What it asks permission for is refused.
History that it tells before the turn is not the answer. A turn that ended is exit code 0. Everything else is
another, and stands on standard error where the agent told no error. The turn has no clock here: who started
this, ends it. One file, since it is run by its path and on the standard library alone.
"""

from __future__ import annotations

import glob
import itertools
import json
import math
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = 1

MAX_LINE = 64 * 1024 * 1024
"""Longest line that an agent may write, in bytes: far beyond what a seat takes for an answer."""

END_SECONDS = 10.0
"""From the end of its input to the end of the agent, which has written everything down by then."""

LAST_WORDS_SECONDS = 0.5
"""How long output is still awaited from an agent that has ended: a descendant may hold the pipe open."""

REJECTIONS = ("reject_once", "reject_always")
"""The kinds of an option that refuses, the one that we would rather take first."""

CALL_CHARS = 1000
"""What is kept of what an agent says of a tool call, which may be a whole file."""

NOT_FOUND, NOT_STARTED = -32601, 127

Message = dict[str, Any]


class Failure(Exception):  # noqa: N818 - one of two ways for a turn to end
    """The turn cannot go on. ``told``: in the agent's own words, as the protocol carries them."""

    def __init__(self, step: str, words: str, *, told: bool = False) -> None:
        super().__init__(f"{step}: {words}")
        self.told = told


class Agent:
    """A client that speaks the protocol, as a child of this process that dies with it."""

    def __init__(self, program: str, arguments: list[str]) -> None:
        """Raises `FileNotFoundError` and other `OSError`."""
        found = shutil.which(program)
        if found is None:
            raise FileNotFoundError(f"{program} is not installed, or not on the PATH that the client gets")
        setpriv = shutil.which("setpriv", path=os.defpath)
        if setpriv is None:
            raise FileNotFoundError("setpriv (package util-linux) is not installed")
        self._process = subprocess.Popen(  # noqa: S603 - no shell; what runs is the preset's choice
            [setpriv, "--pdeathsig", "KILL", "--", found, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._numbers = itertools.count(1)
        self._to_write: queue.Queue[bytes | None] = queue.Queue()
        self._heard: queue.Queue[bytes | None] = queue.Queue(maxsize=8)
        self._silent = False
        """Whether there is nothing more to hear."""
        # Each pipe has a thread: a long prompt and a talkative agent cannot wait for each other.
        for work, pipe in ((self._write, self._process.stdin), (self._read, self._process.stdout)):
            threading.Thread(target=work, args=(pipe,), daemon=True).start()

    def send(self, message: Message) -> None:
        """Say ``message``, as soon as the agent hears it."""
        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
        self._to_write.put(text.encode("utf-8", "replace") + b"\n")

    def ask(self, method: str, parameters: Message) -> int:
        """Ask for something; what comes back bears the number that is returned."""
        number = next(self._numbers)
        self.send({"id": number, "method": method, "params": parameters})
        return number

    def hear(self, step: str) -> Message:
        """The next message. Raises `Failure` if there will be none."""
        while True:
            line = self._next_line()
            if line is None:
                raise Failure(step, self._ended())
            if len(line) > MAX_LINE:
                raise Failure(step, f"the agent wrote a line of more than {MAX_LINE} bytes")
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if isinstance(message, dict):
                return message
            # Some print a greeting. It is no message, and may be the reason for what follows.
            words = line[:500].decode("utf-8", "replace").strip()
            complain(f"{step}: the agent wrote what is no message: {words}")

    def close(self) -> None:
        """Let the agent end, and wait until it has: then its files are whole."""
        self._to_write.put(None)
        self._drain(END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the agent. What it started is ended with our session, by whoever started that."""
        self._to_write.put(None)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=LAST_WORDS_SECONDS)
        self._process.kill()
        self._process.wait()
        self._drain(LAST_WORDS_SECONDS)

    def _drain(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._next_line(until) is not None:
            pass

    def _next_line(self, until: float = math.inf) -> bytes | None:
        """The next line; None if there will be none, or none came ``until`` then."""
        while not self._silent and time.monotonic() < until:
            ended = self._process.poll() is not None
            try:
                line = self._heard.get(timeout=LAST_WORDS_SECONDS)
            except queue.Empty:
                self._silent = ended
            else:
                self._silent = line is None
                return line
        return None

    def _ended(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(timeout=LAST_WORDS_SECONDS)
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            return f"the agent ended {how}"
        return "the agent closed its output"

    def _write(self, pipe: BinaryIO) -> None:
        # An agent that hears no more ends, or answers nothing: that is where it shows.
        with suppress(OSError), pipe:
            while (data := self._to_write.get()) is not None:
                pipe.write(data)
                pipe.flush()

    def _read(self, pipe: BinaryIO) -> None:
        with suppress(OSError), pipe:
            while line := pipe.readline(MAX_LINE + 1):
                self._heard.put(line)
        self._heard.put(None)


class Turn:
    """One turn: the agent, the chat, and what is printed."""

    def __init__(self, agent: Agent, options: Options) -> None:
        self._agent = agent
        self._options = options
        self._session: str | None = None
        self._asked = False
        """Whether the prompt was sent: what came before it is history."""
        self._written: dict[str, int] = {}
        self._calls: dict[str, Message] = {}
        """What was told of each tool call, for when a permission is asked for that one."""

    def take(self, prompt: str) -> None:
        """Have the agent answer ``prompt``, and print it. Raises `Failure`."""
        able = self._call("initialize", {
            "protocolVersion": VERSION,
            "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
            "clientInfo": {"name": "consilium", "version": "1"},
        })  # fmt: skip
        if (version := able.get("protocolVersion")) != VERSION:
            raise Failure("initialize", f"the agent speaks version {version!r:.20} of the protocol")
        opened = self._open(able.get("agentCapabilities"))
        for category, value in self._options.choices:
            self._choose(opened, category, value)
        self._written = {path: Path(path).stat().st_size for path in self._records()}
        self._asked = True
        try:
            block = {"type": "text", "text": prompt}
            ended = self._call("session/prompt", {"sessionId": self._session, "prompt": [block]})
        finally:
            self._agent.close()
            self._print_records()
        say("end", session=self._session, stop=ended.get("stopReason"), usage=ended.get("usage"))

    def _open(self, able: Any) -> Message:
        options = self._options
        parameters: Message = {"cwd": options.cwd, "mcpServers": []}
        if options.chat is not None:
            parameters["sessionId"] = options.chat
        method = options.method(_object(able))
        opened = self._call(method, parameters)
        copied = options.chat is None or method == "session/fork"
        session = opened.get("sessionId") if copied else options.chat
        if not isinstance(session, str) or not session.isprintable() or not session or "/" in session:
            raise Failure(method, f"the agent names no session: {session!r:.200}")
        self._session = session
        return opened

    def _choose(self, opened: Message, category: str, value: str) -> None:
        """Choose ``value`` among what the agent offers under ``category``, by its id or by its name."""
        step = f"the choice of {category}"
        offered = _objects(opened.get("configOptions"))
        option = next((one for one in offered if category in (one.get("category"), one.get("id"))), None)
        if option is None:
            raise Failure(step, "the agent offers none", told=True)
        values = list(_values(option.get("options")))
        chosen = next((one for one in values if value in (one.get("value"), one.get("name"))), None)
        if chosen is None:
            known = ", ".join(str(one.get("value")) for one in values)
            raise Failure(step, f"the agent offers no {value}; it has: {known}", told=True)
        if option.get("currentValue") != chosen.get("value"):
            wanted = {"configId": option.get("id"), "value": chosen.get("value")}
            self._call("session/set_config_option", {"sessionId": self._session, **wanted})

    def _call(self, method: str, parameters: Message) -> Message:
        """Ask for ``method``, and hear everything until that is answered."""
        number = self._agent.ask(method, parameters)
        while True:
            message = self._agent.hear(method)
            if "method" in message:
                self._answer(message) if "id" in message else self._note(message)
            elif message.get("id") == number:
                break
        if "error" in message:
            raise Failure(method, _words(message["error"]), told=True)
        return _object(message.get("result"))

    def _answer(self, request: Message) -> None:
        """Refuse what the agent asks for."""
        if request["method"] != "session/request_permission":
            error = {"code": NOT_FOUND, "message": "not offered"}
            return self._agent.send({"id": request["id"], "error": error})
        parameters = _object(request.get("params"))
        asked = _object(parameters.get("toolCall"))
        known, call = self._calls.get(str(asked.get("toolCallId")), {}), _call_of(asked)
        # What was told before may be the whole of it, and the question a short form.
        texts = dict.fromkeys(one["text"] for one in (known, call) if "text" in one)
        say("refused", call=known | call | ({"text": "; ".join(texts)} if texts else {}))
        offered = list(_objects(parameters.get("options")))
        ways = [one.get("optionId") for kind in REJECTIONS for one in offered if one.get("kind") == kind]
        outcome = {"outcome": "selected", "optionId": ways[0]} if ways else {"outcome": "cancelled"}
        return self._agent.send({"id": request["id"], "result": {"outcome": outcome}})

    def _note(self, notice: Message) -> None:
        parameters = _object(notice.get("params"))
        update = _object(parameters.get("update"))
        if not self._asked or parameters.get("sessionId") != self._session:
            return
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                text = _object(update.get("content")).get("text")
                if isinstance(text, str):
                    say("message", text=text)
            case "tool_call" | "tool_call_update":
                number = str(update.get("toolCallId"))
                self._calls[number] = self._calls.get(number, {}) | _call_of(update)

    def _records(self) -> list[str]:
        """The files in which the client writes this chat down."""
        session = glob.escape(self._session or "")
        patterns = (_expanded(pattern.replace("{id}", session)) for pattern in self._options.records)
        return sorted({path for pattern in patterns if pattern for path in glob.glob(pattern)})  # noqa: PTH207

    def _print_records(self) -> None:
        for path in self._records():
            with suppress(OSError), Path(path).open("rb") as file:
                file.seek(self._written.get(path, 0))
                for line in file:
                    with suppress(ValueError, RecursionError):
                        record = json.loads(line)
                        if isinstance(record, dict) and record.get("type") in self._options.types:
                            say("record", record=record)


class Options:
    """What the command line asks for."""

    def __init__(self, arguments: list[str]) -> None:
        self.choices: list[tuple[str, str]] = []
        self.records: list[str] = []
        self.types: set[str] = set()
        self.cwd = str(Path.cwd())
        self.chat: str | None = None
        self._fork = False
        if "--" not in arguments:
            fail("-- is missing, and what the client gets", 2)
        place = arguments.index("--")
        self.rest = arguments[place + 1 :]
        if place % 2:
            fail("every option has one value", 2)
        for option, value in zip(arguments[:place:2], arguments[1:place:2], strict=True):
            match option:
                case "--fork" | "--resume":
                    self.chat, self._fork = value, option == "--fork"
                case "--set":
                    category, _, chosen = value.partition("=")
                    self.choices.append((category, chosen))
                case "--cwd":
                    self.cwd = value
                case "--record":
                    self.records.append(value)
                case "--type":
                    self.types.add(value)
                case _:
                    fail(f"there is no option {option}", 2)

    def method(self, able: Message) -> str:
        """How the chat is opened by an agent that is ``able`` to do this. Raises `Failure`."""
        if self.chat is None:
            return "session/new"
        offered = _object(able.get("sessionCapabilities"))
        if self._fork:
            if offered.get("fork") is None:
                raise Failure("session/fork", "the agent does not offer it", told=True)
            return "session/fork"
        if offered.get("resume") is not None:
            return "session/resume"
        if able.get("loadSession") is not True:
            raise Failure("session/resume", "the agent does not offer it", told=True)
        return "session/load"


def _expanded(pattern: str) -> str | None:
    """``pattern`` with the variables in it; None if there is one that is not set."""
    names = re.findall(r"\$(\w+)", pattern)
    if any(name not in os.environ for name in names):
        return None
    return re.sub(r"\$(\w+)", lambda found: glob.escape(os.environ[found[1]]), pattern)


def _object(value: Any) -> Message:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> Iterator[Message]:
    return (one for one in (value if isinstance(value, list) else ()) if isinstance(one, dict))


def _values(offered: Any) -> Iterator[Message]:
    """The values of a choice; some agents put them into groups."""
    for one in _objects(offered):
        yield from _values(one["options"]) if "options" in one else (one,)


def _call_of(call: Message) -> Message:
    """What is told of a tool call, for a person."""
    texts = (_object(part.get("content")).get("text") for part in _objects(call.get("content")))
    told = {
        "title": call.get("title"),
        "input": call.get("rawInput"),
        "text": " ".join(text[:CALL_CHARS] for text in texts if isinstance(text, str)) or None,
    }
    return {key: value for key, value in told.items() if value is not None}


def _words(error: Any) -> str:
    """An error in the agent's words; many put what happened into the data."""
    said = _object(error)
    data = said.get("data")
    more = data if isinstance(data, str) else _object(data).get("details") or _object(data).get("message")
    words = [word for word in (said.get("message"), more) if isinstance(word, str) and word]
    return ": ".join(words) or f"an error without words: {json.dumps(error)[:200]}"


def say(kind: str, **members: Any) -> None:
    """Print one line."""
    text = json.dumps({"type": kind, **members}, ensure_ascii=False)
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
    sys.stdout.buffer.flush()


def complain(words: str) -> None:
    """Say something that is no line of the turn."""
    sys.stderr.buffer.write(words.encode("utf-8", "replace") + b"\n")
    sys.stderr.buffer.flush()


def fail(words: str, code: int = 1) -> NoReturn:
    """End, and say why."""
    complain(f"bridge: {words}")
    sys.exit(code)


def main(program: str, arguments: list[str]) -> int:
    """Take the turn that the command line asks for."""
    options = Options(arguments)
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        agent = Agent(program, options.rest)
    except OSError as error:
        fail(str(error), NOT_STARTED)
    try:
        Turn(agent, options).take(prompt)
    except Failure as failure:
        if failure.told:
            say("error", message=str(failure))
        else:
            complain(str(failure))
        return 1
    finally:
        agent.kill()
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        fail("which program?", 2)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
