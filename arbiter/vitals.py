"""How an Arbiter is, in a word for HEALTHCHECK and a sentence for a person (`consilium health arbiter`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arbiter.revocation import Standing
from consilium.health import Report

if TYPE_CHECKING:
    from arbiter.debate import Debate
    from arbiter.journal import Journal
    from arbiter.reload import Reloader


def vitals(
    debate: Debate, journal: Journal, reloader: Reloader, *, busy_since: float | None, now: float
) -> Report:
    """Report on these. Both times are seconds of the monotonic clock, as in `Report`."""
    disk = journal.failure
    told = reloader.warnings()
    # Lists that expired shut everybody out; what was refused on disk is what somebody believes to apply.
    loud = reloader.refused is not None or reloader.standing is Standing.EXPIRED
    return Report(
        "arbiter",
        now,
        f"the debate is {debate.state}" + (f" ({debate.reason})" if debate.reason else ""),
        # While the disk refuses, the loop waits for the disk: that is the problem, and it is said.
        busy_since=None if disk else busy_since,
        problems=(*((disk,) if disk else ()), *(told if loud else ())),
        warnings=() if loud else told,
    )
