"""Where things stand at one moment: taken on the event loop between two events, written down in a thread."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium.messages import DebateState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from arbiter.changes import Configured
    from arbiter.inbox import Inbox
    from arbiter.journal import Journal
    from arbiter.metrics.tally import Tally
    from arbiter.reception import Reception
    from arbiter.reload import Reloader
    from arbiter.service import Service
    from consilium.identity import Identity
    from consilium.messages import Status

CHANNELS = ("control", "data", "admin")


@dataclass(frozen=True, slots=True)
class Look:
    """One look at an Arbiter. Times are seconds since the epoch.

    By seat: ``seen`` is when its last line came, ``lives`` the first and last moment of its certificate.
    """

    status: Status
    tally: Tally
    configured: Configured
    unusable: bool
    seen: Mapping[str, float]
    lives: Mapping[str, tuple[float, float]]
    sessions: Mapping[str, int]
    connections: Mapping[str, int]
    records: int
    size: int
    syncs: int
    sync_seconds: float
    refused: bool
    waiting: int


@dataclass(frozen=True, slots=True)
class Looker:
    """Who takes looks. Both clocks are those of the reception: monotonic, and since the epoch."""

    service: Service
    reception: Reception
    journal: Journal
    inbox: Inbox
    reloader: Reloader
    tally: Tally
    clock: Callable[[], float]
    wall_clock: Callable[[], float]

    def __call__(self) -> Look:
        """Look. Reads, and awaits nothing."""
        reception, journal = self.reception, self.journal
        heard = dict(self.tally.seen)
        heard |= {held.participant_id: held.heartbeat.heard_at for held in reception.seats.values()}
        epoch = self.wall_clock() - self.clock()
        kinds = Counter(connection.kind.value for connection in reception.connections)
        return Look(
            status=self.service.status(),
            tally=self.tally.copy(),
            configured=self.reloader.current.configured,
            unusable=self.reloader.refused is not None,
            seen={seat: epoch + at for seat, at in heard.items()},
            lives={held.participant_id: _life(held.rights.identity) for held in reception.seats.values()},
            sessions={"participant": len(reception.seats), "operator": len(reception.operators)},
            connections={kind: kinds[kind] for kind in CHANNELS},
            records=journal.durable,
            size=journal.size,
            syncs=journal.stats.syncs,
            sync_seconds=journal.stats.sync_seconds,
            refused=journal.failure is not None,
            waiting=len(self.inbox),
        )


def _life(identity: Identity) -> tuple[float, float]:
    return identity.not_after - identity.lifetime_s, identity.not_after


def is_over(look: Look) -> bool:
    """Whether the debate has its outcome."""
    return look.status.debate_state in (DebateState.FINISHED, DebateState.STOPPED_BY_CAP, DebateState.ERROR)
