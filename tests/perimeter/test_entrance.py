"""What a profile and the doors allow at a real Arbiter, and by reload: who may have signed; how many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from house import HOST, Home, Wire, house, until, write_profiles
from houses import OPEN_TABLE, debate, left, open_house, profile, refusals
from playbook import council
from revocations import Pki

from arbiter.edge.limits import Doors
from arbiter.edge.listener import HandshakeOutcome
from consilium import messages as m
from consilium.profile import DEFAULT_PROFILES
from consilium.tls import client_context

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from consilium.profile import CapabilityProfile

pytestmark = pytest.mark.anyio

DOORS = Doors()
FULL = "AT_CAPACITY"


async def reloads(home: Home, profiles: Mapping[str, CapabilityProfile], doors: Doors = DOORS) -> Any:
    operator = await home.operator()
    write_profiles(home.folder / "profiles.yaml", profiles, doors)
    reply = await operator.ask(m.Reload())
    await operator.close()
    return reply


def signed_by(**issuers: str) -> dict[str, CapabilityProfile]:
    return {
        name: DEFAULT_PROFILES[name].model_copy(update={"issuer": issuer}) for name, issuer in issuers.items()
    }


SIGNED = signed_by(participant="Test participants", operator="Test operators")


async def refused(wire: Wire, code: str = "POLICY_DENIED") -> str:
    (error,) = await wire.rest()
    assert error.code == code
    return str(error.message)


async def test_an_authority_for_seats_makes_no_operator_and_none_for_operators_a_seat(tmp_path: Path) -> None:
    pki = Pki.create(tmp_path / "pki")
    pki.publish()
    async with open_house(tmp_path, pki=pki, profiles=SIGNED) as home:
        await home.joined("ada")
        for door, name, kind, by in (
            ("admin", "climber", "operator", "participants"),
            ("control", "walker", "participant", "operators"),
            ("data", "runner", "participant", "operators"),
        ):
            context = client_context(pki.issue(name, kind, by=by))
            told = await refused(await home.connect(door, context))
            assert told == (
                f"another authority signed the certificate than the one that profile {kind} asks for"
            )
        assert await home.serves()


async def test_who_may_have_signed_is_judged_again_by_a_reload(tmp_path: Path) -> None:
    pki = Pki.create(tmp_path / "pki")
    pki.publish()
    async with debate(tmp_path, ("ada", "bob"), pki=pki, roster={"mode": "dynamic"}) as home:
        ada, climber = home.guest("ada"), client_context(pki.issue("climber", "operator", by="participants"))
        await ada.join()
        wire = await home.connect("admin", climber)
        assert isinstance(await wire.ask(m.StatusRequest()), m.Status)
        assert isinstance(await reloads(home, SIGNED), m.AdminOk)
        assert (await refused(wire)).startswith("another authority signed")
        assert isinstance(await ada.control.ask(m.StatusRequest()), m.Status)
        assert isinstance(
            await reloads(home, signed_by(participant="Others", operator="Test operators")), m.AdminOk
        )
        assert [said.code for said in await ada.control.rest() if isinstance(said, m.Error)] == [
            "POLICY_DENIED"
        ]
        (reason,) = await left(home)
        assert reason.startswith("no longer admitted: another authority signed")


async def test_a_certificate_has_so_many_seats_and_a_lost_one_is_free_again(tmp_path: Path) -> None:
    async with open_house(tmp_path, profiles=profile(max_seats=2)) as home:
        ada, bob, cyn = (home.guest(name, holder="ada") for name in ("ada", "bob", "cyn"))
        await ada.join()
        await bob.join()
        third = await cyn.arrive()
        await third.say(m.Reg(name="cyn"))
        assert await refused(third, FULL) == "this certificate has 2 seats, and may have no more"
        twice = await home.connect("control", ada.context)
        await twice.say(m.Reg(name="ada"))
        assert await refusals(twice) == ["DUPLICATE_DISPLAY_NAME"]
        await home.guest("dee").join()
        await bob.control.cut()
        await until(lambda: len(home.reception.seats) == 2)
        await cyn.join()
        assert isinstance(await reloads(home, profile(max_seats=3)), m.AdminOk)
        await bob.join()


async def test_a_certificate_has_so_many_connections_and_others_have_theirs(tmp_path: Path) -> None:
    async with open_house(tmp_path, profiles=profile(max_connections=3)) as home:
        (ada,) = await home.joined("ada")
        third = await home.connect("data", ada.context)
        for door in ("control", "data"):
            fourth = await home.connect(door, ada.context)
            told = "this certificate has 3 connections, and may have no more"
            assert await refused(fourth, FULL) == told
        await home.joined("bob")
        await third.cut()
        await until(lambda: len(home.reception._connections) == 4)
        again = await home.connect("control", ada.context)
        await again.say(m.Reg(name="ada_2"))
        assert isinstance(await again.hear(m.RegOk), m.RegOk)
        assert isinstance(await ada.control.ask(m.StatusRequest()), m.Status)


# --- the doors ----------------------------------------------------------------------------------------


async def silence(home: Home) -> float:
    """How long a new connection may say nothing."""
    wire = await home.connect("control", home.context("silent"))
    began = anyio.current_time()
    assert await refusals(wire) == ["TIMEOUT"]
    return anyio.current_time() - began


async def test_a_limit_that_is_reloaded_holds_for_the_next_connection(tmp_path: Path) -> None:
    async with open_house(tmp_path, doors=Doors(first_message_seconds=600)) as home:
        patient = await home.connect("control", home.context("patient"))
        assert isinstance(await reloads(home, DEFAULT_PROFILES, Doors(first_message_seconds=0.2)), m.AdminOk)
        assert 0.15 < await silence(home) < 10
        assert await patient.hears_nothing(0.3)
        granted = await patient.ask(m.Reg(name="patient"))
        assert isinstance(granted, m.RegOk)


async def test_handshakes_are_limited_by_address_and_in_all_and_by_reload(tmp_path: Path) -> None:
    few = Doors(handshakes=3, handshakes_per_address=2, handshake_seconds=600)
    async with open_house(tmp_path, doors=few) as home:
        port = home.ports["control"]
        assert isinstance(port, int)

        async def half_open(local: str) -> Any:
            return await anyio.connect_tcp(HOST, port, local_host=local)

        held = [await half_open("127.0.0.2"), await half_open("127.0.0.2")]
        for local, told in (
            ("127.0.0.2", "2 handshakes from 127.0.0.2 are under way"),
            ("127.0.0.4", "3 handsh"),
        ):
            if local == "127.0.0.4":
                held.append(await half_open("127.0.0.3"))
            home.reports.clear()
            turned_away = await half_open(local)
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await turned_away.receive()
            await turned_away.aclose()
            outcome, detail = home.reports[0]
            assert (outcome, detail[: len(told)]) == (HandshakeOutcome.OVER_LIMIT, told)
        assert await home.serves(), "the admin port has places of its own"
        more = few.model_copy(update={"handshakes": 4})
        assert isinstance(await reloads(home, DEFAULT_PROFILES, more), m.AdminOk)
        await home.guest("ada").join()
        for raw in held:
            await raw.aclose()


async def test_the_time_for_a_handshake_is_read_again(tmp_path: Path) -> None:
    async with open_house(tmp_path, doors=Doors(handshake_seconds=600)) as home:
        port = home.ports["control"]
        assert isinstance(port, int)
        assert isinstance(await reloads(home, DEFAULT_PROFILES, Doors(handshake_seconds=0.2)), m.AdminOk)
        async with await anyio.connect_tcp(HOST, port) as raw:
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)), anyio.fail_after(20):
                await raw.receive()
        assert (HandshakeOutcome.TIMED_OUT, "no handshake within 0.2 seconds") in home.reports


@pytest.mark.parametrize("intervals", [2, 5])
async def test_how_long_a_peer_may_be_silent_is_for_the_doors_to_say(tmp_path: Path, intervals: int) -> None:
    rules = council((), roster=OPEN_TABLE, limits={"heartbeat_seconds": 0.2})
    async with house(tmp_path, rules, doors=Doors(silent_intervals=intervals)) as home:
        ada = home.guest("ada")
        await ada.join()
        ada.control.mute = True
        began = anyio.current_time()
        await ada.control.rest()
        assert (intervals - 1) * 0.2 <= anyio.current_time() - began
        assert await left(home) == ["heartbeat_missed"]


async def test_how_long_a_seat_may_be_silent_is_read_again_for_the_next(tmp_path: Path) -> None:
    rules = council((), roster=OPEN_TABLE, limits={"heartbeat_seconds": 0.2})
    async with house(tmp_path, rules, doors=Doors(silent_intervals=100)) as home:
        ada = home.guest("ada")
        await ada.join()
        assert isinstance(await reloads(home, DEFAULT_PROFILES, Doors(silent_intervals=2)), m.AdminOk)
        bob = home.guest("bob")
        await bob.join()
        ada.control.mute = bob.control.mute = True
        with anyio.fail_after(15):  # ada's hundred beats would take twenty
            await bob.control.rest()
        assert await left(home) == ["heartbeat_missed"]
        assert len(home.reception.seats) == 1


async def test_how_long_a_write_may_take_is_read_again_for_the_next(tmp_path: Path) -> None:
    rules = council((), roster=OPEN_TABLE, topic="x" * 8000)
    async with house(tmp_path, rules, buffer=4096, doors=Doors(write_seconds=600)) as home:
        assert isinstance(await reloads(home, DEFAULT_PROFILES, Doors(write_seconds=0.3)), m.AdminOk)
        deaf = home.guest("bob")
        deaf.control = await home.connect("control", deaf.context, buffer=4096)
        deaf.granted = await deaf.control.ask(m.Reg(name="bob"))
        await deaf.bind()
        await deaf.control.channel.send_many((m.StatusRequest(), None) for _ in range(30))
        assert await left(home) == ["the peer did not read for 0.3 s"]
