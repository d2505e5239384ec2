"""A stand-in for Codex 0.171.0 as its preset uses it: same arguments, lines and exit codes, no model.

It answers with what it has heard in the thread, and acts out a fault when the last prompt contains
``<<name>>``, the name being a key of `ACTS`. Like the real one it makes up ids, remembers the prompt of a
turn that failed, and counts tokens over a thread's life. Run it as ``python -I -S codex_standin.py``.
"""

# ruff: noqa: T201 - a command-line client prints

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any

MODELS = {"models": [{"slug": "gpt-x", "tool_mode": "code", "supports_search_tool": True, "context": 9}]}

Line = dict[str, Any]


def main(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        print("codex-cli 0.171.0")
        return 0
    if arguments == ["debug", "models"]:
        print("WARNING" if os.environ.get("STANDIN_MODELS") == "none" else json.dumps(MODELS))
        return 0
    assert arguments[0] == "exec"
    assert arguments[-1] == "-"
    assert "-m" in arguments
    restricted = "--ignore-user-config" in arguments
    if restricted:
        settings = dict(word.split("=", 1) for word in arguments if "=" in word)
        catalog = json.loads(Path(json.loads(settings["model_catalog_json"])).read_text())
        assert catalog["models"][0] == {
            "slug": "gpt-x",
            "context": 9,
            "supports_search_tool": False,
            "experimental_supported_tools": [],
        }
    old = arguments[arguments.index("fork") + 1] if "fork" in arguments else None
    return turn(old, sys.stdin.read())


def turn(old: str | None, prompt: str) -> int:
    folder = Path(os.environ["CODEX_HOME"], "sessions", "2026", "11", "30")
    folder.mkdir(parents=True, exist_ok=True)
    thread: Line = {"prompts": [], "tokens": 0}
    if old is not None:
        found = list(folder.glob(f"rollout-*-{old}.jsonl"))
        if not found:
            words = f"thread/fork failed: no rollout found for thread id {old} (code -32600)"
            sys.stderr.write(f"Error: thread/fork: {words}\n")
            return 1
        thread = json.loads(found[0].read_text())
    new = old if old and "<<same_thread>>" in prompt else str(uuid.uuid4())
    thread["prompts"].append(prompt)
    say({"type": "thread.started", "thread_id": new})
    say({"type": "turn.started"})
    file = folder / f"rollout-2026-11-30T15-36-18-{new}.jsonl"
    file.write_text(json.dumps(thread))
    for name, act in ACTS.items():
        if f"<<{name}>>" in prompt:
            return act()
    thread["tokens"] += 100 + len(thread["prompts"])
    file.write_text(json.dumps(thread))
    say({"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata"}})
    text = f"Heard {len(thread['prompts'])} turns, the first being {thread['prompts'][0]}"
    return end(text, 0 if "<<counts_anew>>" in prompt else thread["tokens"])


def end(text: str | None, tokens: int) -> int:
    if text is not None:
        say({"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": text}})
    used = {"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": 0}
    say({"type": "turn.completed", "usage": {**used, "reasoning_output_tokens": 0}})
    return 0


def say(line: Line) -> None:
    print(json.dumps(line, ensure_ascii=False), flush=True)


def fail(words: str) -> int:
    say({"type": "error", "message": words})
    say({"type": "turn.failed", "error": {"message": words}})
    return 1


def unauthorised() -> int:
    return fail("unexpected status 401 Unauthorized: no such key, url: http://x/v1/responses")


def used_up() -> int:
    return fail("You've hit your usage limit. Upgrade, or try again at 3:05 PM.")


def no_key() -> int:
    return fail("Missing environment variable: `CODEX_API_KEY`.")


def empty() -> int:
    return end(None, 300)


def recovers() -> int:
    say({"type": "error", "message": "Reconnecting... 1/5"})
    return end("After all.", 300)


ACTS = {act.__name__: act for act in (unauthorised, used_up, no_key, empty, recovers)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
