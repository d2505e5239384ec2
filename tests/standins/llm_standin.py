"""A stand-in for `llm` 0.36 as the preset uses it: same arguments, output, exit codes and errors, no model.

It answers with what it has heard in the chat, and acts out a fault when the prompt contains ``<<name>>``, the
name being a key of `ACTS`. Run it as ``python -I -S llm_standin.py ARGUMENTS``; it imports nothing heavy.
"""

# ruff: noqa: T201 - a command-line client prints

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

STORE = "logs.db"
FOREVER = 600

Entry = dict[str, object]


def main(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        print(f"llm, version {os.environ.get('STANDIN_VERSION', '0.36')}")
        return 0
    if arguments[:1] != ["prompt"]:
        return usage_error(f"No such command {arguments[:1]}.")
    options: dict[str, str] = {}
    rest = iter(arguments[1:])
    for word in rest:
        match word:
            case "-m" | "--sf" | "--cid":
                options[word] = next(rest)
            case "-o":
                options[f"-o {next(rest)}"] = next(rest)
            case "--json":
                options[word] = ""
            case _:
                return usage_error(f"No such option '{word}'.")
    return answer(options, sys.stdin.read())


def usage_error(words: str) -> int:
    sys.stderr.write(f"Usage: llm prompt [OPTIONS] [PROMPT]\n\nError: {words}\n")
    return 2


def error(words: str) -> int:
    sys.stderr.write(f"Error: {words}\n")
    return 1


def answer(options: dict[str, str], prompt: str) -> int:
    assert "--json" in options
    folder = Path(os.environ["LLM_USER_PATH"])
    assert options["-m"] in (folder / "extra-openai-models.yaml").read_text()
    store = folder / STORE
    chats: dict[str, list[Entry]] = json.loads(store.read_text()) if store.exists() else {}
    store.write_text(json.dumps(chats))  # the real one makes its database before anything else
    chat = options.get("--cid") or f"01standin{len(chats):017d}"
    if "--cid" in options and chat not in chats:
        return error(f"No conversation found with id={chat}")
    history = chats.setdefault(chat, [])
    system = str(history[0]["system"]) if history else Path(options["--sf"]).read_text().strip()
    entry = respond(chat, system, history, prompt)
    for name, act in ACTS.items():
        if f"<<{name}>>" in prompt:
            code = act(entry)
            if code is not None:
                return code
    # Like the real one: only what was answered is stored.
    history.append(entry)
    store.write_text(json.dumps(chats))
    print(json.dumps([entry], indent=2))
    return 0


def respond(chat: str, system: str, history: list[Entry], prompt: str) -> Entry:
    heard = [system, *(str(past[key]) for past in history for key in ("prompt", "response")), prompt]
    tokens = sum(len(text.split()) for text in heard)
    response = (
        f"Heard {len(history) + 1} turns, the first being {(history or [{'prompt': prompt}])[0]['prompt']}"
    )
    cached = {"prompt_tokens_details": {"cached_tokens": 7 * len(history)}}
    return {
        "id": f"{chat}.{len(history)}",
        "model": "seat",
        "resolved_model": None,
        "options_json": {"max_tokens": 140},
        "conversation_id": chat,
        "duration_ms": 1,
        "datetime_utc": "2026-01-01T00:00:00+00:00",
        "input_tokens": tokens,
        "output_tokens": len(response.split()),
        "token_details": json.dumps(cached),
        "conversation_name": prompt[:20],
        "conversation_model": "seat",
        "schema_json": None,
        "prompt": prompt,
        "system": system,
        "response": response,
        "reasoning": None,
        "prompt_json": None,
        "response_json": {"model": "stand-in-1", "usage": cached},
        "prompt_fragments": [],
        "system_fragments": [],
        "tools": [],
        "tool_calls": [],
        "tool_results": [],
        "attachments": [],
    }


# --- what may go wrong; None: the answer follows all the same -----------------------------------------


def hang(_entry: Entry) -> int:
    time.sleep(FOREVER)
    return 1


def hang_in_the_middle(entry: Entry) -> int:
    print(json.dumps([entry])[:40], flush=True)
    return hang(entry)


def ignore_sigterm(entry: Entry) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return hang(entry)


def fork_bomb(entry: Entry) -> int:
    """Start processes until there can be no more, all deaf to SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(300):
        try:
            if os.fork() == 0:
                hang(entry)
        except OSError:
            break
    return hang(entry)


def glutton(entry: Entry) -> int:
    """Take more memory than there is, by processes each of which has less than the wrapper."""
    for _ in range(50):
        if os.fork() == 0:
            held = b"x" * (15 * 1024 * 1024)
            return hang(entry) if held else 0
        time.sleep(0.02)
    return hang(entry)


def daemon(_entry: Entry) -> None:
    """Leave a deaf process behind that has left the session, the pipes and the environment."""
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    subprocess.Popen(
        ["setsid", sys.executable, "-c", deaf],
        env={},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def fail(_entry: Entry) -> int:
    return error("Error code: 500 - the provider \x1b[31mbroke\x1b[0m")


def quota(_entry: Entry) -> int:
    return error("Error code: 429 - you exceeded your quota")


def crash(_entry: Entry) -> int:
    raise LookupError("something unforeseen")


def die(_entry: Entry) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 1


def flood(_entry: Entry) -> int:
    while True:
        sys.stdout.write("x" * 65536)


def silent(_entry: Entry) -> int:
    return 0


def chatter(_entry: Entry) -> int:
    print("Sure! Here is my answer.")
    return 0


def empty(entry: Entry) -> None:
    entry["response"] = ""


def invisible(entry: Entry) -> None:
    entry["response"] = "\x1b[2J\u200b \n"


def no_text(entry: Entry) -> None:
    entry["response"] = None


def dirty(entry: Entry) -> None:
    sys.stdout.write("\x1b]0;llm\x07")
    entry["response"] = "a \x1b[31mred\x1b[0m\x07 word\u202e and \ud83d more\r\n"


def another_chat(entry: Entry) -> None:
    entry["conversation_id"] = "01another"


def no_chat(entry: Entry) -> None:
    entry["conversation_id"] = None


def option_as_chat(entry: Entry) -> None:
    entry["conversation_id"] = "--cid=01another"


def no_usage(entry: Entry) -> None:
    entry |= {"input_tokens": None, "output_tokens": None, "response_json": {}}


def orphan(_entry: Entry) -> None:
    """Leave a grandchild that holds the pipe, out of the session."""
    subprocess.Popen(["sleep", str(FOREVER)], start_new_session=True)


def environment(entry: Entry) -> None:
    entry["response"] = json.dumps({"env": dict(os.environ), "cwd": str(Path.cwd()), "argv": sys.argv[1:]})


ACTS = {
    act.__name__: act
    for act in (
        hang,
        fork_bomb,
        glutton,
        daemon,
        hang_in_the_middle,
        ignore_sigterm,
        fail,
        quota,
        crash,
        die,
        flood,
        silent,
        chatter,
        empty,
        invisible,
        no_text,
        dirty,
        another_chat,
        no_chat,
        option_as_chat,
        no_usage,
        orphan,
        environment,
    )
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
