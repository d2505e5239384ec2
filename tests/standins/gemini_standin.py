"""A stand-in for Gemini CLI 0.61.0 as its preset uses it: same arguments, lines and exit codes, no model.

It answers with what it has heard in the chat, and acts out a fault when the last prompt contains
``<<name>>``, the name being a key of `ACTS`. Like the real one it goes on in the chat's own file, which keeps
the prompt of a turn that was killed and not that of one that failed, may begin another file for a chat, and
takes a prompt that begins with / for a command. Run it as ``python -I -S gemini_standin.py``.
"""

# ruff: noqa: T201 - a command-line client prints

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

VALUED = {
    "-m",
    "--output-format",
    "--session-id",
    "--resume",
    "--allowed-mcp-server-names",
    "--extensions",
    "--approval-mode",
}
FOREVER = 600
BAD_KEY = '{"error":{"code":401,"message":"no such key","status":"UNAUTHENTICATED"}}'
SPENT = "You have exhausted your capacity on this model. Your quota will reset after 2h3m10s."

Chat = dict[str, Any]


def main(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        print("0.61.0")
        return 0
    options: dict[str, str] = {}
    rest = iter(arguments)
    for word in rest:
        if word in VALUED:
            options[word] = next(rest)
        elif word != "--skip-trust":
            return complain(f"Unknown argument: {word.lstrip('-')}", 1)
    home = Path(os.environ.get("GEMINI_CLI_HOME") or os.environ["HOME"], ".gemini")
    settings = json.loads((home / "settings.json").read_text())
    assert settings["security"]["auth"]["selectedType"]
    assert options["--output-format"] == "stream-json"
    return turn(options, home / "tmp" / Path.cwd().name / "chats", sys.stdin.read())


def complain(words: str, code: int) -> int:
    sys.stderr.write(f"{words}\n")
    return code


def turn(options: dict[str, str], folder: Path, prompt: str) -> int:
    chat: Chat = {"id": options.get("--session-id") or options["--resume"], "prompts": []}
    kept = sorted(folder.glob(f"session-*-{chat['id'][:8]}.jsonl"))
    if "--resume" in options:
        if not any(folder.glob("*.jsonl")):
            return complain("Error resuming session: No previous sessions found for this project.", 42)
        if not kept or json.loads(kept[-1].read_text())["id"] != chat["id"]:
            words = f'Error resuming session: Invalid session identifier "{chat["id"]}".'
            return complain(f"{words}\n  Use --list-sessions to see available sessions.", 42)
        chat = json.loads(kept[-1].read_text())
    elif kept:
        return complain(f'Session ID "{chat["id"]}" already exists. Use --resume', 42)
    say("init", session_id=chat["id"], model=options["-m"])
    if prompt.startswith("/"):
        words = f"[API Error: {prompt.split(maxsplit=1)[0][1:]} cannot be run. Reason: Blocked by policy.]"
        return end({}, error={"type": "Error", "message": words}, code=1)
    say("message", role="user", content=prompt)
    file = folder / f"session-2026-11-30T18-0{len(chat['prompts']) // 2}-{chat['id'][:8]}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    before = json.dumps(chat)
    chat["prompts"].append(prompt.strip())
    file.write_text(json.dumps(chat))
    for name, act in ACTS.items():
        if f"<<{name}>>" in prompt:
            return act(chat, file, before)
    return answer(chat, f"Heard {len(chat['prompts'])} turns, the first being {chat['prompts'][0]}")


def answer(chat: Chat, text: str) -> int:
    half = len(text) // 2
    for piece in (text[:half], text[half:]):
        say("message", role="assistant", content=piece, delta=True)
    return end({"gemini-stand-in": counts(100 + len(chat["prompts"]))})


def counts(incoming: int) -> dict[str, int]:
    """What a model is said to have cost: the thoughts, 3 tokens, are in the total alone."""
    return {
        "total_tokens": incoming + 13 if incoming else 0,
        "input_tokens": incoming,
        "output_tokens": 10 if incoming else 0,
        "cached": 11 if incoming else 0,
        "input": max(incoming - 11, 0),
    }


def end(models: dict[str, dict[str, int]], *, code: int = 0, status: str = "error", **more: Any) -> int:
    total = next(iter(models.values()), counts(0))
    failed = code or "error" in more
    stats = {**total, "duration_ms": 50, "tool_calls": 0, "models": models}
    say("result", status=status if failed else "success", **more, stats=stats)
    return code


def say(kind: str, **rest: Any) -> None:
    print(
        json.dumps({"type": kind, "timestamp": "2026-11-30T18:00:00.000Z", **rest}, ensure_ascii=False),
        flush=True,
    )


# --- what may go wrong -------------------------------------------------------------------------------------


def refused(words: str, code: int, file: Path, before: str) -> int:
    """The provider refused it: the prompt is taken out of the chat again."""
    file.write_text(before)
    sys.stderr.write(
        "Error when talking to Gemini API Full report available at: /tmp/x.json\n    at async Turn.run\n"
    )
    return end({"m": counts(0)}, code=code, error={"type": "unknown", "message": f"[API Error: {words}]"})


def unauthorised(_chat: Chat, file: Path, before: str) -> int:
    return refused(BAD_KEY, 145, file, before)


def used_up(_chat: Chat, file: Path, before: str) -> int:
    return refused(SPENT, 173, file, before)


def unreachable(_chat: Chat, file: Path, before: str) -> int:
    return refused("exception TypeError: fetch failed sending request", 1, file, before)


def broken_off(words: str, file: Path, before: str, text: str = "") -> int:
    """Told with exit code 0, in a line of its own."""
    file.write_text(before)
    if text:
        say("message", role="assistant", content=text, delta=True)
    say("error", severity="error", message=words)
    say(
        "result",
        status="error",
        stats={**counts(0), "duration_ms": 50, "tool_calls": 0, "models": {"m": counts(0)}},
    )
    return 0


def cut(_chat: Chat, file: Path, before: str) -> int:
    return broken_off("Model stream ended without a finish reason.", file, before, "half of an ans")


def empty(_chat: Chat, file: Path, before: str) -> int:
    return broken_off("The model returned an empty response with no text or thoughts.", file, before)


def too_long(_chat: Chat, file: Path, before: str) -> int:
    file.write_text(before)
    return end({})


def lost_output(_chat: Chat, _file: Path, _before: str) -> int:
    sys.stdout.write('{"type":"message","role":"assistant","content":"xxx')
    return 0


def another_chat(chat: Chat, _file: Path, _before: str) -> int:
    say("init", session_id="00000000-0000-4000-8000-000000000000", model="m")
    return answer(chat, "Hello.")


def not_there(chat: Chat, _file: Path, _before: str) -> int:
    words = 'Tool "run_shell_command" not found. Did you mean one of: "glob"?'
    say("tool_use", tool_name="run_shell_command", tool_id="1", parameters={"command": "id"})
    problem = {"type": "tool_not_registered", "message": words}
    say("tool_result", tool_id="1", status="error", output=words, error=problem)
    problem = {"type": "invalid_tool_params", "message": "there is no such file"}
    say("tool_result", tool_id="2", status="error", output="", error=problem)
    return answer(chat, "I was not allowed to.")


def untold(chat: Chat, _file: Path, _before: str) -> int:
    say("message", role="assistant", content="Hello.", delta=True)
    say(
        "result",
        status="success",
        stats={"total_tokens": 5, "input_tokens": 9, "cached": None, "models": {"m": {}}},
    )
    return 0 if chat else 1


def environment(chat: Chat, _file: Path, _before: str) -> int:
    system = os.environ.get("GEMINI_SYSTEM_MD")
    told = {
        "env": dict(os.environ),
        "argv": sys.argv[1:],
        "prompts": chat["prompts"],
        "system": Path(system).read_text() if system else None,
    }
    return answer(chat, json.dumps(told))


def hang(_chat: Chat, _file: Path, _before: str) -> int:
    time.sleep(FOREVER)
    return 1


ACTS = {
    act.__name__: act
    for act in (
        unauthorised,
        used_up,
        unreachable,
        cut,
        empty,
        too_long,
        lost_output,
        another_chat,
        not_there,
        untold,
        environment,
        hang,
    )
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
