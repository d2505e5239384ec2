"""A stand-in for Kimi Code 2.1.0 as its preset uses it: the same protocol and files, no model.

It answers with what it has heard in the chat, and acts out a fault when the last prompt contains
``<<name>>``, the name being one of `FAILURES` or of a method ``act_name``. Like the real one it makes up
ids, remembers the prompt of a turn that failed, ends most failures like any other turn, writes everything
down in a file of the chat, and takes a prompt that begins with / for a command. Run it as
``python -I -S kimi_standin.py acp``.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import uuid
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FAILURES = {
    "refused": "400 no such thing",
    "limited": "429 slow down",
    "broke": "403 insufficient balance, please recharge your account",
    "failed": "500 broken",
    "unreachable": "Connection error.",
    "empty": "The API returned an empty response (no content, no tool calls).",
}

AGENT = """\
---
name: agent
description: A seat of a debate.
override: true
tools: []
subagents: []
---
"""


class Refused(Exception):  # noqa: N818 - what the protocol calls an error
    """An error of the protocol: ``code`` and the message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}


class Agent:
    """One life of the client."""

    def __init__(self) -> None:
        self.home = Path(os.environ["KIMI_CODE_HOME"])
        self.session = ""
        self.choices = {"model": "another", "mode": "default", "thinking": "on"}

    def live(self) -> int:
        for line in sys.stdin:
            message = json.loads(line)
            method, parameters = message["method"].replace("/", "_"), message["params"]
            try:
                reply = {"result": getattr(self, method)(parameters)}
            except Refused as refused:
                reply = {"error": refused.error}
            send({"id": message["id"], **reply})
        return 0

    # --- the protocol -----------------------------------------------------------------------------------

    def initialize(self, asked: Json) -> Json:
        assert asked["clientCapabilities"]["fs"] == {"readTextFile": False, "writeTextFile": False}
        able = {"loadSession": True, "sessionCapabilities": {"fork": {}, "resume": {}}}
        return {"protocolVersion": 1, "agentCapabilities": able}

    def session_new(self, asked: Json) -> Json:
        self.authorise(asked)
        self.begin()
        self.record({"type": "metadata", "protocol_version": "1.5"})
        return {"sessionId": self.session, "configOptions": self.offers()}

    def session_fork(self, asked: Json) -> Json:
        self.authorise(asked)
        parent = self.file(asked["sessionId"])
        if not parent.exists():
            raise Refused(-32602, f"Invalid params: Unknown sessionId: {asked['sessionId']}")
        self.begin()
        shutil.copyfile(parent, self.file(self.session))
        self.record({"type": "forked", "agentId": "main"})
        return {"sessionId": self.session, "configOptions": self.offers()}

    def session_set_config_option(self, asked: Json) -> Json:
        self.choices[asked["configId"]] = asked["value"]
        return {"configOptions": self.offers()}

    def session_prompt(self, asked: Json) -> Json:
        assert self.choices["mode"] == "default"
        [block] = asked["prompt"]
        text: str = block["text"]
        if text.startswith("/"):
            self.chunk(f"Unknown ACP command: {text}. Use /help to see available commands.")
            return {"stopReason": "end_turn"}
        prompt = {"type": "text", "text": text}
        self.record({"type": "turn.prompt", "agentId": "main", "input": [prompt]})
        for name, words in FAILURES.items():
            if f"<<{name}>>" in text:
                return self.fail(words)
        act = next((act for act in dir(self) if act.startswith("act_") and f"<<{act[4:]}>>" in text), "say")
        getattr(self, act)()
        return {"stopReason": "end_turn"}

    def authorise(self, asked: Json) -> None:
        assert asked["mcpServers"] == []
        if "KIMI_MODEL_NAME" in os.environ and "KIMI_MODEL_API_KEY" not in os.environ:
            raise Refused(-32000, "Authentication required")
        agent, cwd = self.home / "agents" / "agent.md", Path(asked["cwd"])
        if cwd.name == "desk":
            assert agent.read_text().startswith(AGENT)
            assert (cwd / ".git").exists()

    def offers(self) -> list[Json]:
        return [
            {
                "id": name, "category": {"thinking": "thought_level"}.get(name, name), "type": "select",
                "currentValue": self.choices[name],
                "options": [{"value": one, "name": called} for one, called in known],
            }
            for name, known in (
                ("model", (("another", "another"), ("__kimi_env_model__", "m"))),
                ("thinking", (("off", "Thinking Off"), ("on", "Thinking On"))),
                ("mode", (("default", "Default"), ("yolo", "YOLO"))),
            )
        ]  # fmt: skip

    # --- acts -------------------------------------------------------------------------------------------

    def act_unauthorised(self) -> None:
        self.fail("401 no such key")
        raise Refused(-32000, "Authentication required: 401 no such key")

    def act_cut(self) -> None:
        """The connection breaks off, and nobody but the missing reason tells."""
        self.step("Heard on", tokens=0, reason=None)

    def act_tool(self) -> None:
        call = {
            "title": "Bash",
            "content": [{"type": "content", "content": {"type": "text", "text": "Run: rm x"}}],
        }
        options = [
            {"optionId": "approve_once", "kind": "allow_once"},
            {"optionId": "no", "kind": "reject_once"},
        ]
        parameters = {"sessionId": self.session, "toolCall": call, "options": options}
        send({"id": 0, "method": "session/request_permission", "params": parameters})
        reply = json.loads(sys.stdin.readline())
        assert reply["result"] == {"outcome": {"outcome": "selected", "optionId": "no"}}
        self.step("I will run it.", tokens=10, reason="tool_calls")
        self.step("It was not run.", tokens=20)

    def act_compacts(self) -> None:
        self.chunk("Compacting conversation context…")
        self.used(1000, agent="main")
        self.used(50, agent="coder-1")
        self.say()

    def act_writes_nothing_down(self) -> None:
        self.chunk("Trust me.")

    def act_die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def act_hang(self) -> None:
        time.sleep(600)

    def say(self) -> None:
        prompts = self.prompts()
        self.step(f"Heard {len(prompts)} turns, the first being{prompts[0]}", tokens=100 + len(prompts))

    # --- the chat ---------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.session = f"session_{uuid.uuid4()}"
        self.file(self.session).parent.mkdir(parents=True)

    def file(self, session: str, agent: str = "main") -> Path:
        return self.home / "sessions" / "wd_desk_0" / session / "agents" / agent / "wire.jsonl"

    def record(self, record: Json, agent: str = "main") -> None:
        file = self.file(self.session, agent)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as opened:
            opened.write(json.dumps(record, ensure_ascii=False) + "\n")

    def prompts(self) -> list[str]:
        records = map(json.loads, self.file(self.session).read_text().splitlines())
        return [record["input"][0]["text"] for record in records if record["type"] == "turn.prompt"]

    def used(self, tokens: int, agent: str) -> None:
        usage = {"inputOther": tokens, "output": 13, "inputCacheRead": 11, "inputCacheCreation": 0}
        self.record({"type": "usage.record", "agentId": agent, "usage": usage}, agent)

    def step(self, text: str, *, tokens: int, reason: str | None = "completed") -> None:
        """What the model says, asked once."""
        half = len(text) // 2
        self.chunk(text[:half])
        self.chunk(text[half:])
        self.record({"type": "llm.request", "agentId": "main", "model": "kimi-stand-in"})
        self.used(tokens, "main")
        part: Json = {"type": "content.part", "part": {"type": "text", "text": text}}
        ended: Json = {"type": "step.end", "finishReason": "end_turn"}
        for event in (part, ended if reason is None else {**ended, "providerFinishReason": reason}):
            self.record({"type": "context.append_loop_event", "agentId": "main", "event": event})
        self.record({"type": "turn.ended", "agentId": "main", "reason": "completed"})

    def fail(self, words: str) -> Json:
        self.record({"type": "llm.request", "agentId": "main", "model": "kimi-stand-in"})
        error = {"code": "provider.api_error", "message": words}
        self.record({"type": "turn.ended", "agentId": "main", "reason": "failed", "error": error})
        return {"stopReason": "end_turn"}

    def chunk(self, text: str) -> None:
        content = {"type": "text", "text": text}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        send({"method": "session/update", "params": {"sessionId": self.session, "update": update}})


def send(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write("2.1.0\n")
    elif sys.argv[1:] == ["acp"]:
        sys.exit(Agent().live())
    else:
        sys.stderr.write(f"error: unknown command '{sys.argv[1]}'\n")
        sys.exit(1)
