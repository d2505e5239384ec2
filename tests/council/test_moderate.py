"""`consilium moderate`: the course is ordered before anybody speaks, shown, and followed to its end."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from admin_double import Desk, admin_double, stored
from edge_kit import Council as Edge
from house import HOST, Home, house, until
from playbook import council
from statuses import status
from transcripts import SCEPTIC, event, header, joined, turn

from consilium import cli, tls
from consilium import messages as m
from consilium.config import Council
from consilium.health import Report, judge
from consilium.messages import DebateState
from consilium.records import EventName, EventRecord
from council import moderate
from council.access import Access
from council.plan import course

pytestmark = pytest.mark.anyio

PATIENCE = 20


@pytest.fixture(autouse=True)
def _brief_farewells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "CLOSE_SECONDS", 0.05)
    monkeypatch.delenv("CONSILIUM_HEALTH_FILE", raising=False)


class Moderating:
    """`consilium moderate` in this process, whose main thread takes its signals."""

    def __init__(self, held: Council, port: int | str, context: Any, *words: str) -> None:
        argv = ["--bundle", "certs/moderator", "--host", HOST, "--port", str(port), *words]
        self.options: argparse.Namespace = moderate.parser().parse_args(argv)
        self.council = held
        self.access = Access(self.options)
        self.access._context = context
        self.code: int | None = None
        self.text = ""

    async def run(self) -> None:
        self.code = await moderate._moderate(self.council, self.access, self.options)

    async def shows(self, what: str, capfd: pytest.CaptureFixture[str]) -> None:
        def seen() -> bool:
            self.text += capfd.readouterr().out
            return what in " ".join(self.text.split())

        with anyio.fail_after(PATIENCE):
            await until(seen)


@asynccontextmanager
async def moderated(folder: Path, held: Council, *words: str) -> AsyncIterator[tuple[Home, Moderating]]:
    """A house, and who moderates in it."""
    async with house(folder, held) as home, anyio.create_task_group() as tasks:
        work = Moderating(held, home.ports["admin"], home.context("moderator", "operator"), *words)
        tasks.start_soon(work.run)
        yield home, work
        with anyio.fail_after(PATIENCE):
            await until(lambda: work.code is not None)
        tasks.cancel_scope.cancel()


def ordered(home: Home) -> list[Any]:
    """What the operators have ordered, by the record."""
    return [
        (record.entry.data["operation"], record.entry.data.get("round"))
        for record in home.records()
        if isinstance(record.entry, EventRecord) and record.entry.event is EventName.OPERATOR_COMMAND
    ]


COURSE = [("SET_PHASE", 1), ("SET_PHASE", 2), ("TERMINATE", 3)]


async def test_a_whole_debate_takes_its_course(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with moderated(tmp_path, council(["ada", "bob"])) as (home, work):
        await work.shows("Debate ", capfd)
        assert ordered(home) == COURSE  # before there is a seat
        ada, bob = await home.joined("ada", "bob")
        for number in range(3):
            await ada.speaks(f"Ada's word {number}.")
            await bob.speaks(f"Bob's word {number}.")
        with anyio.fail_after(PATIENCE):
            await until(lambda: work.code is not None)
        assert work.code == 0
    said = work.text + capfd.readouterr().out
    for part in ("Topic", "── OPENING", "── REBUTTAL", "── CLOSING", "Bob's word 2."):
        assert part in said
    assert "The debate is finished after 6 turns: the planned rounds are complete." in said
    assert "Turns     6: 6 speech" in said


async def test_where_nobody_is_waited_for_it_begins_once_everybody_is_there(tmp_path: Path) -> None:
    roster = {"mode": "dynamic", "wait_for_required_at_start": False}
    held = council(["ada"], roster=roster, caps={"max_rounds": 1})
    async with moderated(tmp_path, held) as (home, work):
        await until(lambda: ordered(home) == COURSE)
        (ada,) = await home.joined("ada")
        await ada.speaks("Alone.")
    assert work.code == 0
    assert ("RESUME", None) in ordered(home)


async def test_a_pause_is_told_with_what_ends_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("--operator", "docker compose run --rm operator")
    async with moderated(tmp_path, council(["ada"]), *words) as (home, work):
        (ada,) = await home.joined("ada")
        context = await ada.turn()
        operator = await home.operator()
        await operator.ask(m.Pause(reason="tea"))
        await work.shows("docker compose run --rm operator resume", capfd)
        assert "The debate is PAUSED: tea. It waits for its operator" in " ".join(work.text.split())
        assert await operator.ask(m.Resume()) == m.AdminOk(operation="RESUME")
        await ada.says(context.turn_id, "Back.")
        await operator.ask(m.Terminate(reason="enough"))
        await operator.close()
    assert work.code == 0


async def test_a_debate_that_has_begun_is_not_ordered_about(tmp_path: Path) -> None:
    held = council(["ada"])
    async with house(tmp_path, held) as home:
        (ada,) = await home.joined("ada")
        await ada.turn()
        async with anyio.create_task_group() as tasks:
            work = Moderating(held, home.ports["admin"], home.context("moderator", "operator"))
            tasks.start_soon(work.run)
            operator = await home.operator()
            await anyio.sleep(0.2)
            await operator.ask(m.Terminate(reason="enough"))
            with anyio.fail_after(PATIENCE):
                await until(lambda: work.code is not None)
        assert ordered(home) == [("TERMINATE", None)]
        await operator.close()
    assert work.code == 0


# --- an Arbiter that comes late, goes away, and says no ---------------------------------------------------

ENDED = event(EventName.DEBATE_ENDED, outcome="FINISHED", cap=None, reason="done", turn_counter=1)
RECORDS = stored(
    [header(), joined(SCEPTIC), event(EventName.DEBATE_STARTED, phase="OPENING"), turn(1), ENDED]
)


async def takes_course(desk: Desk, held: Council, state: DebateState) -> Any:
    """Accept who arrives, say that the debate is in ``state``, and take what is ordered."""
    peer = await desk.accept()
    line = await peer.line()
    assert line.message == m.StatusRequest()
    await peer.say(status(debate_state=state), in_reply_to=line.msg_id)
    if state is DebateState.WAITING_QUORUM:
        for order in course(held):
            line = await peer.line()
            assert line.message == order
            await peer.say(m.AdminOk(operation=order.type), in_reply_to=line.msg_id)
    return peer


async def sends(peer: Any, records: list[dict[str, Any]], *, from_seq: int = 0) -> None:
    line = await peer.line()
    assert line.message == m.Watch(from_seq=from_seq)
    await peer.say(m.AdminOk(operation="WATCH"), in_reply_to=line.msg_id)
    for record in records[from_seq:]:
        await peer.say(m.Record(record=record), in_reply_to=line.msg_id)


async def test_an_arbiter_may_come_late_and_be_started_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    edge, held = Edge(tmp_path), council(["ada"])
    async with admin_double(edge.server) as desk, anyio.create_task_group() as tasks:
        await desk.closes()
        work = Moderating(held, desk.port, edge.client, "--health-file", str(tmp_path / "health"))
        tasks.start_soon(work.run)
        await work.shows("waiting for the Arbiter", capfd)
        late = Report.read(tmp_path / "health")
        assert late is not None
        assert not judge(late, "moderator", late.at).healthy
        await desk.opens()
        peer = await takes_course(desk, held, DebateState.WAITING_QUORUM)
        await sends(peer, RECORDS[:3])
        await work.shows("── OPENING", capfd)
        await peer.cut()
        await (await desk.serves(RECORDS[:1])).cut()
        peer = await takes_course(desk, held, DebateState.RUNNING)  # its course is in its record
        await sends(peer, RECORDS, from_seq=3)
        with anyio.fail_after(PATIENCE):
            await until(lambda: work.code is not None)
    assert work.code == 0


async def test_a_refusal_ends_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with house(tmp_path, council(["ada"])) as home:
        work = Moderating(home.debate.council, home.ports["admin"], home.context("ada"))
        with anyio.fail_after(PATIENCE):
            await work.run()
    assert work.code == 1
    assert "a certificate of role participant may not use this channel" in " ".join(
        capfd.readouterr().out.split()
    )


async def test_an_arbiter_that_never_comes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(moderate, "PATIENCE", 0.2)
    work = Moderating(council(["ada"]), 1, Edge(tmp_path).client)
    with anyio.fail_after(PATIENCE):
        await work.run()
    assert work.code == 4


def test_it_needs_a_bundle(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["moderate"]) == 2
    assert "--bundle is needed" in capsys.readouterr().err
