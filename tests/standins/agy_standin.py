"""A stand-in for Antigravity CLI as its preset uses it, after its documentation and what others measured.

Nobody here has run the real one: this shows what the preset makes of such lines, not that there are such
lines. Run it as ``python -I -S agy_standin.py``.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any

ACTS: dict[str, tuple[int, dict[str, Any]]] = {
    "signed_out": (
        1,
        {"status": "ERROR", "response": "", "error": "authentication required", "num_turns": 0},
    ),
    "quota": (3, {"status": "ERROR", "response": "", "error": "Individual quota reached. Resets in 34m13s."}),
    "denied": (0, {"status": "SUCCESS", "response": "", "denied_actions": [{"action": "command"}]}),
    "another": (0, {"status": "SUCCESS", "response": "Hello.", "conversation_id": str(uuid.uuid4())}),
}


def main(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        sys.stdout.write("1.2.12\n")
        return 0
    assert arguments[:4] == ["--input-format", "stream-json", "--output-format", "stream-json"]
    assert "--disable-slash-commands" in arguments
    [line] = sys.stdin.read().splitlines()
    asked = json.loads(line)
    assert asked["event"] == "user"
    prompt = asked["message"]["content"]
    old = arguments[arguments.index("--conversation") + 1] if "--conversation" in arguments else None
    conversation = old or str(uuid.uuid4())
    file = Path(os.environ["HOME"], f"{conversation}.agy")
    prompts = [*(json.loads(file.read_text()) if old else []), prompt]
    say({"event": "init", "conversation_id": conversation, "init": {"tools": ["run_command"], "model": "m"}})
    say({"event": "step_update", "step_update": {"step_type": "agent_response", "text_delta": "Heard"}})
    code, result = next((act for name, act in ACTS.items() if f"<<{name}>>" in prompt), (0, {}))
    text = f"Heard {len(prompts)} turns, the last being {prompt}"
    usual = {"conversation_id": conversation, "status": "SUCCESS", "response": text, "num_turns": 1}
    say({"event": "result", "result": {**usual, **result}})
    file.write_text(json.dumps(prompts))
    return code


def say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
