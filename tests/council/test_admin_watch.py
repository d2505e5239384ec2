"""`council.following` and `council.screen`: a record that is followed across the Arbiter's restarts."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from admin_double import Desk, admin_double, stored
from arbiter_double import HOST
from edge_kit import Council
from statuses import paused, status
from transcripts import DEBATE, SCEPTIC, event, header, joined, turn

from consilium import messages as m
from consilium import tls
from consilium.records import EventName
from council import following, operator
from council.course import Verdict
from council.following import Follower
from council.live import JsonView
from council.printer import Printer
from council.screen import Showing, open_printer, open_view

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from anyio.abc import TaskGroup

    from consilium.records import AnyEntry, Stored
    from council.closing import Closing

pytestmark = pytest.mark.anyio

BEGINNING: list[AnyEntry] = [
    header(),
    joined(SCEPTIC),
    event(EventName.DEBATE_STARTED, phase="OPENING"),
    turn(1),
]
END = event(EventName.DEBATE_ENDED, outcome="FINISHED", cap=None, reason="done", turn_counter=1)
RECORDS = stored([*BEGINNING, END])
BROKE = event(EventName.DEBATE_ENDED, outcome="ERROR", cap=None, reason="internal_error", turn_counter=1)


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Council:
    return Council(tmp_path_factory.mktemp("council"))


@pytest.fixture(autouse=True)
def _brief_farewells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "CLOSE_SECONDS", 0.05)


@dataclass
class Seen:
    """A view that keeps what it is shown."""

    doings: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)

    def begin(self, council: Any, folder: Any, now: float, *, endpoint: str | None = None) -> None:
        raise AssertionError("nothing begins here")

    def doing(self, what: str, now: float) -> None:
        self.doings.append(what)

    def say(self, sentence: str, now: float) -> None:
        self.said.append(sentence)

    def record(self, record: Stored, now: float) -> None:
        self.seqs.append(record.seq)

    def tick(self, now: float) -> None:
        pass

    def end(self, closing: Closing, now: float) -> None:
        raise AssertionError("who follows does not show the end")


@dataclass
class Watching:
    """A follower at work: its desk, what it shows, and what came of it."""

    desk: Desk
    seen: Seen
    follower: Follower
    tasks: TaskGroup
    clock: list[float]
    verdict: Verdict | None = None
    over: anyio.Event = field(default_factory=anyio.Event)

    async def work(self) -> None:
        self.verdict = await self.follower.run()
        self.over.set()

    async def comes_to(self, code: int, outcome: str) -> Verdict:
        with anyio.fail_after(5):
            await self.over.wait()
        assert self.verdict is not None
        assert (self.verdict.code, self.verdict.outcome) == (code, outcome)
        return self.verdict

    async def has_seen(self, seqs: list[int]) -> None:
        with anyio.fail_after(5):
            while self.seen.seqs != seqs:  # noqa: ASYNC110 - a list tells nobody when it changes
                await anyio.sleep(0.005)

    async def does(self, what: str) -> None:
        with anyio.fail_after(5):
            while not self.seen.doings or what not in self.seen.doings[-1]:  # noqa: ASYNC110 - as above
                await anyio.sleep(0.005)


@asynccontextmanager
async def watching(council: Council, *, from_seq: int = 0, jitter: float = 0.05) -> AsyncIterator[Watching]:
    async with admin_double(council.server) as desk, anyio.create_task_group() as tasks:
        seen, clock = Seen(), [0.0]
        follower = Follower(
            lambda: operator.connect(HOST, desk.port, council.client),
            seen,
            from_seq=from_seq,
            clock=lambda: clock[0],
            jitter=lambda: jitter,
        )
        watched = Watching(desk, seen, follower, tasks, clock)
        tasks.start_soon(watched.work)
        yield watched
        tasks.cancel_scope.cancel()


# --- one connection ------------------------------------------------------------------------------------


async def test_a_debate_is_followed_to_its_end(council: Council) -> None:
    async with watching(council) as watched:
        await watched.desk.serves(RECORDS)
        verdict = await watched.comes_to(0, "FINISHED")
        assert watched.seen.seqs == [0, 1, 2, 3, 4]
        assert watched.seen.doings == ["connecting to the Arbiter"]
        assert watched.seen.said == [f"Debate {DEBATE}: Should the billing service be rewritten?"]
        assert verdict.sentence == "The debate is finished after 1 turn: done."


async def test_a_debate_that_ends_in_error_is_told_apart(council: Council) -> None:
    async with watching(council) as watched:
        await watched.desk.serves(stored([*BEGINNING, BROKE]))
        await watched.comes_to(1, "ERROR")


async def test_from_a_later_record_on_the_debate_is_named_first(council: Council) -> None:
    async with watching(council, from_seq=3) as watched:
        peer = await watched.desk.serves(RECORDS[:2])
        await watched.desk.serves(RECORDS, from_seq=3)
        await watched.comes_to(0, "FINISHED")
        assert watched.seen.seqs == [3, 4]
        assert len(watched.seen.said) == 1
        await peer.hears_the_end()


async def test_a_record_of_another_kind_is_left_out_and_said(council: Council) -> None:
    strange = RECORDS[2] | {"event": "ORACLE_CONSULTED"}
    async with watching(council) as watched:
        await watched.desk.serves([*RECORDS[:2], strange, *RECORDS[3:]])
        await watched.comes_to(0, "FINISHED")
        assert watched.seen.seqs == [0, 1, 3, 4]
        assert watched.seen.said[1] == "Record 2 is of a kind that this version does not know; left out."


async def test_nobody_there_at_first_is_the_end_at_once(council: Council) -> None:
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    follower = Follower(
        lambda: operator.connect(HOST, port, council.client),
        Seen(),
        from_seq=0,
        clock=lambda: 0.0,
        jitter=lambda: 1.0,
    )
    verdict = await follower.run()
    assert (verdict.code, verdict.outcome) == (4, "LINK_LOST")
    assert verdict.cause == f"no connection to the Arbiter at {HOST}:{port}: connection refused"


# --- the Arbiter goes away and comes back ----------------------------------------------------------------


async def test_a_cut_line_is_made_anew_and_nothing_is_shown_twice(council: Council) -> None:
    async with watching(council) as watched:
        peer = await watched.desk.serves(RECORDS[:3])
        await watched.has_seen([0, 1, 2])
        await peer.cut()
        await watched.desk.serves(RECORDS[:1])
        await watched.desk.serves(RECORDS, from_seq=3)
        await watched.comes_to(0, "FINISHED")
        assert watched.seen.seqs == [0, 1, 2, 3, 4]
        assert "waiting for the Arbiter: " in watched.seen.doings[1]
        assert watched.seen.doings[2] == "following again, from record 3"


async def test_an_arbiter_that_closes_without_an_end_is_waited_for(council: Council) -> None:
    async with watching(council) as watched:
        peer = await watched.desk.serves(RECORDS[:3])
        await watched.has_seen([0, 1, 2])
        await peer.close()
        await watched.desk.serves(RECORDS[:1])
        await watched.desk.serves(RECORDS, from_seq=3)
        await watched.comes_to(0, "FINISHED")
        assert watched.seen.doings[1] == "waiting for the Arbiter: it closed the connection"


async def test_an_arbiter_that_does_not_listen_for_a_while_is_found_again(council: Council) -> None:
    async with watching(council) as watched:
        peer = await watched.desk.serves(RECORDS[:3])
        await watched.has_seen([0, 1, 2])
        await watched.desk.closes()
        await peer.close()
        await watched.does("connection refused")
        await anyio.sleep(0.1)
        await watched.desk.opens()
        await watched.desk.serves(RECORDS[:1])
        await watched.desk.serves(RECORDS, from_seq=3)
        await watched.comes_to(0, "FINISHED")
        assert sum("connection refused" in what for what in watched.seen.doings) == 1


async def test_a_connection_that_ends_before_the_header_is_only_another_loss(council: Council) -> None:
    async with watching(council) as watched:
        peer = await watched.desk.serves(RECORDS[:3])
        await watched.has_seen([0, 1, 2])
        await peer.close()
        await (await watched.desk.serves([])).close()
        await (await watched.desk.serves([], from_seq=3)).close()
        await watched.desk.serves(RECORDS[:1])
        await watched.desk.serves(RECORDS, from_seq=3)
        await watched.comes_to(0, "FINISHED")


async def test_another_debate_in_its_place_is_said_and_not_followed(council: Council) -> None:
    other = header().model_copy(update={"debate_id": "d-other"})
    async with watching(council) as watched:
        peer = await watched.desk.serves(RECORDS[:3])
        await watched.has_seen([0, 1, 2])
        await peer.cut()
        await watched.desk.serves(stored([other, joined(SCEPTIC)]))
        verdict = await watched.comes_to(4, "ANOTHER_DEBATE")
        assert verdict.sentence == (
            f"Another debate is held there now, d-other; {DEBATE} was watched."
            " Watch again to follow the new one."
        )
        assert watched.seen.seqs == [0, 1, 2]


async def test_pauses_grow_to_a_bound_and_each_differs(
    council: Council, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    jitters = iter([1.0, 0.5, 1.5, 1.0, 1.0, 1.0, 1.0])
    follower = Follower(
        lambda: operator.connect(HOST, 1, council.client),
        Seen(),
        from_seq=0,
        clock=lambda: 0.0,
        jitter=lambda: next(jitters),
    )
    follower._debate = DEBATE
    with monkeypatch.context() as patch:
        patch.setattr(anyio, "sleep", sleep)
        for _ in range(7):
            await follower._wait("gone")
    assert slept == [0.25, 0.25, 1.5, 2.0, 4.0, 5.0, 5.0]


async def test_an_arbiter_that_stays_away_is_given_up(council: Council) -> None:
    async with watching(council) as watched:
        peer = await watched.desk.serves(RECORDS[:3])
        await watched.has_seen([0, 1, 2])
        await watched.desk.closes()
        await peer.close()
        await watched.does("connection refused")
        watched.clock[0] = following.GIVE_UP_SECONDS + 1
        verdict = await watched.comes_to(4, "LINK_LOST")
        assert verdict.stood == "it did not come back within 10 minutes; its transcript says more"


async def test_time_away_counts_anew_after_each_return(council: Council) -> None:
    async with watching(council) as watched:
        peer = await watched.desk.serves(RECORDS[:3])
        await watched.has_seen([0, 1, 2])
        for _ in range(2):
            await peer.close()
            await watched.desk.serves(RECORDS[:1])
            peer = await watched.desk.serves(RECORDS[:3], from_seq=3)
            await watched.does("following again")
            watched.clock[0] += following.GIVE_UP_SECONDS + 1
        await peer.close()
        await watched.desk.serves(RECORDS[:1])
        await watched.desk.serves(RECORDS, from_seq=3)
        await watched.comes_to(0, "FINISHED")


# --- silence -------------------------------------------------------------------------------------------


async def test_a_silent_arbiter_is_asked_whether_it_lives(
    council: Council, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "PROBE_SECONDS", 0.05)
    monkeypatch.setattr(following, "ANSWER_SECONDS", 0.2)
    async with watching(council) as watched:
        peer = await watched.desk.serves(RECORDS[:3])
        for reply in (status(), m.Error(code="POLICY_DENIED", message="no")):
            line = await peer.line()
            assert line.message == m.StatusRequest()
            await peer.say(reply, in_reply_to=line.msg_id)
        assert (await peer.line()).message == m.StatusRequest()
        await watched.does("waiting for the Arbiter: the Arbiter did not answer for 0.2 s")
        await watched.desk.serves(RECORDS[:1])
        await watched.desk.serves(RECORDS, from_seq=3)
        await watched.comes_to(0, "FINISHED")


# --- refusals ------------------------------------------------------------------------------------------


async def test_a_connection_that_is_refused_is_not_made_again(council: Council) -> None:
    async with watching(council) as watched:
        peer = await watched.desk.accept()
        await peer.say(m.Error(code="POLICY_DENIED", message="a certificate of role participant"))
        verdict = await watched.comes_to(1, "REFUSED")
        assert verdict.cause == "the Arbiter refused this connection: a certificate of role participant"


async def test_a_record_that_is_closed_since_the_debate_is_over_says_how_it_ended(council: Council) -> None:
    over = status(debate_state=m.DebateState.STOPPED_BY_CAP, reason="cap_reached")
    async with watching(council) as watched:
        await watched.desk.refuses("INVALID_STATE", "the transcript is closed")
        await watched.desk.reports(over)
        verdict = await watched.comes_to(0, "STOPPED_BY_CAP")
        assert verdict.cause == "the debate has ended: STOPPED_BY_CAP: a cap is reached"


async def test_a_record_that_is_closed_after_an_error_is_no_success(council: Council) -> None:
    async with watching(council) as watched:
        await watched.desk.refuses("INVALID_STATE", "the transcript is closed")
        await watched.desk.reports(status(debate_state=m.DebateState.ERROR, reason="internal_error"))
        await watched.comes_to(1, "ERROR")


async def test_any_other_refusal_is_told_as_it_is(council: Council) -> None:
    async with watching(council) as watched:
        await watched.desk.refuses("INVALID_STATE", "no")
        await watched.desk.reports(paused())
        assert (await watched.comes_to(1, "REFUSED")).cause == "the Arbiter refused watch: no"


async def test_a_refusal_whose_cause_cannot_be_asked_for_is_told_as_it_is(council: Council) -> None:
    async with watching(council) as watched:
        await watched.desk.refuses("INVALID_STATE", "no")
        await (await watched.desk.accept()).cut()
        await watched.comes_to(1, "REFUSED")


# --- what is shown -------------------------------------------------------------------------------------


class Pipe:
    """Standard output that somebody reads."""

    def __init__(self) -> None:
        self.reader, writer = os.pipe()
        self.printer = Printer(writer, "utf-8")
        self.view = JsonView(self.printer.write, now=time.monotonic())
        self.showing = Showing(self.view, self.printer, farewell="Gone.")

    async def show(self, work: Callable[[], Awaitable[Verdict]]) -> int:
        return await self.showing.run(work)

    def text(self) -> str:
        os.close(self.printer.fd)
        with open(self.reader, encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
            return file.read()


async def forever() -> Verdict:
    await anyio.sleep_forever()
    raise AssertionError


@pytest.mark.parametrize("code", [0, 1, 4])
async def test_a_verdict_is_shown_and_its_code_is_the_command_s(code: int) -> None:
    async def work() -> Verdict:
        return Verdict(code, "FINISHED", "it is over")

    pipe = Pipe()
    assert await pipe.show(work) == code
    assert '"reason":"It is over."' in pipe.text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_watch_and_says_so(number: signal.Signals) -> None:
    async def work() -> Verdict:
        os.kill(os.getpid(), number)
        return await forever()

    pipe = Pipe()
    assert await pipe.show(work) == 128 + number
    assert pipe.text() == '{"event":"note","text":"Gone."}\n'


async def test_a_reader_who_leaves_ends_the_watch() -> None:
    pipe = Pipe()
    os.close(pipe.reader)

    async def work() -> Verdict:
        pipe.view.say("hello", time.monotonic())
        return await forever()

    assert await pipe.show(work) == 141
    os.close(pipe.printer.fd)


async def test_a_full_disk_ends_the_watch() -> None:
    printer = Printer(os.open("/dev/full", os.O_WRONLY), "utf-8")
    view = JsonView(printer.write, now=time.monotonic())

    async def work() -> Verdict:
        view.say("hello", time.monotonic())
        return await forever()

    assert await Showing(view, printer, farewell="Gone.").run(work) == 1
    os.close(printer.fd)


async def test_whoever_waits_sees_a_sign_of_life_within_two_seconds() -> None:
    pipe = Pipe()

    async def work() -> Verdict:
        pipe.view.doing("waiting for the Arbiter", time.monotonic())
        await anyio.sleep(2.0)
        return Verdict(4, "LINK_LOST", "gone")

    assert await pipe.show(work) == 4
    assert '{"event":"alive","doing":"waiting for the Arbiter",' in pipe.text()


async def test_a_slow_reader_gets_no_ticks_on_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("council.screen.TICK_SECONDS", 0.005)
    ticks: list[float] = []
    pipe = Pipe()
    monkeypatch.setattr(pipe.view, "tick", ticks.append)

    async def work() -> Verdict:
        pipe.view.say("x" * 200_000, time.monotonic())  # more than a pipe holds
        await anyio.sleep(0.05)
        waiting = len(ticks)
        received = os.read(pipe.reader, 300_000)
        while len(received) < 200_000:
            received += os.read(pipe.reader, 300_000)
        await anyio.sleep(0.05)
        assert waiting == 0
        assert ticks
        return Verdict(0, "FINISHED", "done")

    assert await pipe.show(work) == 0
    assert "FINISHED" in pipe.text()


async def test_a_reader_who_does_not_read_on_holds_nobody_who_signals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("council.screen.FAREWELL_SECONDS", 0.1)
    pipe = Pipe()

    async def work() -> Verdict:
        pipe.view.say("x" * 200_000, time.monotonic())  # more than a pipe holds
        return Verdict(0, "FINISHED", "done")

    async def signals() -> None:
        await anyio.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(signals)
            assert await pipe.show(work) == 130
    os.close(pipe.reader)
    os.close(pipe.printer.fd)


@pytest.mark.parametrize("as_json", [True, False])
async def test_standard_output_is_taken_as_it_is(
    as_json: bool, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printer = open_printer()
    view = open_view(printer, as_json=as_json, no_color=False)

    async def work() -> Verdict:
        return Verdict(0, "FINISHED", "it is over")

    assert await Showing(view, printer, farewell="").run(work) == 0
    told = capfd.readouterr().out
    assert told.startswith('{"event":"end"') if as_json else told == "\nIt is over.\n"


def test_without_a_standard_output_it_goes_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    printer = open_printer()
    assert os.readlink(f"/proc/self/fd/{printer.fd}") == "/dev/null"  # noqa: PTH115 - a link of the kernel's
    open_view(printer, as_json=False, no_color=False).say("hello", 0.0)
    os.close(printer.fd)
