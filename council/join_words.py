"""The words of `consilium join`: its options, and how they are explained."""

from __future__ import annotations

import argparse
from pathlib import Path

from consilium.messages import DisconnectPolicy
from wrapper.human.choosing import add_person_options
from wrapper.isolation.confinement import add_options
from wrapper.main import GIVE_UP_AFTER, seconds

ARRIVE_SECONDS = 300.0
"""How long a guest waits for an Arbiter that is not there yet: whoever runs it may be a minute late."""

EXAMPLES = """\
examples:
  consilium join council.example.org --bundle guest.p12 --name guest_claude --preset claude --role sceptic
  consilium join 192.0.2.7 --server-name council --bundle guest --name guest --preset llm --role sceptic
  consilium join council.example.org --bundle guest.p12 --name guest --preset human
  consilium join council.example.org --bundle guest.p12 --name guest_claude --preset claude --check

BUNDLE is a file (PKCS#12 or PEM) or a folder, as you were sent it. The passphrase of a file comes from
--passphrase-file, from CONSILIUM_BUNDLE_PASSPHRASE, or from you. The client (--preset) runs on this machine,
with your login; what it remembers of the debate is kept in the folder of --state.

A lost connection is taken up again by itself, with the chat as it was; the debate waits for its operator.
Ctrl-C leaves the debate; the same command comes back to it.

Exit codes: 0 the debate ended or you left, 2 a mistake in the command, 3 refused by the Arbiter, 4 not
reached or lost for good, 1 anything else, also a --check that found something wrong."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    own = argparse.ArgumentParser(
        prog="consilium join",
        description="Take a seat in a council that is held on another machine.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    own.add_argument("host", metavar="HOST", help="where the Arbiter is: a name or an address")
    own.add_argument("--bundle", type=Path, required=True, metavar="PATH", help="your credentials")
    own.add_argument("--passphrase-file", type=Path, metavar="FILE", help="its first line opens the bundle")
    own.add_argument("--name", required=True, help="the name of your seat, as you were told it")
    _seat_options(own.add_argument_group("who speaks"))
    place = own.add_argument_group("where, and for how long")
    place.add_argument("--control-port", type=int, metavar="PORT", help="the Arbiter's (default: 9998)")
    place.add_argument("--data-port", type=int, metavar="PORT", help="the Arbiter's (default: 9999)")
    place.add_argument(
        "--server-name", metavar="NAME", help="the name in the Arbiter's certificate, if it is not HOST"
    )
    place.add_argument(
        "--connect-timeout",
        type=seconds,
        default=ARRIVE_SECONDS,
        metavar="SECONDS",
        help="how long to wait for an Arbiter that is not there yet (default: %(default)g)",
    )
    place.add_argument(
        "--give-up-after",
        type=seconds,
        default=GIVE_UP_AFTER,
        metavar="SECONDS",
        help="how long to try to come back after a lost connection; 0 ends at once (default: %(default)g)",
    )
    add_options(own)
    own.add_argument("--check", action="store_true", help="check bundle, client and Arbiter; take no seat")
    own.add_argument("--json", action="store_true", help="JSON lines, for programs")
    return own


def _seat_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--preset", required=True, help="the client that speaks for the seat; human is you")
    group.add_argument("--model", help="the client's model (default: the preset's)")
    group.add_argument("--effort", help="how hard it shall think, where the client can be told")
    role = group.add_mutually_exclusive_group()
    role.add_argument("--role", help="the point of view to take; `consilium roles` lists them")
    role.add_argument("--role-prompt-file", type=Path, metavar="FILE", help="a point of view of your own")
    group.add_argument("--role-label", metavar="TEXT", help="what the others are told of the role")
    group.add_argument(
        "--env", action="append", default=[], metavar="NAME", help="a variable to pass on to the client"
    )
    group.add_argument(
        "--disconnect-policy",
        type=DisconnectPolicy,
        choices=list(DisconnectPolicy),
        default=DisconnectPolicy.KEEP_ALIVE,
        help="whether the seat stays yours when you leave (default: %(default)s)",
    )
    add_person_options(group)
    group.add_argument("--state", type=Path, metavar="DIR", help="where the client keeps this seat's chat")
    group.add_argument(
        "--new-chat", action="store_true", help="put the chat that is there aside, and begin another"
    )
