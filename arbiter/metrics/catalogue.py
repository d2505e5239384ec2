"""Every figure that an Arbiter exports: docs/metrics.md says the same, and a test holds it to that. Pure.

1. Names follow Prometheus' conventions: base units, the unit last, ``_total`` for what only grows.
2. A label has few values, and none of them grows with the debate. ``seat`` is the participant id, as STATUS
   and the transcript have it.
3. What is not known is not there. A client that reports no tokens has no series of tokens, and never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["gauge", "counter", "histogram", "summary"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric: its full name as it is queried (for a histogram or a summary, without suffix)."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    unit: str = ""


DEBATE = (
    Figure(
        "consilium_debate_state",
        "gauge",
        "1 for the state that the debate is in, 0 for the others.",
        ("state",),
    ),
    Figure("consilium_debate_phase", "gauge", "1 for the phase of the debate, 0 for the others.", ("phase",)),
    Figure("consilium_debate_turns_assigned_total", "counter", "Turns that were given to a seat."),
    Figure("consilium_debate_rounds_total", "counter", "Rounds that are complete."),
    Figure(
        "consilium_debate_elapsed_seconds_total",
        "counter",
        "Time that the debate has run. A pause does not count.",
        unit="seconds",
    ),
    Figure(
        "consilium_debate_cap_used_ratio",
        "gauge",
        "What is used of each cap that is set. At 1 the debate is stopped.",
        ("cap",),
        "ratio",
    ),
    Figure(
        "consilium_debate_tokens_estimated_total",
        "counter",
        "Tokens that max_tokens counts for turns whose client reported none, from what was said.",
        unit="tokens",
    ),
    Figure("consilium_debate_turns_without_usage_total", "counter", "Turns whose client reported no tokens."),
)

SEATS = (
    Figure(
        "consilium_seat_state",
        "gauge",
        "1 for what the seat is to the debate, 0 for the rest. Whether it is connected is another question.",
        ("seat", "state"),
    ),
    Figure(
        "consilium_seat_connected",
        "gauge",
        "1 while both of the seat's connections are there, else 0.",
        ("seat",),
    ),
    Figure(
        "consilium_seat_isolation",
        "gauge",
        "1 for how the seat says that it keeps its client apart, 0 for the rest.",
        ("seat", "isolation"),
    ),
    Figure(
        "consilium_seat_turns_total", "counter", "Turns that ended, by how they did.", ("seat", "outcome")
    ),
    Figure(
        "consilium_seat_faults_total",
        "counter",
        "Turns that failed, by what kept the client from producing them.",
        ("seat", "fault"),
    ),
    Figure(
        "consilium_seat_turn_seconds",
        "histogram",
        "From assigning a turn to its end, for turns that ended with a speech.",
        ("seat",),
        "seconds",
    ),
    Figure(
        "consilium_seat_first_byte_seconds",
        "histogram",
        "From starting the client to its first output, where a client prints as it goes.",
        ("seat",),
        "seconds",
    ),
    Figure(
        "consilium_seat_tokens_total",
        "counter",
        "Tokens that the client reported, read (in) and written (out).",
        ("seat", "kind"),
        "tokens",
    ),
    Figure(
        "consilium_seat_cached_tokens_total",
        "counter",
        "Of the tokens read, those that came from a cache.",
        ("seat",),
        "tokens",
    ),
    Figure("consilium_seat_usd_total", "counter", "Cost that the client reported.", ("seat",), "US dollars"),
    Figure(
        "consilium_seat_repetition_ratio",
        "gauge",
        "Share of the seat's latest turn that it had said before, word for word in threes.",
        ("seat",),
        "ratio",
    ),
    Figure(
        "consilium_seat_topic_overlap_ratio",
        "gauge",
        "Share of the topic's words that stand in the seat's latest turn: watch it fall.",
        ("seat",),
        "ratio",
    ),
    Figure(
        "consilium_seat_turns_since_speech",
        "gauge",
        "Turns since this person last spoke. People only.",
        ("seat",),
    ),
    Figure(
        "consilium_seat_last_seen_timestamp_seconds",
        "gauge",
        "When the seat's last line came, since the epoch. Absent for one that this Arbiter never heard.",
        ("seat",),
        "seconds",
    ),
    Figure(
        "consilium_seat_heartbeat_round_trip_seconds",
        "gauge",
        "From the latest PING to its PONG.",
        ("seat",),
        "seconds",
    ),
    Figure(
        "consilium_seat_certificate_start_timestamp_seconds",
        "gauge",
        "When the certificate of a seat that is connected began to hold, since the epoch.",
        ("seat",),
        "seconds",
    ),
    Figure(
        "consilium_seat_certificate_expiry_timestamp_seconds",
        "gauge",
        "When the certificate of a seat that is connected ends, since the epoch.",
        ("seat",),
        "seconds",
    ),
)

ARBITER = (
    Figure("consilium_build_info", "gauge", "Always 1; the labels say what runs.", ("version", "python")),
    Figure("consilium_sessions", "gauge", "Registered seats, and operators that are connected.", ("role",)),
    Figure("consilium_sessions_opened_total", "counter", "Sessions that began.", ("role",)),
    Figure("consilium_connections", "gauge", "Connections past their handshake.", ("channel",)),
    Figure("consilium_handshakes_total", "counter", "What became of connections at the doors.", ("result",)),
    Figure("consilium_refusals_total", "counter", "ERROR messages sent, by their code.", ("code",)),
    Figure("consilium_rate_limit_hits_total", "counter", "Messages over their profile's rate.", ("channel",)),
    Figure(
        "consilium_reloads_total", "counter", "Certificates and profiles read again, or refused.", ("result",)
    ),
    Figure(
        "consilium_configuration_refused",
        "gauge",
        "1 while what was read last (certificates, profiles, CRLs) is refused and the old applies, else 0.",
    ),
    Figure(
        "consilium_certificate_start_timestamp_seconds",
        "gauge",
        "When that certificate began to hold.",
        ("holder",),
        "seconds",
    ),
    Figure(
        "consilium_certificate_expiry_timestamp_seconds",
        "gauge",
        "When a certificate that the Arbiter goes by ends, since the epoch: its own, or an authority's.",
        ("holder",),
        "seconds",
    ),
    Figure(
        "consilium_crl_this_update_timestamp_seconds",
        "gauge",
        "When a revocation list that the Arbiter goes by was made, since the epoch.",
        ("issuer",),
        "seconds",
    ),
    Figure(
        "consilium_crl_next_update_timestamp_seconds",
        "gauge",
        "When it ends: from then on nobody new is let in.",
        ("issuer",),
        "seconds",
    ),
    Figure("consilium_transcript_records_total", "counter", "Records of the transcript that are on disk."),
    Figure("consilium_transcript_size_bytes", "gauge", "What is on disk of the transcript.", unit="bytes"),
    Figure(
        "consilium_transcript_sync_seconds",
        "summary",
        "Waiting for the disk to have what was written.",
        unit="seconds",
    ),
    Figure(
        "consilium_transcript_refused",
        "gauge",
        "1 while the disk refuses the transcript and the debate stands still, else 0.",
    ),
    Figure("consilium_inbox_events", "gauge", "Events that wait for the debate's owner."),
)

CATALOGUE = {figure.name: figure for figure in (*DEBATE, *SEATS, *ARBITER)}

TURN_SECONDS = (1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0, 600.0)
FIRST_BYTE_SECONDS = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0, 120.0)
