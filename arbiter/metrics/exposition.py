"""A look at the Arbiter, in Prometheus' text format: one reading for each figure of the catalogue."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from arbiter.debate.roster import Standing
from arbiter.metrics.catalogue import CATALOGUE, TURN_SECONDS
from arbiter.metrics.holding import certificates, crls
from arbiter.metrics.tally import Spread
from consilium import __version__
from consilium.messages import DebateState, Phase
from consilium.records import TurnOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prometheus_client import Metric

    from arbiter.metrics.catalogue import Figure
    from arbiter.metrics.look import Look
    from consilium.messages import Cost

    Sample = tuple[tuple[str, ...], float | Spread | tuple[int, float]]
    """Label values, and a value: a histogram is a `Spread`, a summary is count and sum."""

CONTENT_TYPE = CONTENT_TYPE_LATEST

SEAT_STATES = (*(standing.value for standing in Standing), "speaking")
ISOLATIONS = ("strict", "relaxed", "unknown")

_PROCESS = ProcessCollector(registry=None)
"""What the process takes: ``process_cpu_seconds_total``, ``process_resident_memory_bytes`` and their kin."""


def render(look: Look) -> bytes:
    """The page. Takes milliseconds of processor time for a debate of some hundred seats."""
    return generate_latest(_Page(look))


class _Page(Collector):
    def __init__(self, look: Look) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        """Every figure that has a sample, in the order of the catalogue."""
        for name, figure in CATALOGUE.items():
            samples = list(READINGS[name](self._look))
            if samples:
                yield _family(figure, samples)
        yield from _PROCESS.collect()


def _family(figure: Figure, samples: Iterable[Sample]) -> Metric:
    if figure.kind == "histogram":
        histogram = HistogramMetricFamily(figure.name, figure.meaning, labels=figure.labels)
        for labels, value in samples:
            assert isinstance(value, Spread)
            histogram.add_metric(labels, _buckets(value), value.total)
        return histogram
    if figure.kind == "summary":
        summary = SummaryMetricFamily(figure.name, figure.meaning, labels=figure.labels)
        for labels, value in samples:
            assert isinstance(value, tuple)
            summary.add_metric(labels, *value)
        return summary
    family: CounterMetricFamily | GaugeMetricFamily
    if figure.kind == "counter":
        family = CounterMetricFamily(figure.name, figure.meaning, labels=figure.labels)
    else:
        family = GaugeMetricFamily(figure.name, figure.meaning, labels=figure.labels)
    for labels, value in samples:
        assert isinstance(value, int | float)
        family.add_metric(labels, value)
    return family


def _buckets(spread: Spread) -> list[tuple[str, float]]:
    """Prometheus' buckets hold all that is at most their bound, so each holds the ones before it."""
    buckets, so_far = [], 0
    for bound, count in zip((*map(str, spread.bounds), "+Inf"), spread.counts, strict=True):
        so_far += count
        buckets.append((bound, float(so_far)))
    return buckets


# --- the readings -------------------------------------------------------------------------------------


def _one(value: float) -> Iterator[Sample]:
    yield (), value


def _one_of(words: Iterable[str], which: str, *labels: str) -> Iterator[Sample]:
    for word in words:
        yield (*labels, word), float(word == which)


def _by(values: Mapping[str, float]) -> Iterator[Sample]:
    for name, value in values.items():
        yield (name,), value


def _spreads(values: Mapping[str, Spread]) -> Iterator[Sample]:
    for seat, spread in values.items():
        yield (seat,), spread


def _of_roster(look: Look, values: Mapping[str, float]) -> Iterator[Sample]:
    """What is known of the seats that have a place: nobody waits for one that is gone for good."""
    for seat in look.status.seats:
        if seat.participant_id in values:
            yield (seat.participant_id,), values[seat.participant_id]


def _turns(look: Look) -> Iterator[Sample]:
    seats = dict.fromkeys(seat.participant_id for seat in look.status.seats)
    seats |= dict.fromkeys(seat for seat, _ in look.tally.turns)
    for seat in seats:
        for outcome in TurnOutcome:
            yield (seat, outcome.value), look.tally.turns[seat, outcome.value]


def _turn_seconds(look: Look) -> Iterator[Sample]:
    # From the start: Prometheus takes the first value of a series for its beginning, and would miss a turn.
    seats = {seat.participant_id: Spread(TURN_SECONDS) for seat in look.status.seats}
    return _spreads(seats | look.tally.turn_seconds)


def _caps(cost: Cost) -> Iterator[Sample]:
    used = {
        "max_rounds": cost.rounds,
        "max_tokens": (cost.tokens_total or 0) + cost.tokens_estimated,
        "max_usd": cost.usd_total or 0.0,
        "max_seconds": cost.elapsed_s,
    }
    for cap, limit in cost.caps.items():
        yield (cap,), used[cap] / limit


def _seat_states(look: Look) -> Iterator[Sample]:
    for seat in look.status.seats:
        yield from _one_of(SEAT_STATES, seat.state, seat.participant_id)


def _isolations(look: Look) -> Iterator[Sample]:
    for seat in look.status.seats:
        yield from _one_of(ISOLATIONS, seat.isolation or "unknown", seat.participant_id)


def _tokens(look: Look) -> Iterator[Sample]:
    yield from look.tally.tokens.items()


READINGS: Mapping[str, Callable[[Look], Iterable[Sample]]] = {
    "consilium_debate_state": lambda look: _one_of(DebateState, look.status.debate_state),
    "consilium_debate_phase": lambda look: _one_of(Phase, look.status.phase),
    "consilium_debate_turns_assigned_total": lambda look: _one(look.status.turn_counter),
    "consilium_debate_rounds_total": lambda look: _one(look.status.cost.rounds),
    "consilium_debate_elapsed_seconds_total": lambda look: _one(look.status.cost.elapsed_s),
    "consilium_debate_cap_used_ratio": lambda look: _caps(look.status.cost),
    "consilium_debate_tokens_estimated_total": lambda look: _one(look.status.cost.tokens_estimated),
    "consilium_debate_turns_without_usage_total": lambda look: _one(look.status.cost.tokens_unknown_turns),
    "consilium_seat_state": _seat_states,
    "consilium_seat_connected": lambda look: _by(
        {seat.participant_id: float(seat.connected) for seat in look.status.seats}
    ),
    "consilium_seat_isolation": _isolations,
    "consilium_seat_turns_total": _turns,
    "consilium_seat_faults_total": lambda look: look.tally.faults.items(),
    "consilium_seat_turn_seconds": _turn_seconds,
    "consilium_seat_first_byte_seconds": lambda look: _spreads(look.tally.first_byte_seconds),
    "consilium_seat_tokens_total": _tokens,
    "consilium_seat_cached_tokens_total": lambda look: _by(look.tally.cached),
    "consilium_seat_usd_total": lambda look: _by(look.tally.usd),
    "consilium_seat_repetition_ratio": lambda look: _by(look.status.repetition),
    "consilium_seat_topic_overlap_ratio": lambda look: _by(look.status.topic_overlap),
    "consilium_seat_turns_since_speech": lambda look: _by(look.status.turns_since),
    "consilium_seat_last_seen_timestamp_seconds": lambda look: _of_roster(look, look.seen),
    "consilium_seat_heartbeat_round_trip_seconds": lambda look: _of_roster(look, look.tally.round_trips),
    "consilium_seat_certificate_start_timestamp_seconds": lambda look: _of_roster(
        look, {seat: life[0] for seat, life in look.lives.items()}
    ),
    "consilium_seat_certificate_expiry_timestamp_seconds": lambda look: _of_roster(
        look, {seat: life[1] for seat, life in look.lives.items()}
    ),
    "consilium_build_info": lambda _: [((__version__, platform.python_version()), 1)],
    "consilium_sessions": lambda look: _by(look.sessions),
    "consilium_sessions_opened_total": lambda look: _by(look.tally.sessions),
    "consilium_connections": lambda look: _by(look.connections),
    "consilium_handshakes_total": lambda look: _by(look.tally.handshakes),
    "consilium_refusals_total": lambda look: _by(look.tally.refusals),
    "consilium_rate_limit_hits_total": lambda look: _by(look.tally.rate_limits),
    "consilium_reloads_total": lambda look: _by(look.tally.reloads),
    "consilium_configuration_refused": lambda look: _one(float(look.unusable)),
    "consilium_certificate_start_timestamp_seconds": lambda look: _by(
        {held.name: held.since for held in certificates(look.configured)}
    ),
    "consilium_certificate_expiry_timestamp_seconds": lambda look: _by(
        {held.name: held.until for held in certificates(look.configured)}
    ),
    "consilium_crl_this_update_timestamp_seconds": lambda look: _by(
        {held.name: held.since for held in crls(look.configured)}
    ),
    "consilium_crl_next_update_timestamp_seconds": lambda look: _by(
        {held.name: held.until for held in crls(look.configured)}
    ),
    "consilium_transcript_records_total": lambda look: _one(look.records),
    "consilium_transcript_size_bytes": lambda look: _one(look.size),
    "consilium_transcript_sync_seconds": lambda look: [((), (look.syncs, look.sync_seconds))],
    "consilium_transcript_refused": lambda look: _one(float(look.refused)),
    "consilium_inbox_events": lambda look: _one(look.waiting),
}
