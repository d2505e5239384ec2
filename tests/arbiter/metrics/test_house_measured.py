"""What a scrape says of a debate that is really held: over TLS, with a record on disk."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import anyio
import pytest
from certificates import clock
from house import house, until
from playbook import council
from scrapes import scrape

from arbiter.disk import RealDisk
from arbiter.metrics.catalogue import CATALOGUE
from consilium import __version__
from consilium import messages as m

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

USAGE = m.Usage(tokens_in=100, tokens_out=20, tokens_cached=30, usd=0.25, first_byte_ms=1500)


async def test_a_debate_shows_its_state_its_cost_and_its_seats(tmp_path: Path) -> None:
    rules = council(("ada", "bob"), caps={"max_rounds": 10, "max_tokens": 1000, "max_usd": 2})
    async with house(tmp_path, rules, measured=True) as home:
        page = await scrape(home)
        assert page.one_of("consilium_debate_state", "state") == "WAITING_QUORUM"
        assert page("consilium_debate_turns_assigned_total") == 0
        assert page.all("consilium_seat_state") == []

        ada, bob = await home.joined("ada", "bob")
        one, two = ada.granted.participant_id, bob.granted.participant_id
        first = await ada.turn()
        page = await scrape(home)
        assert page.one_of("consilium_debate_state", "state") == "RUNNING"
        assert page.one_of("consilium_debate_phase", "phase") == "OPENING"
        assert page.one_of("consilium_seat_state", "state", seat=one) == "speaking"
        assert page.one_of("consilium_seat_state", "state", seat=two) == "active"
        assert page.one_of("consilium_seat_isolation", "isolation", seat=one) == "unknown"
        assert page("consilium_seat_connected", seat=one) == 1
        assert page("consilium_seat_turns_total", seat=one, outcome="speech") == 0
        assert page("consilium_seat_turn_seconds_count", seat=one) == 0
        assert page("consilium_debate_cap_used_ratio", cap="max_tokens") == 0
        assert page("consilium_seat_tokens_total", seat=one, kind="in") is None, "unknown is not zero"

        await ada.says(first.turn_id, "Wrap the billing service now, and wrap it well.", USAGE)
        await bob.speaks("Rewrite it.")
        await ada.turn()
        page = await scrape(home)
        assert page("consilium_debate_turns_assigned_total") == 3
        assert page("consilium_debate_rounds_total") == 1
        assert page("consilium_seat_turns_total", seat=one, outcome="speech") == 1
        assert page("consilium_seat_tokens_total", seat=one, kind="in") == 100
        assert page("consilium_seat_tokens_total", seat=one, kind="out") == 20
        assert page("consilium_seat_cached_tokens_total", seat=one) == 30
        assert page("consilium_seat_usd_total", seat=one) == 0.25
        assert page("consilium_seat_usd_total", seat=two) is None
        assert page("consilium_debate_turns_without_usage_total") == 1
        assert page("consilium_debate_tokens_estimated_total") == 3
        assert page("consilium_debate_cap_used_ratio", cap="max_tokens") == 0.123
        assert page("consilium_debate_cap_used_ratio", cap="max_rounds") == 0.1
        assert page("consilium_debate_cap_used_ratio", cap="max_usd") == 0.125
        assert (page("consilium_debate_elapsed_seconds_total") or 0) > 0
        assert page("consilium_seat_turn_seconds_count", seat=one) == 1
        assert page("consilium_seat_first_byte_seconds_bucket", seat=one, le="1.0") == 0
        assert page("consilium_seat_first_byte_seconds_bucket", seat=one, le="2.5") == 1
        assert page("consilium_seat_first_byte_seconds_sum", seat=one) == 1.5
        assert page("consilium_seat_first_byte_seconds_count", seat=two) is None
        assert page("consilium_seat_repetition_ratio", seat=one) == 0
        assert page("consilium_seat_topic_overlap_ratio", seat=one) == 0.6
        seen = page("consilium_seat_last_seen_timestamp_seconds", seat=one)
        assert seen == pytest.approx(clock(), abs=20)
        assert (page("consilium_seat_certificate_expiry_timestamp_seconds", seat=one) or 0) > clock()


async def test_a_person_shows_how_long_ago_they_spoke(tmp_path: Path) -> None:
    async with house(tmp_path, council(("ada", "eve")), measured=True) as home:
        ada, eve = home.guest("ada"), home.guest("eve")
        await ada.join()
        await eve.join(meta=m.Meta(brand="human", isolation="relaxed"))
        await ada.speaks("First.")
        await eve.turn()
        page = await scrape(home)
        assert page("consilium_seat_turns_since_speech", seat=eve.granted.participant_id) == 2
        assert page("consilium_seat_turns_since_speech", seat=ada.granted.participant_id) is None
        assert (
            page.one_of("consilium_seat_isolation", "isolation", seat=eve.granted.participant_id) == "relaxed"
        )


async def test_sessions_refusals_and_handshakes_are_counted(tmp_path: Path) -> None:
    async with house(tmp_path, council(("ada",)), measured=True) as home:
        (ada,) = await home.joined("ada")
        operator = await home.operator()
        await operator.ask(m.StatusRequest())
        stranger = home.guest("nobody")
        await stranger.arrive()
        assert (await stranger.control.ask(m.Reg(name="nobody"))).code == "POLICY_DENIED"
        await stranger.control.rest()
        wrong = await home.connect("admin", home.context("ada"))
        assert [said.code for said in await wrong.rest()] == ["POLICY_DENIED"]
        await ada.control.say(m.Ack(turn_id=77))
        await ada.control.hear(m.TurnStart)
        assert (await ada.control.hear(m.Error)).code == "TURN_MISMATCH"
        raw = await anyio.connect_tcp("127.0.0.1", int(home.ports["control"]))
        await raw.send(b"GET / HTTP/1.0\r\n\r\n")
        await until(lambda: len(home.reports) == 6)
        await raw.aclose()

        page = await scrape(home)
        assert page("consilium_refusals_total", code="POLICY_DENIED") == 2
        assert page("consilium_refusals_total", code="TURN_MISMATCH") == 1
        assert page("consilium_refusals_total", code="MALFORMED") == 0
        assert page("consilium_handshakes_total", result="accepted") == 5
        assert page("consilium_handshakes_total", result="failed") == 1
        assert page("consilium_sessions", role="participant") == 1
        assert page("consilium_sessions", role="operator") == 1
        assert page("consilium_sessions_opened_total", role="participant") == 2
        assert page("consilium_connections", channel="data") == 1
        assert page("consilium_rate_limit_hits_total", channel="control") == 0


async def test_a_flood_is_counted_as_one(tmp_path: Path) -> None:
    async with house(tmp_path, council(("ada",)), measured=True) as home:
        (ada,) = await home.joined("ada")
        for _ in range(60):
            await ada.control.say(m.Pong(ts=1))
        await ada.control.rest()
        page = await scrape(home)
        assert page("consilium_rate_limit_hits_total", channel="control") == 1
        assert page("consilium_refusals_total", code="RATE_LIMITED") == 1


async def test_a_seat_that_is_gone_keeps_the_time_at_which_it_was_last_seen(tmp_path: Path) -> None:
    async with house(tmp_path, council(("ada", "bob")), measured=True) as home:
        ada, _ = await home.joined("ada", "bob")
        before = await scrape(home)
        await ada.control.cut()
        await until(lambda: home.debate.state is m.DebateState.PAUSED)
        page, seat = await scrape(home), ada.granted.participant_id
        name = "consilium_seat_last_seen_timestamp_seconds"
        assert page(name, seat=seat) == pytest.approx(before(name, seat=seat), abs=20)
        assert page("consilium_seat_connected", seat=seat) == 0
        assert page.one_of("consilium_seat_state", "state", seat=seat) == "faulty"
        assert page("consilium_seat_certificate_expiry_timestamp_seconds", seat=seat) is None


async def test_a_heartbeat_is_timed(tmp_path: Path) -> None:
    rules = council(("ada",), limits={"heartbeat_seconds": 1})
    async with house(tmp_path, rules, measured=True) as home:
        (ada,) = await home.joined("ada")
        seat, name = ada.granted.participant_id, "consilium_seat_heartbeat_round_trip_seconds"
        assert (await scrape(home))(name, seat=seat) is None
        await ada.control.channel.send(m.Pong(ts=12345))  # to no PING of ours
        await ada.turn()
        assert await ada.control.hears_nothing(2.5)
        page = await scrape(home)
        assert 0 < (page(name, seat=seat) or 0) < 20


async def test_certificates_and_reloads_show(tmp_path: Path) -> None:
    async with house(tmp_path, council(("ada",)), measured=True) as home:
        page = await scrape(home)
        ends = page("consilium_certificate_expiry_timestamp_seconds", holder="arbiter")
        assert (ends or 0) > clock()
        assert len(page.all("consilium_certificate_expiry_timestamp_seconds")) >= 2
        assert page("consilium_reloads_total", result="taken") == 0

        operator = await home.operator()
        home.authority.issue(
            "arbiter", profile="arbiter", dns=["localhost"], ips=["127.0.0.1"], days=1, replace=True
        )
        assert isinstance(await operator.ask(m.Reload()), m.AdminOk)
        page = await scrape(home)
        assert page("consilium_reloads_total", result="taken") == 1
        sooner = page("consilium_certificate_expiry_timestamp_seconds", holder="arbiter")
        assert (sooner or 0) < clock() + 86500

        assert page("consilium_configuration_refused") == 0

        profiles = tmp_path / "profiles.yaml"
        good = profiles.read_bytes()
        profiles.write_text("nonsense: [")
        assert isinstance(await operator.ask(m.Reload()), m.Error)
        page = await scrape(home)
        assert page("consilium_reloads_total", result="refused") == 1
        assert page("consilium_configuration_refused") == 1
        profiles.write_bytes(good)
        assert isinstance(await operator.ask(m.Reload()), m.AdminOk)
        assert (await scrape(home))("consilium_configuration_refused") == 0


async def test_the_transcript_and_the_process_show(tmp_path: Path) -> None:
    async with house(tmp_path, council(("ada",)), measured=True) as home:
        (ada,) = await home.joined("ada")
        await ada.turn()
        page = await scrape(home)
        assert page("consilium_transcript_records_total") == len(home.records())
        assert page("consilium_transcript_size_bytes") == home.transcript.stat().st_size
        assert (page("consilium_transcript_sync_seconds_count") or 0) > 0
        assert (page("consilium_transcript_sync_seconds_sum") or 0) > 0
        assert page("consilium_transcript_refused") == 0
        assert page("consilium_build_info", version=__version__) == 1
        assert page("consilium_inbox_events") == 0
        assert (page("process_resident_memory_bytes") or 0) > 1e6


class FullDisk(RealDisk):
    """A disk that refuses while ``full``."""

    full = False

    def fdatasync(self, descriptor: int) -> None:
        """See `RealDisk`."""
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().fdatasync(descriptor)


async def test_a_disk_that_refuses_shows_and_so_does_the_rest(tmp_path: Path) -> None:
    disk = FullDisk()
    async with house(tmp_path, council(("ada", "bob")), measured=True, disk=disk) as home:
        ada, _ = await home.joined("ada", "bob")
        turn = await ada.turn()
        disk.full = True
        await ada.says(turn.turn_id, "First.")
        await until(lambda: home.house.journal.failure is not None)
        page = await scrape(home)
        assert page("consilium_transcript_refused") == 1
        assert page.one_of("consilium_debate_state", "state") == "PAUSED"
        elapsed = page("consilium_debate_elapsed_seconds_total")
        await anyio.sleep(0.05)
        assert (await scrape(home))("consilium_debate_elapsed_seconds_total") == elapsed, "its clock stands"
        assert page("consilium_seat_turns_total", seat=ada.granted.participant_id, outcome="speech") == 0
        disk.full = False
        await until(lambda: home.house.journal.failure is None)


async def test_whoever_scrapes_is_given_the_outcome_before_the_arbiter_goes(tmp_path: Path) -> None:
    async with house(tmp_path, council(("ada",)), measured=True) as home:
        (ada,) = await home.joined("ada")
        await scrape(home)
        operator = await home.operator()
        await operator.ask(m.Terminate(reason="enough"))
        await ada.control.rest()
        await ada.data.rest()
        await operator.rest()
        with anyio.move_on_after(1):
            await home.over.wait()
        assert not home.over.is_set()
        assert (await scrape(home)).one_of("consilium_debate_state", "state") == "FINISHED"
        assert await home.outcome() is m.DebateState.FINISHED


async def test_every_figure_has_a_sample_of_its_kind_and_labels(tmp_path: Path) -> None:
    rules = council(("ada", "eve"), limits={"heartbeat_seconds": 1})
    async with house(tmp_path, rules, measured=True) as home:
        ada, eve = home.guest("ada"), home.guest("eve")
        await ada.join()
        await eve.join(meta=m.Meta(brand="human"))
        turn = await ada.turn()
        await ada.says(turn.turn_id, "Rewrite the billing service.", USAGE)
        turn = await eve.turn()
        failed = m.TurnFailed(turn_id=turn.turn_id, fault=m.Fault.STALLED, prompt_sent=m.PromptSent.MAYBE)
        await eve.control.say(failed)
        await ada.control.hear(m.DebatePaused)
        await ada.control.hears_nothing(2.5)
        page = await scrape(home)
        for name, figure in CATALOGUE.items():
            family = page.families[name.removesuffix("_total")]
            assert (family.type, family.documentation) == (figure.kind, figure.meaning)
            labels = {*figure.labels} | ({"le"} if figure.kind == "histogram" else set())
            assert {*family.samples[0].labels} == labels
        others = {name for name in page.families if name.startswith("consilium_")}
        assert others <= {name.removesuffix("_total") for name in CATALOGUE}


async def test_a_debate_that_a_bug_has_ended_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, council(("ada",)), measured=True) as home:
        await scrape(home)

        def fails(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(home.debate, "handle", fails)
        await home.guest("ada").arrive()
        operator = await home.operator()
        await operator.say(m.StatusRequest())
        await until(lambda: home.house.service._broken)
        assert (await scrape(home)).one_of("consilium_debate_state", "state") == "ERROR"
        assert await home.outcome() is m.DebateState.ERROR
