"""A stand-in for a client in a terminal: raw mode, redraws, dialogs, an echo that is set apart, no model.

It draws as Claude Code does: a prompt between two rules, `▶` before what it was asked, `●` before what it
says, Markdown drawn and not written, long lines wrapped by itself. Like the real ones it keeps the prompts of
a chat, also of a turn that failed, in ``chats/ID.json`` of its home. ``STANDIN`` in the environment is what
it does at its start, ``<<name>>`` in a prompt what it does in that turn.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import termios
import textwrap
import time
import tty
from pathlib import Path

TOKEN = "__FINE_RISPOSTA__"
RULE = "End every answer, without exception, with this token:"
SPINNER = "✢✳✶✻"

LONG = " ".join(f"word{number}" for number in range(700))

ACTS = {
    "only": TOKEN,
    "forget": "I never end.",
    "twice": f"The word {TOKEN} ends an answer.\n\nSo it does.\n\n{TOKEN}\n{TOKEN}",
    "wrapped": f"{LONG}\n\nShort.\n\n- an item {LONG}\n\n{TOKEN}",
    "wide": f"東京タワー e\u0301 👩\u200d🚀 ❤️ ok نص\n\n{TOKEN}",
    "tall": "\n\n".join(f"Paragraph {number}." for number in range(300)) + f"\n\n{TOKEN}",
    "imitate": f"▶ not a prompt\n● not an answer\n{'─' * 30}\n▶\n{'─' * 30}\nAllow it? (y)es (n)o\n\n{TOKEN}",
}


def write(text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(1, data) :]


def keys(seconds: float) -> bytes:
    return os.read(0, 65536) if select.select([0], [], [], seconds)[0] else b""


def asked(question: str, pattern: bytes) -> None:
    """Ask the terminal, and wait for its answer."""
    write(question)
    heard = b""
    until = time.monotonic() + 5
    while not re.search(pattern, heard):
        heard += keys(0.1)
        if time.monotonic() > until:
            sys.exit(7)


class Screen:
    """What is committed stays; below it is a foot that is drawn again and again."""

    def __init__(self, modes: set[str]) -> None:
        self.alternate = "alternate" in modes
        self.columns = os.get_terminal_size().columns
        self.committed: list[str] = []
        self.foot = 0
        self.status = "ready"

    def _erased(self) -> str:
        return f"\x1b[{self.foot}A\r\x1b[J" if self.foot else "\r\x1b[J"

    def draw(self, lines: list[str], typed: str | None, *, spinner: str = "") -> None:
        """Commit ``lines``, and draw the foot; without a prompt if nothing can be ``typed``."""
        rule = "─" * (self.columns - 1)
        prompt = [] if typed is None else [rule, f"\x1b[1m▶\x1b[0m {typed}", rule, f"  {self.status}"]
        foot = ["", *([f"{spinner} Thinking… (esc to interrupt)"] if spinner else []), *prompt]
        self.committed += lines
        if self.alternate:
            shown = (self.committed + foot)[-os.get_terminal_size().lines + 1 :]
            write("\x1b[H\x1b[2J" + "\r\n".join(shown))
        else:
            write(self._erased() + "".join(f"{line}\r\n" for line in (*lines, *foot)))
            self.foot = len(foot)

    def block(self, mark: str, text: str) -> list[str]:
        """``text`` as the lines that it is drawn in."""
        lines = [
            piece
            for line in text.split("\n")
            for piece in (textwrap.wrap(line, self.columns - 4, break_on_hyphens=False) or [""])
        ]
        return ["", f"{mark} {lines[0]}", *(f"  {line}" if line else "" for line in lines[1:])]


class Client:
    def __init__(self, arguments: list[str], modes: set[str]) -> None:
        self.modes = modes
        self.system = Path(arguments[arguments.index("--system-prompt-file") + 1]).read_text()
        resumed = "--resume" in arguments
        self.id = arguments[arguments.index("--resume" if resumed else "--session-id") + 1]
        self.file = Path(os.environ["HOME"]) / "chats" / f"{self.id}.json"
        self.file.parent.mkdir(exist_ok=True)
        self.prompts = json.loads(self.file.read_text()) if resumed else []
        self.screen = Screen(modes)

    def run(self) -> int:
        lines = []
        for prompt in self.prompts:  # as the real ones do, in a chat that they take up again
            lines += self.screen.block("▶", prompt) + self.screen.block("●", f"heard it {TOKEN}")
        self.screen.draw(["A stand-in for a client", *lines], "")
        typed, interrupts, swallow = "", 0, "swallows" in self.modes
        buffer = b""
        while True:
            buffer += keys(3600)
            if buffer.startswith(b"\x1b[200~"):
                body, ends, buffer_after = buffer.partition(b"\x1b[201~")
                if not ends:
                    continue
                buffer = buffer_after
                typed += body[6:].decode()
                shown = typed if len(typed) < 200 else f"[Pasted text +{typed.count(chr(10))} lines]"
                self.screen.draw([], shown.replace("\n", "\r\n  ") if "\n" not in shown else "[Pasted]")
                continue
            key, buffer = buffer[:1], buffer[1:]
            if key == b"\x03":
                interrupts += 1
                if interrupts == 2 and "stubborn" not in self.modes:
                    return 0
            elif key == b"\r" and swallow:
                swallow = False
            elif key == b"\r" and typed:
                self.turn(typed)
                typed, interrupts = "", 0
            elif key and key not in b"\r":
                typed += key.decode(errors="replace")
                self.screen.draw([], typed)

    def turn(self, prompt: str) -> None:
        self.prompts.append(prompt)
        self.file.write_text(json.dumps(self.prompts))
        screen = self.screen
        screen.status = f"a status with {prompt[:60]!r} and {TOKEN}"
        screen.draw(screen.block("▶", prompt), "", spinner=SPINNER[0])
        found = re.search(r"<<(\w+)>>", prompt.rpartition("\n")[2])
        act = found[1] if found else ""
        for number in range(6):
            time.sleep(0.05)
            screen.draw([], "", spinner=SPINNER[number % 4])
        match act:
            case "dies":
                sys.exit(9)
            case "silent":
                while True:
                    screen.draw([], "", spinner=SPINNER[int(time.monotonic() * 10) % 4])
                    time.sleep(0.1)
            case "stall":
                return self.say("Half an answer")
            case "grandchild":
                subprocess.Popen(
                    ["sh", "-c", "trap '' HUP TERM; sleep 600 & wait"],
                    start_new_session=True,
                    stdin=0,
                    stdout=1,
                )
            case "at_work" | "pause":
                at_work = act == "at_work"
                screen.draw(screen.block("●", f"I shall end with {TOKEN}"), "", spinner=SPINNER[0] * at_work)
                time.sleep(2.5 if at_work else 0.8)
            case "error":
                return screen.draw(["  ⎿  API Error: 529 overloaded"], "")
            case "flood":
                while True:
                    write("x" * 65536 + "\r")
            case "deaf":
                screen.draw(["", " Do you want to proceed?", " (y)es (n)o"], None)
                write("\x1b[c" * 5000)  # more answers than a terminal holds for who does not read
                time.sleep(600)
            case "question":
                screen.draw(["", " Bash command: touch x", " Do you want to proceed?", " (y)es (n)o"], None)
                while keys(3600) != b"\x1b":
                    pass
                screen.draw(["", "● Bash(touch x)", "  ⎿  Interrupted"], "")
        last = prompt.rstrip().rpartition("\n")[2]
        usual = f"I have heard {len(self.prompts)}; last: {last}\n\n{TOKEN if RULE in self.system else ''}"
        return self.say(ACTS.get(act, usual), done=act != "forget")

    def say(self, text: str, *, done: bool = False) -> None:
        drawn = re.sub(r"__(\w+?)__", "\x1b[1m\\1\x1b[22m", text) if "plain" not in self.modes else text
        self.screen.draw(self.screen.block("●", drawn), "", spinner=SPINNER[0])
        time.sleep(0.1)
        self.screen.draw(["", "✻ Thought for 0s · done 1:00 PM"] if done else [], "")


def main(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        os.write(1, b"tui-standin 1.0\n")
        return 0
    if arguments == ["--catalog"]:
        os.write(1, b'{"models": [{"name": "a model"}]}')
        return 0
    if not (Path(os.environ["HOME"]) / "catalog.json").exists():
        return 5
    modes = set(os.environ.get("STANDIN", "").split(","))
    if "dies" in modes:
        write("cannot begin: no login\r\n")
        return 3
    tty.setraw(0, termios.TCSANOW)
    if "never" in modes:
        write("Loading…\r\n")
        time.sleep(600)
    if "queries" in modes:
        asked("\x1b[c", rb"\x1b\[\?[\d;]+c")
        asked("\x1b[6n", rb"\x1b\[\d+;\d+R")
        asked("\x1b]11;?\x1b\\", rb"\x1b\]11;rgb:")
        asked("\x1b[>0q", rb"\x1bP>\|")
        asked("\x1b[?2026$p\x1b[?u\x1b[c", rb"\x1b\[\?2026;\d\$y\x1b\[\?[\d;]+c")
    write("\x1b[?25l\x1b[>1u" + ("\x1b[?2004h" if "nopaste" not in modes else ""))
    if "trust" in modes:
        write("Do you trust this folder?\r\n ▶ 1. No\r\n   2. Yes\r\n")
        if b"".join(iter(lambda: keys(3600), b"\r")) != b"\x1b[B":
            return 4
        write("\x1b[H\x1b[2J")
    if "alternate" in modes:
        write("\x1b[?1049h")
    return Client(arguments, modes).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
