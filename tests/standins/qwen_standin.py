"""A stand-in for Qwen Code 0.24.4 as its preset uses it: same arguments, lines and exit codes, no model.

It answers with what it has heard in the chat, and acts out a fault when the last prompt contains
``<<name>>``, the name being a key of `ACTS`. Like the real one it makes up ids, remembers the prompt of a
turn that failed, counts over a chat's life, and takes a prompt that begins with / for a command. Run it as
``python -I -S qwen_standin.py``.
"""

# ruff: noqa: T201 - a command-line client prints

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any

VALUED = {
    "--output-format",
    "--approval-mode",
    "-m",
    "--auth-type",
    "--exclude-tools",
    "--resume",
}
PLAIN = {"--bare", "--fork-session"}
SPENT = "Quota exhausted: your quota will reset at 2026-12-01T08:00:00Z\n\nPlease retry after the reset time."

Chat = dict[str, Any]


def main(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        print("0.24.4")
        return 0
    options: dict[str, str] = {}
    rest = iter(arguments)
    for word in rest:
        if word not in VALUED | PLAIN:
            return complain(f"Unknown argument: {word.lstrip('-')}")
        options[word] = next(rest) if word in VALUED else ""
    assert options["--output-format"] == "stream-json"
    assert options["--approval-mode"] == "default"
    restricted = "--bare" in options
    assert ("--exclude-tools" in options) == restricted
    home = Path(os.environ.get("QWEN_HOME") or Path(os.environ["HOME"], ".qwen"))
    folder = home / "projects" / str(Path.cwd()).replace("/", "-") / "chats"
    return turn(options, folder, sys.stdin.read())


def complain(words: str) -> int:
    sys.stderr.write(f"{words}\n")
    return 1


def turn(options: dict[str, str], folder: Path, prompt: str) -> int:
    chat: Chat = {"prompts": [], "answers": 0, "tokens": 0}
    old = options.get("--resume")
    if old is not None:
        assert "--fork-session" in options
        if not (folder / f"{old}.jsonl").exists():
            return complain(f"No saved session found with ID {old}. Run `qwen --resume` without an ID.")
        chat = json.loads((folder / f"{old}.jsonl").read_text())
    chat["id"] = old if old and "<<same_chat>>" in prompt else str(uuid.uuid4())
    say(chat, "system", subtype="init", tools=[], model=options["-m"], permission_mode="default")
    if prompt.startswith("/help"):
        words = 'The command "/help" is not supported in this mode.'
        return end(chat, failed=words, calls=0)
    if prompt.startswith("/"):
        return end(chat, "Session duration: 0s", calls=0)
    folder.mkdir(parents=True, exist_ok=True)
    chat["prompts"].append(prompt.strip())
    (folder / f"{chat['id']}.jsonl").write_text(json.dumps(chat))  # the failed prompt stays
    for name, act in ACTS.items():
        if f"<<{name}>>" in prompt:
            return act(chat)
    chat["answers"] += 1
    chat["tokens"] += 100 + len(chat["prompts"])
    (folder / f"{chat['id']}.jsonl").write_text(json.dumps(chat))
    return end(chat, f"Heard {len(chat['prompts'])} turns, the first being {chat['prompts'][0]}")


def end(chat: Chat, text: str | None = None, *, calls: int = 1, failed: str = "", **more: Any) -> int:
    used = {"input_tokens": chat["tokens"], "output_tokens": 13 * chat["answers"]}
    used["cache_read_input_tokens"] = 11 * chat["answers"]
    if text is not None:
        content = [{"type": "text", "text": text}]
        say(chat, "assistant", message={"role": "assistant", "model": "m", "content": content})
    told = {"error": {"message": failed}} if failed else {"result": text}
    say(
        chat,
        "result",
        subtype="error_during_execution" if failed else "success",
        is_error=bool(failed),
        num_turns=calls,
        usage=used,
        **{"permission_denials": [], **told, **more},
    )
    return int(bool(failed))


def say(chat: Chat, kind: str, **rest: Any) -> None:
    print(json.dumps({"type": kind, "session_id": chat["id"], **rest}), flush=True)


# --- what may go wrong -------------------------------------------------------------------------------------


def unauthorised(chat: Chat) -> int:
    return end(chat, failed="[API Error: 401 no such key]")


def guarded(_chat: Chat) -> int:
    """The module that the preset has its Node load has seen enough."""
    sys.stderr.write("Ripgrep not available: EACCES.\nAPI Error: 429 Too Many Requests\n")
    return 1


def used_up(chat: Chat) -> int:
    return end(chat, failed=SPENT)


def unreachable(chat: Chat) -> int:
    return end(chat, failed="[API Error: Connection error. (cause: fetch failed)]")


def too_long(chat: Chat) -> int:
    return end(chat, failed="Context is too large. Estimated prompt tokens: 500194", calls=0)


def cut(chat: Chat) -> int:
    return end(chat, failed="[API Error: Model stream ended without a finish reason.]")


def empty(chat: Chat) -> int:
    return end(chat, failed="[API Error: Model stream ended with empty response text.]")


def counts_anew(chat: Chat) -> int:
    return end({**chat, "tokens": 0}, "Hello.")


def same_chat(chat: Chat) -> int:
    return end(chat, "Hello.")


def denied(chat: Chat) -> int:
    wanted = {"tool_name": "run_shell_command", "tool_use_id": "1", "tool_input": {"command": "rm -r /"}}
    return end(chat, "I was not allowed to.", permission_denials=[wanted])


def environment(chat: Chat) -> int:
    system = os.environ.get("QWEN_SYSTEM_MD")
    told = {"env": dict(os.environ), "argv": sys.argv[1:], "prompts": chat["prompts"]}
    return end(chat, json.dumps({**told, "system": Path(system).read_text() if system else None}))


ACTS = {
    act.__name__: act
    for act in (
        unauthorised,
        guarded,
        used_up,
        unreachable,
        too_long,
        cut,
        empty,
        counts_anew,
        same_chat,
        denied,
        environment,
    )
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
