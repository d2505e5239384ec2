"""A client that keeps every rule of a seat before a provider on loopback, and breaks one where it is told to.

It speaks the Messages API. ``--flaw NAME`` names what it does wrong; `FLAWS` lists them. Run it as
``python -I -S tried_standin.py``.
"""

# ruff: noqa: T201 - a command-line client prints

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FLAWS = {
    "forgets": "every turn is the chat's first",
    "forgets-itself": "its own answers are not sent along",
    "no-system": "the system prompt is not sent",
    "asks-more": "a title for the chat is asked for as well",
    "counts-the-chat": "the tokens of the whole chat are told",
    "always-tools": "tools are offered in any profile",
    "reads-memory": "the memory of person and project is read in any profile",
    "runs-hooks": "the project's hook is run in any profile",
    "runs-any-tool": "a tool is run without a question",
    "keeps-quiet": "what was refused is not told",
    "ignores-memory": "the memory of person and project is never read",
    "one-memory": "all seats have the same chat",
    "begins-anew": "an unknown chat is begun without a word",
    "swallows-errors": "a failure is an empty answer and exit code 0",
    "no-words": "a failure is an exit code and no more",
    "remembers-failures": "the prompt of a failed turn is written into the chat that it was to go on from",
    "shows-key": "an error shows the end of the key, which is not found there as the key",
    "asks-without-key": "without a key there is an answer, which nobody gave",
    "hides-the-line": "that nobody was reached is told in other words",
    "gives-up": "a provider that hangs is given up at once",
    "leaves-a-process": "something is started that outlives the turn",
    "commands": "a prompt that begins with / is a command",
    "attaches": "@path sends the file along",
    "dialogs": "what looks like a question of its own is taken for one",
    "drops-quotes": "quoted lines are left out",
    "cuts-input": "only half a megabyte is read",
    "no-limit": "a prompt that is too long is sent all the same",
    "cuts-output": "only the beginning of an answer is told",
}
KEY_VARIABLE = "TRIED_KEY"
LIMIT = 2_000_000
MEMORY = "TRIED.md"
TOOLS = [{"name": "shell", "input_schema": {"type": "object"}}]

Json = dict[str, Any]


class Trouble(Exception):  # noqa: N818 - what a client has
    """Raised for what the turn fails of, in the client's words."""


def main(words: list[str]) -> int:
    if words == ["--version"]:
        print("tried 1.0")
        return 0
    options = argparse.ArgumentParser()
    for name in ("--url", "--chat", "--new", "--system", "--profile", "--flaw"):
        options.add_argument(name, default="")
    asked = options.parse_args(words)
    assert not asked.flaw or asked.flaw in FLAWS
    try:
        return Turn(asked).take(sys.stdin.buffer.read())
    except Trouble as trouble:
        if asked.flaw == "swallows-errors":
            return tell(asked.new, "", calls=1)
        if asked.flaw != "no-words":
            sys.stderr.write(f"tried: {trouble}\n")
        return 1


def tell(chat: str, text: str, **more: Any) -> int:
    print(json.dumps({"chat": chat, "text": text, "refused": [], **more}))
    return 0


class Turn:
    """One turn in a copy of a chat."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.flaw: str = asked.flaw
        self.native = asked.profile == "native"
        own = Path(os.environ.get("TRIED_HOME") or Path(os.environ["HOME"], ".tried"))
        self.folder = own / "chats"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.refused: list[str] = []
        self.calls = 0

    def take(self, raw: bytes) -> int:
        key = os.environ.get(KEY_VARIABLE, "")
        if self.flaw == "asks-without-key" and not key:
            return tell(self.asked.new, "Hello.", calls=1)
        if not key:
            raise Trouble("no key was given")
        if self.flaw == "cuts-input":
            raw = raw[:500_000]
        if len(raw) > LIMIT and self.flaw != "no-limit":
            raise Trouble("the prompt is too long")
        prompt = self.read(raw.decode())
        if prompt is None:
            return tell(self.asked.new, "That is a command.", calls=0)
        before = self.history()
        history = [*before, {"role": "user", "content": prompt}]
        if self.flaw == "remembers-failures" and self.asked.chat:
            self.file(self.asked.chat).write_text(json.dumps(history))
        self.start_what_stays()
        sent = history
        if self.flaw == "forgets-itself":
            sent = [message for message in history if message["role"] == "user"]
        answer = self.converse(sent, key)
        text = "".join(block["text"] for block in answer["content"] if block["type"] == "text")
        if self.flaw == "remembers-failures" and self.asked.chat:
            self.file(self.asked.chat).write_text(json.dumps(before))
        history.append({"role": "assistant", "content": text})
        self.file(self.asked.new).write_text(json.dumps(history))
        if self.flaw == "cuts-output":
            text = text[:1000]
        if self.flaw == "asks-more":
            self.post([{"role": "user", "content": "a title, please"}], key)
        usage = answer["usage"]
        if self.flaw == "counts-the-chat":
            usage = {name: count * (1 + len(before)) for name, count in usage.items()}
        refused = [] if self.flaw == "keeps-quiet" else self.refused
        return tell(self.asked.new, text, calls=self.calls, usage=usage, refused=refused)

    def read(self, prompt: str) -> str | None:
        """The prompt as it is sent; None for a command."""
        if self.flaw == "commands" and prompt.startswith("/"):
            return None
        if self.flaw == "dialogs" and prompt.startswith("Do you"):
            return "yes"
        if self.flaw == "attaches":
            for word in prompt.split():
                if word.startswith("@") and Path(word[1:]).is_file():
                    prompt += "\n" + Path(word[1:]).read_text()
        if self.flaw == "drops-quotes":
            prompt = "\n".join(line for line in prompt.splitlines() if not line.startswith(">"))
        return prompt

    def file(self, chat: str) -> Path:
        if self.flaw == "one-memory":
            return self.folder.parents[2] / "the-one-chat.json"
        return self.folder / f"{chat}.json"

    def history(self) -> list[Json]:
        if self.flaw == "one-memory" and self.file("").exists():
            return list(json.loads(self.file("").read_text()))
        if not self.asked.chat or self.flaw == "forgets":
            return []
        if not self.file(self.asked.chat).exists():
            if self.flaw == "begins-anew":
                return []
            raise Trouble(f"there is no chat {self.asked.chat}")
        return list(json.loads(self.file(self.asked.chat).read_text()))

    def start_what_stays(self) -> None:
        if self.flaw == "leaves-a-process":
            env = {name: value for name, value in os.environ.items() if name != "SEAT_RUN"}
            closed = subprocess.DEVNULL
            subprocess.Popen(
                ["/bin/sleep", "12"],
                env=env,
                start_new_session=True,
                stdin=closed,
                stdout=closed,
                stderr=closed,
            )

    def converse(self, history: list[Json], key: str) -> Json:
        """Ask the model, and run or refuse the tools that it wants."""
        answer = self.post(history, key)
        while calls := [block for block in answer["content"] if block["type"] == "tool_use"]:
            results = [self.use(call) for call in calls]
            history = [
                *history,
                {"role": "assistant", "content": answer["content"]},
                {"role": "user", "content": results},
            ]
            answer = self.post(history, key)
        return answer

    def use(self, call: Json) -> Json:
        command = call["input"]["command"]
        if self.flaw == "runs-any-tool":
            subprocess.run(["/bin/sh", "-c", command], check=False)
            told = "done"
        elif self.native:
            self.refused.append(f"{call['name']}: {command}")
            told = "the user does not allow it"
        else:
            told = "there is no such tool"
        return {"type": "tool_result", "tool_use_id": call["id"], "content": told}

    def system(self) -> str:
        parts = [] if self.flaw == "no-system" else [Path(self.asked.system).read_text()]
        if (self.native or self.flaw == "reads-memory") and self.flaw != "ignores-memory":
            seen = (Path.cwd() / MEMORY, Path.home() / MEMORY)
            parts += [file.read_text() for file in seen if file.exists()]
        hook = Path.cwd() / ".tried" / "hook"
        if self.flaw == "runs-hooks" and hook.exists():
            subprocess.run(["/bin/sh", hook], check=False)
        return "\n".join(parts)

    def post(self, messages: list[Json], key: str) -> Json:
        self.calls += 1
        tools = TOOLS if self.native or self.flaw == "always-tools" else []
        body = {"model": "model", "system": self.system(), "messages": messages, "tools": tools}
        address = urlsplit(self.asked.url)
        line = HTTPConnection(
            address.hostname or "", address.port, timeout=0.3 if self.flaw == "gives-up" else None
        )
        try:
            line.request("POST", "/v1/messages", json.dumps(body), {"x-api-key": key})
        except OSError:
            what = "something is wrong" if self.flaw == "hides-the-line" else "nobody is there"
            raise Trouble(what) from None
        try:
            response = line.getresponse()
            told = json.loads(response.read())
        except (OSError, HTTPException, ValueError) as problem:
            raise Trouble(f"the line broke: {type(problem).__name__}") from None
        if response.status != 200:
            shown = f" (key: …{key[-12:]})" if self.flaw == "shows-key" else ""
            raise Trouble(f"status {response.status}: {told['error']['message']}{shown}")
        return dict(told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
