"""A stand-in for Claude Code 2.1.332 as its presets use it: same arguments, lines and exit codes, no model.

It answers with what it has heard in the chat, and acts out a fault when the last prompt contains
``<<name>>``, the name being a key of `ACTS`. Like the real one it remembers the prompt of a turn that
failed, counts costs over a chat's life, and takes a prompt that begins with / for a command. Run it as
``python -I -S claude_standin.py``.
"""

# ruff: noqa: T201 - a command-line client prints

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

VALUED = {
    "--output-format",
    "--tools",
    "--setting-sources",
    "--permission-prompts",
    "--model",
    "--effort",
    "--system-prompt-file",
    "--append-system-prompt-file",
    "--session-id",
    "--resume",
}
PLAIN = {
    "-p",
    "--verbose",
    "--strict-mcp-config",
    "--disable-slash-commands",
    "--safe-mode",
    "--fork-session",
}
PRICE = 0.001
FOREVER = 600

Line = dict[str, Any]


def main(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        print(f"{os.environ.get('STANDIN_VERSION', '2.1.332')} (Claude Code)")
        return 0
    options: dict[str, str] = {}
    rest = iter(arguments)
    for word in rest:
        if word in VALUED:
            options[word] = next(rest)
        elif word in PLAIN:
            options[word] = ""
        else:
            return complain(f"error: unknown option '{word}'")
    assert options["--output-format"] == "stream-json"
    new, old = options["--session-id"], options.get("--resume")
    if old is not None and "--fork-session" not in options:
        return complain("--session-id with --continue or --resume also needs --fork-session.")
    if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", new):
        return complain("Error: Invalid session ID. Must be a valid UUID.")
    return turn(options, new, old, sys.stdin.read())


def complain(words: str) -> int:
    sys.stderr.write(f"{words}\n")
    return 1


def turn(options: dict[str, str], new: str, old: str | None, prompt: str) -> int:
    folder = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path(os.environ["HOME"], ".claude"))
    folder = folder / "projects" / str(Path.cwd()).replace("/", "-")
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / f"{new}.jsonl").exists():
        return complain(f"Error: Session ID {new} is already in use.")
    if not prompt.strip():
        return complain("Error: Input must be provided either through stdin or as a prompt argument")
    chat: Line = {"prompts": [], "answers": 0, "usd": 0.0}
    if old is not None:
        if not (folder / f"{old}.jsonl").exists():
            words = f"No conversation found with session ID: {old}"
            say({"type": "result", "is_error": True, "num_turns": 0, "session_id": new, "errors": [words]})
            return complain(words)
        chat = json.loads((folder / f"{old}.jsonl").read_text())
    else:
        named = options.get("--system-prompt-file") or options["--append-system-prompt-file"]
        chat["system"] = Path(named).read_text()
    say({"type": "system", "subtype": "ui_invalidate", "event": "ui.render", "session_id": new})
    tools = [] if options.get("--tools") == "" else ["Bash", "Read"]
    say({"type": "system", "subtype": "init", "session_id": new, "tools": tools, "model": "stand-in"})
    if prompt.startswith("/"):
        return end(new, chat, f"{prompt.split(maxsplit=1)[0]} isn't available in this environment.", calls=0)
    chat["prompts"].append(prompt.strip())
    (folder / f"{new}.jsonl").write_text(json.dumps(chat))  # the failed prompt stays, as with the real one
    for name, act in ACTS.items():
        if f"<<{name}>>" in prompt:
            return act(new, chat)
    return answer(new, chat, folder)


def answer(new: str, chat: Line, folder: Path) -> int:
    chat["usd"] += PRICE
    chat["answers"] += 1
    (folder / f"{new}.jsonl").write_text(json.dumps(chat))
    return end(new, chat, f"Heard {len(chat['prompts'])} turns, the first being {chat['prompts'][0]}")


def end(new: str, chat: Line, text: str, *, calls: int = 1, failed: bool = False, **more: Any) -> int:
    model = "<synthetic>" if failed or not calls else "claude-stand-in"
    message = {"model": model, "role": "assistant", "content": [{"type": "text", "text": text}]}
    say({"type": "assistant", "message": message, "session_id": new})
    used = {
        "input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
        "output_tokens": 0,
    }
    if calls and not failed:
        used = {
            "input_tokens": 100 + len(chat["prompts"]),
            "cache_read_input_tokens": 11,
            "cache_creation_input_tokens": 7,
            "output_tokens": 13,
        }
    result = {
        "session_id": new,
        "total_cost_usd": chat["usd"],
        "usage": used,
        "permission_denials": [],
        "is_error": failed,
        "num_turns": calls,
        "subtype": "success",
        "result": text,
        "type": "result",
    }
    say({**result, **more})
    return int(failed)


def say(line: Line) -> None:
    # The real one escapes C0 and C1 and nothing else.
    text = json.dumps(line, ensure_ascii=False)
    print(re.sub("[\x80-\x9f]", lambda char: f"\\u{ord(char[0]):04x}", text), flush=True)


# --- what may go wrong -------------------------------------------------------------------------------------


def unauthorised(new: str, chat: Line) -> int:
    say({"type": "system", "subtype": "api_retry", "attempt": 1, "error_status": 401, "session_id": new})
    return end(new, chat, "Failed to authenticate. API Error: 401 no such key", failed=True)


def used_up(new: str, chat: Line) -> int:
    return end(new, chat, "Claude AI usage limit reached|1796052842", failed=True)


def hit_the_limit(new: str, chat: Line) -> int:
    return end(new, chat, "You've hit your session limit · resets 3pm (Europe/Rome)", failed=True)


def not_logged_in(new: str, chat: Line) -> int:
    return end(new, chat, "Not logged in · Please run /login", failed=True)


def failed_with_exit_0(new: str, chat: Line) -> int:
    end(new, chat, "API Error: 500 \x1b[31mbroken\x1b[0m", failed=True)
    return 0


def empty(new: str, chat: Line) -> int:
    return end(new, chat, "", calls=2)


def breaks_off(new: str, _chat: Line) -> int:
    say({"type": "assistant", "message": {"model": "claude-stand-in"}, "session_id": new})
    sys.stdout.write('{"type":"result","is_error":fal')
    return 0


def another_chat(_new: str, chat: Line) -> int:
    return end("00000000-0000-4000-8000-000000000000", chat, "Hello.")


def no_chat(_new: str, chat: Line) -> int:
    return end("latest", chat, "Hello.")


def counts_anew(new: str, chat: Line) -> int:
    return end(new, {**chat, "usd": 0.0}, "Hello.")


def no_cost(new: str, chat: Line) -> int:
    return end(new, chat, "Hello.", total_cost_usd=None)


def denied(new: str, chat: Line) -> int:
    wanted = {"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": "rm -r \x1b[2J/"}}
    return end(new, chat, "I was not allowed to.", permission_denials=[wanted])


def dirty(new: str, chat: Line) -> int:
    return end(new, chat, "a \x1b[31mred\x1b[0m\x07 word\u202e,\u2028\x9b1mnext\r\nline")


def environment(new: str, chat: Line) -> int:
    told = {"env": dict(os.environ), "cwd": str(Path.cwd()), "argv": sys.argv[1:], "system": chat["system"]}
    return end(new, chat, json.dumps(told))


def hang(_new: str, _chat: Line) -> int:
    time.sleep(FOREVER)
    return 1


def die(_new: str, _chat: Line) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 1


ACTS = {
    act.__name__: act
    for act in (
        unauthorised,
        used_up,
        hit_the_limit,
        not_logged_in,
        failed_with_exit_0,
        empty,
        breaks_off,
        another_chat,
        no_chat,
        counts_anew,
        no_cost,
        denied,
        dirty,
        environment,
        hang,
        die,
    )
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
