"""A stand-in for opencode 1.18.33 as its presets use it: same arguments, lines and exit codes, no model.

It answers with what it has heard in the session, and acts out a fault when the last prompt contains
``<<name>>``, the name being a key of `ACTS`. Like the real one it makes up ids, keeps every session in one
file, remembers the prompt of a turn that failed, and loads the plug-in that its configuration names, whose
lines it prints. Run it as ``python -I -S opencode_standin.py``.
"""

# ruff: noqa: T201 - a command-line client prints

from __future__ import annotations

import json
import os
import signal
import sys
import time
import uuid
from pathlib import Path
from typing import Any

VALUED = {"--format", "--model", "--agent", "--title", "--session", "--dir"}
FOREVER = 600

Line = dict[str, Any]


def main(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        print("1.18.33")
        return 0
    command, *words = arguments
    options: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word in VALUED:
            options[word] = next(rest)
        elif word == "--fork":
            options[word] = ""
        else:
            return complain(f"opencode {command} [message..]")
    assert (command, options["--format"]) == ("run", "json")
    if not Path(options.get("--dir", ".")).is_dir():
        return complain(f"Failed to change directory to {options['--dir']}")
    assert ("--session" in options) == ("--fork" in options) != ("--title" in options)
    return turn(options, sys.stdin.read())


def complain(words: str) -> int:
    sys.stderr.write(f"\x1b[91m\x1b[1mError: \x1b[0m{words}\n")
    return 1


def configuration(options: dict[str, str]) -> Line:
    """What the client is told to be, and what of it the model would see."""
    place = Path(os.environ["OPENCODE_CONFIG"])
    config: Line = json.loads(place.read_text())
    provider, _, model = options["--model"].partition("/")
    assert model in config["provider"][provider]["models"]
    (plugin,) = config["plugin"]
    assert "export const" in (place.parent / plugin).read_text()
    if agent := options.get("--agent"):
        wanted = config["agent"][agent]
        assert wanted["permission"] == config["permission"] == {"*": "deny"}
        named = wanted["prompt"].removeprefix("{file:").removesuffix("}")
        config["system"] = (place.parent / named).read_text()
    else:
        config["system"] = "".join(Path(path).read_text() for path in config["instructions"])
    return config


def turn(options: dict[str, str], prompt: str) -> int:
    if not prompt.strip():
        return complain("You must provide a message or a command")
    file = Path(os.environ["HOME"], ".local", "share", "opencode", "opencode.db")
    file.parent.mkdir(parents=True, exist_ok=True)
    sessions: dict[str, list[str]] = json.loads(file.read_text()) if file.exists() else {}
    if not file.exists():
        file.write_text("{}")
    old = options.get("--session")
    if old is not None and old not in sessions:
        return complain("Session not found")
    config = configuration(options)
    session = Session(f"ses_{uuid.uuid4().hex[:26]}", [*sessions.get(old or "", []), prompt], config)
    if "<<same_session>>" in prompt and old is not None:
        session.id = old
    sessions[session.id] = session.prompts
    new = file.with_suffix(".new")
    new.write_text(json.dumps(sessions))
    new.replace(file)  # whole or not at all: tests look at it meanwhile
    for name, act in ACTS.items():
        if f"<<{name}>>" in prompt:
            return act(session)
    session.step("stop", f"Heard {len(session.prompts)} turns, the first being {session.prompts[0]}")
    return 0


class Session:
    """One session, and the lines that are printed of it."""

    def __init__(self, name: str, prompts: list[str], config: Line) -> None:
        self.id, self.prompts, self.config = name, prompts, config

    def say(self, kind: str, **more: Any) -> None:
        line = {"type": kind, "timestamp": 1796061836279, "sessionID": self.id, **more}
        print(json.dumps(line, ensure_ascii=False, separators=(",", ":")), flush=True)

    def part(self, kind: str, **more: Any) -> None:
        self.say(kind, part={"id": "prt_1", "sessionID": self.id, "type": kind.replace("_", "-"), **more})

    def step(self, reason: str, *texts: str) -> None:
        self.part("step_start")
        for text in texts:
            self.part("text", text=text, time={"start": 1, "end": 2})
        fresh = 100 + len(self.prompts)
        counts = {"input": fresh, "output": 10, "reasoning": 3, "cache": {"write": 0, "read": 11}}
        self.part("step_finish", reason=reason, tokens={"total": fresh + 24, **counts}, cost=0)

    def plugin(self, words: str) -> None:
        print(json.dumps({"type": "seat", "words": words}), flush=True)

    def error(self, **data: Any) -> int:
        if "statusCode" in data:
            self.plugin(f"the provider answered {data['statusCode']}: {data['message']}")
        headers = {"x-secret": "hidden"}
        data |= {"isRetryable": False, "responseHeaders": headers, "metadata": {"url": "http://x/v1"}}
        self.say("error", error={"name": "APIError", "data": data})
        return 1


# --- what may go wrong -------------------------------------------------------------------------------------


def unauthorised(session: Session) -> int:
    return session.error(message="no such key", statusCode=401)


def no_money(session: Session) -> int:
    return session.error(message="Insufficient Balance", statusCode=402)


def failing(session: Session) -> int:
    session.plugin("gave up after 3 of its tries: Overloaded")
    return 1


def used_up(session: Session) -> int:
    session.plugin("gave up after 1 of its tries: Rate limit reached; again at 2026-11-30T15:34:02.500Z")
    return 1


def unreachable(session: Session) -> int:
    session.plugin("gave up after 3 of its tries: Cannot connect to API: Unable to connect. Is it there?")
    return 1


def no_key(session: Session) -> int:
    session.plugin("there is no key for https://api.example.org/v1")
    return 1


def elsewhere(session: Session) -> int:
    session.plugin("the chat was begun in another folder: /somewhere")
    return 1


def cut(session: Session) -> int:
    session.step("unknown", "Half an ans")
    session.plugin("the answer broke off")
    return 1


def empty(session: Session) -> int:
    session.step("stop")
    return 0


def silent(_session: Session) -> int:
    return 0


def without_plugin(session: Session) -> int:
    session.say(
        "error", error={"name": "UnknownError", "data": {"message": "Unexpected \x1b[1mserver error."}}
    )
    return 1


def denied(session: Session) -> int:
    session.part("step_start")
    state = {
        "status": "error",
        "input": {"command": "rm -r \x1b[2J/"},
        "error": "The user rejected permission to use this specific tool call.",
    }
    session.part("tool_use", tool="bash", callID="call_1", state=state)
    session.step("tool-calls", "Let me see.\n")
    session.step("stop", "I was not ", "allowed to.")
    return 0


def environment(session: Session) -> int:
    told = {"env": dict(os.environ), "cwd": str(Path.cwd()), "argv": sys.argv[1:], "config": session.config}
    session.step("stop", json.dumps(told))
    return 0


def hang(_session: Session) -> int:
    time.sleep(FOREVER)
    return 1


def die(_session: Session) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 1


def same_session(session: Session) -> int:
    session.step("stop", "Hello.")
    return 0


ACTS = {
    act.__name__: act
    for act in (
        unauthorised,
        no_money,
        failing,
        used_up,
        unreachable,
        no_key,
        elsewhere,
        cut,
        empty,
        silent,
        without_plugin,
        denied,
        environment,
        hang,
        die,
        same_session,
    )
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
