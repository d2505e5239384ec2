"""The words of `consilium admin`: its verbs, what each takes, and how they are explained."""

from __future__ import annotations

import argparse
from typing import TypeAlias

from consilium.messages import Phase
from council.access import add_options
from council.orders import CHOICES

_Parser: TypeAlias = argparse.ArgumentParser

EXAMPLES = """\
examples:
  consilium admin --bundle certs/anna status
  consilium admin --bundle anna.p12 --host council.example watch
  consilium admin --bundle certs/anna inject "Say what it costs in the second year."
  consilium admin --bundle certs/anna resume qwen_coder=cold

BUNDLE is a folder made by `consilium pki issue`, or a file made by `consilium pki bundle`. Host and port come
from CONSILIUM_HOST and CONSILIUM_ADMIN_PORT, or the folder of its UNIX sockets from CONSILIUM_LISTEN=unix and
CONSILIUM_SOCKET_DIR, unless they are given, and the passphrase of a file from
--passphrase-file, from CONSILIUM_BUNDLE_PASSPHRASE, or from you.

Exit codes: 0 done, 1 refused by the Arbiter, 2 a mistake in the command, 4 no connection."""

VERBS: dict[str, tuple[str, str]] = {
    "status": ("say where the debate stands, and what it waits for", "status\nstatus --json"),
    "begin": ("begin with the seats that are there, where the debate waits for its operator to", "begin"),
    "inject": (
        "say something to every seat, as the moderator",
        'inject "Say what it costs in the second year."\ninject - < element.txt',
    ),
    "topic": ("replace the topic", 'topic "Which part do we wrap first?"'),
    "phase": ("change the phase", "phase REBUTTAL\nphase CLOSING --round-end"),
    "kick": ("remove a seat for good", "kick qwen_coder"),
    "force-turn-end": ("take the open turn back", "force-turn-end"),
    "next": ("give the next turn to a seat", "next qwen_coder\nnext qwen_coder_77AA11BB"),
    "pause": ("give no further turn", 'pause\npause --reason "back in ten minutes"'),
    "resume": (
        "go on, or begin; for each seat that failed: keep, cold, skip or remove",
        "resume\nresume qwen_coder=cold historian=skip",
    ),
    "terminate": ("close the debate", 'terminate\nterminate --round-end --reason "the question is answered"'),
    "reload": ("have the Arbiter read its certificates and profiles again", "reload"),
    "watch": ("follow the record as it grows, across restarts of the Arbiter", "watch\nwatch --from 120"),
}
"""Verb -> (what it does, examples of its words)."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="consilium admin",
        description="Govern a debate that is being held.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _common(top, default=None)
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    made = {}
    for verb, (what, examples) in VERBS.items():
        lines = "\n".join(f"  consilium admin --bundle certs/anna {line}" for line in examples.splitlines())
        made[verb] = verbs.add_parser(
            verb,
            help=what,
            description=f"{what[0].upper()}{what[1:]}.",
            epilog=f"examples:\n{lines}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        # What is given after the verb is as good; what is not given there must not undo what came before.
        _common(made[verb], default=argparse.SUPPRESS)
    _words(made)
    return top


def _common(command: _Parser, *, default: str | None) -> None:
    add_options(command, default=default)
    shown = command.add_argument_group("how it is shown")
    shown.add_argument("--json", action="store_true", default=default, help="JSON, for programs")
    shown.add_argument(
        "--no-color", action="store_true", default=default, help="no colours, as with NO_COLOR=1"
    )


def _words(verbs: dict[str, _Parser]) -> None:
    """What each verb takes beside the common options."""
    verbs["inject"].add_argument("text", metavar="TEXT", help="what to say; - reads it from standard input")
    verbs["topic"].add_argument("text", metavar="TEXT", help="the new topic")
    verbs["phase"].add_argument("phase", type=str.upper, choices=[*map(str, Phase)], help="the new phase")
    for verb in ("kick", "next"):
        verbs[verb].add_argument(
            "seat", metavar="SEAT", help="its name, or its id where names are not enough"
        )
    for verb in ("phase", "terminate"):
        verbs[verb].add_argument("--round-end", action="store_true", help="when the round is complete")
    for verb in ("pause", "terminate"):
        verbs[verb].add_argument("--reason", default="", metavar="TEXT", help="why, for the record")
    verbs["resume"].add_argument(
        "choices",
        nargs="*",
        metavar="SEAT=CHOICE",
        help=f"{CHOICES}; a seat that is not named keeps its chat",
    )
    verbs["watch"].add_argument(
        "--from", dest="from_seq", type=int, default=0, metavar="SEQ", help="the first record to show (0)"
    )
