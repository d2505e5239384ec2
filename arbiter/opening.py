"""The debate that an Arbiter holds, and its transcript: a new one, or the one that goes on (§15.3)."""

from __future__ import annotations

import logging
import os
import secrets
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

from arbiter.debate import Debate
from arbiter.debate.restore import RESTARTED, restore
from arbiter.debate.states import TERMINAL
from arbiter.journal import Journal
from consilium.errors import TranscriptError, UserError
from consilium.identity import fingerprint
from consilium.records import TurnRecord

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from arbiter.debate.effects import Effect
    from arbiter.observe import Observer
    from arbiter.recovery import Recovered
    from arbiter.reload import Configuration
    from consilium.config import Council
    from consilium.headseal import HeadSigner
    from consilium.records import HeaderRecord

log = logging.getLogger("arbiter")


async def begin(
    council: Council,
    configuration: Configuration,
    path: Path,
    observer: Observer,
    clock: Callable[[], float],
) -> tuple[Debate, Journal, list[Effect]]:
    """A new debate, or the one in the transcript at ``path``, and what is to be done first.

    ``clock`` gives seconds since the epoch. Raises `UserError`.
    """
    journal, recovered = _open(path, configuration.signer, clock)
    if recovered is None or recovered.header is None:
        own = fingerprint(configuration.configured.certificate).hex()
        debate = Debate(secrets.token_hex(8), council, arbiter=f"sha256:{own}")
        return debate, journal, debate.open()
    try:
        debate = _take_up(path, recovered.header, recovered, council)
    except UserError:
        with suppress(TranscriptError):
            await journal.close()
        raise
    for _, entry in recovered.told:
        if isinstance(entry, TurnRecord):
            observer.turn_ended(entry)
    # At the time of the last record: what came after was not part of the debate.
    first = debate.restart(RESTARTED, recovered.until)
    log.warning("the debate in %s goes on after %d turns: %s", path, debate.turn_counter, debate.state)
    return debate, journal, first


def _open(path: Path, signer: HeadSigner, clock: Callable[[], float]) -> tuple[Journal, Recovered | None]:
    """Begin the transcript at ``path``, or take up the one that is there. Raises `UserError`."""
    if os.path.lexists(path):
        return Journal.reopen(path, signer=signer, clock=clock)
    return Journal.create(path, signer=signer, clock=clock), None


def _take_up(path: Path, header: HeaderRecord, recovered: Recovered, council: Council) -> Debate:
    """The debate that a transcript tells. Raises `UserError` when it tells none, or one that has ended."""
    show = f"consilium transcript show {shlex.quote(str(path))}"
    try:
        debate = restore(header, recovered.told)
    except TranscriptError as error:
        raise UserError(f"no debate can go on in {path}: {error}", hint=show) from error
    if debate.state in TERMINAL:
        message = f"the debate in {path} has ended: {debate.state}, {debate.reason}"
        raise UserError(message, hint=f"{show}\n  for another debate, give another path")
    for sentence in (recovered.dropped, recovered.doubt):
        if sentence:
            log.warning("%s", sentence)
    rules = council.model_dump(mode="json", exclude={"topic", "participants"})
    if (rules, council.topic) != (header.council, header.topic):
        log.warning("the debate goes on by the topic and rules in %s, not by those of the council file", path)
    return debate
