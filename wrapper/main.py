"""`consilium seat`: one seat's process (§3.3.A). Reads what the council file says of it, then lives it.

Exit codes: 0 the debate ended, or the seat left; 2 the command or its configuration cannot be carried out;
3 the Arbiter refused the seat; 4 the link was lost; 1 anything else.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import orjson

from consilium.credentials import Credentials
from consilium.errors import UserError
from consilium.messages import Meta, Reg
from consilium.settings import Ports, load_council
from consilium.tls import client_context
from wrapper.events import Outcome
from wrapper.link import Address
from wrapper.prompts import role_prompt_hash, system_prompt
from wrapper.roles import find_role
from wrapper.seat import Plan, Seat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from consilium.config import Council, Participant, RosterSeat
    from wrapper.adapters.base import ParticipantAdapter

CONNECT_TIMEOUT = 30.0

EXIT_CODES: Mapping[Outcome, int] = {
    Outcome.FINISHED: 0,
    Outcome.STOPPED_BY_CAP: 0,
    Outcome.ERROR: 0,
    Outcome.LEFT: 0,
    Outcome.REFUSED: 3,
    Outcome.LINK_LOST: 4,
    Outcome.PROTOCOL_FAULT: 1,
    Outcome.CLIENT_FAILED: 1,
}


def parser() -> argparse.ArgumentParser:
    """The options of `consilium seat`."""
    own = argparse.ArgumentParser(
        prog="consilium seat",
        description="Run one seat of a council: register at the Arbiter, and drive the seat's client.",
        epilog="Exit codes: 0 the debate ended or the seat left, 2 wrong usage or configuration, 3 refused "
        "by the Arbiter, 4 link lost, 1 anything else.",
    )
    own.add_argument("--council", type=Path, required=True, metavar="FILE", help="the council file")
    own.add_argument("--name", required=True, help="the participant of the council file that sits here")
    own.add_argument(
        "--certs", type=Path, required=True, metavar="DIR", help="the seat's cert.pem, key.pem and ca.pem"
    )
    own.add_argument(
        "--state", type=Path, required=True, metavar="DIR", help="where the client keeps this seat's chat"
    )
    own.add_argument("--host", help="where the Arbiter is (default: CONSILIUM_HOST, else 127.0.0.1)")
    own.add_argument("--control-port", type=int, metavar="PORT", help="its control port (default: 9998)")
    own.add_argument("--data-port", type=int, metavar="PORT", help="its data port (default: 9999)")
    own.add_argument("--model-url", metavar="URL", help="the model server, for a client that needs one")
    own.add_argument(
        "--connect-timeout",
        type=float,
        default=CONNECT_TIMEOUT,
        metavar="SECONDS",
        help="how long to wait for an Arbiter that does not listen yet (default: %(default)g)",
    )
    own.add_argument(
        "--lifeline", action="store_true", help="leave when standard input ends: the parent is gone"
    )
    return own


def main(argv: list[str]) -> int:
    """Run the seat that ``argv`` describes. Raises `UserError` for what cannot be carried out."""
    options = parser().parse_args(argv)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format=f"{options.name}: %(levelname)s: %(message)s"
    )
    end = anyio.run(_live, options)
    return EXIT_CODES[end]


async def _live(options: argparse.Namespace) -> Outcome:
    council = load_council(options.council)
    participant = find_participant(council, options.name)
    seat = Seat(plan(options, council, participant), adapter(options, participant), say)
    return (await seat.run()).outcome
