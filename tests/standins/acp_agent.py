"""An agent of the Agent Client Protocol that does what its script says: no client, but what tries a bridge.

Run as ``python -I -S acp_agent.py SCRIPT``. SCRIPT is a JSON object: for a method, the list of acts that take
the place of an ordinary answer, and for ``end`` what is done once the input has ended. An act is a list: the
name of a method of `Agent`, and its arguments. What the agent hears is written to the file that the variable
``HEARD`` names, a line each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SESSION = "s-1"

CHOICES = [
    {
        "id": "model", "category": "model", "currentValue": "m1",
        "options": [
            {"value": "m1", "name": "One"},
            {"group": "g", "options": [{"value": "m2", "name": "Two"}]},
        ],
    },
    {"id": "mode", "category": "mode", "currentValue": "auto", "options": [{"value": "ask", "name": "Ask"}]},
    "nonsense",
]  # fmt: skip

ORDINARY: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": 1,
        "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"fork": {}, "resume": {}}},
    },
    "session/new": {"sessionId": SESSION, "configOptions": CHOICES},
    "session/fork": {"sessionId": "s-2", "configOptions": CHOICES},
    "session/resume": {"configOptions": CHOICES},
    "session/load": {"configOptions": CHOICES},
    "session/set_config_option": {"configOptions": CHOICES},
    "session/prompt": {"stopReason": "end_turn"},
}


class Agent:
    """One life of the agent."""

    def __init__(self, script: dict[str, list[list[Any]]]) -> None:
        self.script = script
        self.number: Any = None
        self.session = SESSION

    def live(self) -> int:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            heard(message)
            if "method" in message:
                self.answer(message)
        if "end" in self.script:
            self.act(self.script["end"])
        return 0

    def answer(self, message: dict[str, Any]) -> None:
        self.number = message["id"]
        method = message["method"]
        self.session = message["params"].get("sessionId", self.session)
        if method == "session/prompt" and method not in self.script:
            self.chunk(message["params"]["prompt"][0]["text"])
        self.act(self.script.get(method, [["result", ORDINARY[method]]]))

    def act(self, acts: list[list[Any]]) -> None:
        for name, *arguments in acts:
            getattr(self, name)(*arguments)

    def result(self, what: Any) -> None:
        send({"jsonrpc": "2.0", "id": self.number, "result": what})

    def error(self, what: Any) -> None:
        send({"jsonrpc": "2.0", "id": self.number, "error": what})

    def chunk(self, text: str, session: str | None = None) -> None:
        self.update(
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}, session
        )

    def update(self, update: Any, session: str | None = None) -> None:
        parameters = {"sessionId": session or self.session, "update": update}
        send({"jsonrpc": "2.0", "method": "session/update", "params": parameters})

    def huge(self, length: int) -> None:
        self.chunk("x" * length)

    def send(self, message: Any) -> None:
        send(message)

    def raw(self, text: str) -> None:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.flush()

    def deep(self, depth: int) -> None:
        self.raw("[" * depth + "]" * depth + "\n")

    def ask(self, method: str, parameters: dict[str, Any]) -> None:
        """Ask for something, and tell in the answer what came back."""
        send({"jsonrpc": "2.0", "id": "mine", "method": method, "params": parameters})
        reply = json.loads(sys.stdin.buffer.readline())
        assert reply.pop("id") == "mine"
        assert reply.pop("jsonrpc") == "2.0"
        self.chunk(json.dumps(reply))

    def complain(self, words: str) -> None:
        sys.stderr.write(words)
        sys.stderr.flush()

    def write(self, path: str, text: str) -> None:
        """Append to a file, below the folder that ``CHATS`` names."""
        file = Path(os.environ["CHATS"], path)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as opened:
            opened.write(text)

    def orphan(self, seconds: str) -> None:
        """Leave somebody behind who holds the output open."""
        subprocess.Popen(["/bin/sleep", seconds])

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def deaf(self) -> None:
        """Close the input, and go on."""
        os.close(0)
        time.sleep(30)

    def mute(self) -> None:
        """Close the output, and go on."""
        os.close(1)
        time.sleep(30)

    def die(self, code: int) -> None:
        os._exit(code)

    def kill(self, number: int) -> None:
        os.kill(os.getpid(), number)


def send(message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def heard(message: Any) -> None:
    if "HEARD" in os.environ:
        with Path(os.environ["HEARD"]).open("a") as file:
            file.write(json.dumps(message) + "\n")


if __name__ == "__main__":
    sys.exit(Agent(json.loads(sys.argv[1])).live())
