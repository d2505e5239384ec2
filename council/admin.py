"""`consilium admin`: the operator's command line (§3.3.D). A verb is one operation, told in one line.

Exit codes: 0 done; 1 the Arbiter refused it (`watch`: or the debate ended in error); 2 the command cannot be
carried out; 4 no connection, or none any more.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from consilium.console import Console, json_text, printable
from consilium.errors import ChannelBroken, ChannelError, ChannelRefused, ConsiliumError, PeerError, UserError
from consilium.messages import MAX_SPEECH_BYTES, Status, StatusRequest
from council import orders
from council.access import Access
from council.causes import first_cause
from council.following import LINK_LOST, REFUSED, Follower
from council.screen import Showing, open_printer, open_view
from council.status import tell
from council.verbs import parser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from consilium.messages import Message
    from council.operator import Operator, Reply

ABSENT = "is it running there? An Arbiter ends with its debate; the transcript stays readable"
"""What may be behind a connection that does not come about, or breaks."""

REPLY_SECONDS = 15.0
"""How long the Arbiter may take to answer."""


def main(argv: Sequence[str]) -> int:
    """Carry out one verb; return the exit code. Raises `UserError`."""
    top = parser()
    options = top.parse_args(argv)
    if options.bundle is None:
        top.error("--bundle is needed: your credentials, for example --bundle certs/anna")
    return Admin(options).run()


class Admin:
    """One call of the command."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._access = Access(options)

    def run(self) -> int:
        """Carry the verb out; return the exit code. Raises `UserError`."""
        options = self._options
        watching = options.verb == "watch"
        if watching and options.from_seq < 0:
            raise UserError("a record's number counts from 0", hint="--from 0 shows the whole record")
        order = None if watching else orders.order(options, _standard_input)
        self._access.open()
        if order is None:
            return anyio.run(self._watch)
        try:
            with first_cause():
                return anyio.run(self._carry_out, order)
        except PeerError as refusal:
            return self._refused(refusal, orders.entitled(refusal))
        except ChannelRefused as error:  # it is there: what TLS says is what is wrong
            return self._failed("link_lost", str(error), LINK_LOST)
        except ChannelError as error:
            return self._failed("link_lost", str(error), LINK_LOST, hint=ABSENT)

    async def _watch(self) -> int:
        printer = open_printer()
        view = open_view(printer, as_json=bool(self._options.json), no_color=bool(self._options.no_color))
        follower = Follower(
            self._access.connect,
            view,
            from_seq=self._options.from_seq,
            clock=time.monotonic,
        )
        showing = Showing(view, printer, farewell="No longer watching; the debate goes on.")
        with first_cause():
            return await showing.run(follower.run)

    async def _carry_out(self, order: orders.Order) -> int:
        async with self._access.connect() as admin:
            try:
                if order.only_in is not None:
                    status = await _ask(admin, StatusRequest())
                    if isinstance(status, Status) and status.debate_state is not order.only_in:
                        self._leave(order)
                        return 0
                reply = await _ask(admin, order.message)
            except PeerError as refusal:
                if refusal.in_reply_to is None:
                    raise
                hint = ""
                with suppress(ConsiliumError):
                    status = await _ask(admin, StatusRequest())
                    if isinstance(status, Status):
                        hint = orders.way_out(self._options.verb, status, self._access.command)
                return self._refused(refusal, hint)
        self._tell(reply, order)
        return 0

    # --- what is said --------------------------------------------------------------------------------

    def _tell(self, reply: Reply, order: orders.Order) -> None:
        if self._options.json:
            told = (
                reply.model_dump(mode="json")
                if isinstance(reply, Status)
                else {"event": "done", "operation": reply.operation}
            )
            sys.stdout.write(json_text(told) + "\n")
            return
        console = Console.on(sys.stdout, os.environ, no_color=bool(self._options.no_color))
        if isinstance(reply, Status):
            tell(reply, console, self._access.command)
        else:
            console.line(order.done)

    def _leave(self, order: orders.Order) -> None:
        """Say that nothing was done, and why that is as it should be."""
        line = json_text({"event": "left", "message": order.left}) if self._options.json else order.left
        sys.stdout.write(line + "\n")

    def _refused(self, refusal: PeerError, hint: str) -> int:
        sentence = orders.refused(self._options.verb, refusal)
        return self._failed("refused", sentence, REFUSED, code=refusal.code.value, hint=hint)

    def _failed(self, event: str, sentence: str, exit_code: int, **more: str) -> int:
        if self._options.json:
            sys.stdout.write(json_text({"event": event, "message": sentence, **more}) + "\n")
        else:
            hint = f"\n  {more['hint']}" if more.get("hint") else ""
            sys.stderr.write(printable(f"consilium admin: {sentence}{hint}") + "\n")
        return exit_code


async def _ask(admin: Operator, message: Message) -> Reply:
    with anyio.move_on_after(REPLY_SECONDS):
        return await admin.request(message)
    raise ChannelBroken(f"the Arbiter did not answer within {REPLY_SECONDS:g} s")


def _standard_input() -> str:
    if sys.stdin is None:
        return ""
    try:
        return sys.stdin.read(MAX_SPEECH_BYTES + 1)
    except UnicodeDecodeError:
        raise UserError("standard input is not valid UTF-8") from None
