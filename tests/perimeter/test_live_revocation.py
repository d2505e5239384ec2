"""Revocation at a real Arbiter: who is here is out within a second; a bad list changes nothing."""

from __future__ import annotations

import base64
import contextlib
import os
import re
from typing import TYPE_CHECKING

import anyio
import pytest
from certificates import DAY, clock
from cryptography.hazmat.primitives.serialization import Encoding
from house import Clock, Guest, Home, Wire, house, until
from houses import debate, left, open_house, refusals
from playbook import council
from revocations import LIFE, Pki, intermediate, list_of, pem_of, stranger, wide_root

from arbiter.reload import POLL
from arbiter.revocation import Standing
from consilium import messages as m
from consilium.errors import ChannelError
from consilium.tls import client_context

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from consilium.credentials import Credentials

pytestmark = pytest.mark.anyio

REVOKED = m.Error(code="POLICY_DENIED", message="the certificate of this session has been revoked")
SECOND = 1.0
BUSY = 2.0
"""Seconds that a machine full of other tests may be late."""


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    made = Pki.create(tmp_path / "pki")
    made.publish()
    return made


def hold(home: Home, *names: str) -> dict[str, Credentials]:
    """Have certificates made whose numbers a test wants to know."""
    assert home.pki is not None
    made = {name: home.pki.issue(name) for name in names}
    home.holders |= {name: client_context(own) for name, own in made.items()}
    return made


async def turned_away(home: Home, name: str, told: str) -> None:
    """Whoever connects with the certificate of ``name`` is refused in the handshake, by an alert."""
    wire = await home.connect("control", home.context(name))
    with pytest.raises(ChannelError, match=told):
        await wire.line()


async def warnings(home: Home) -> str:
    operator = await home.operator()
    status = await operator.ask(m.StatusRequest())
    await operator.close()
    return "\n".join(status.warnings)


async def test_a_revoked_seat_is_out_within_a_second_and_the_debate_pauses_and_names_it(
    tmp_path: Path, pki: Pki
) -> None:
    async with debate(tmp_path, ("ada", "bob"), pki=pki) as home:
        own = hold(home, "ada", "bob")
        ada, bob = await home.joined("ada", "bob")
        await ada.turn()
        pki.revoke(own["bob"])
        pki.publish()
        published = anyio.current_time()
        told = [said for said in await bob.control.rest() if isinstance(said, m.Error)]
        assert await bob.data.rest() == []
        assert anyio.current_time() - published < SECOND + BUSY
        assert told == [REVOKED]
        paused = await ada.control.hear(m.DebatePaused)
        assert paused.missing == (bob.granted.participant_id,)
        status = await ada.control.ask(m.StatusRequest())
        assert [(seat.fault, seat.connected) for seat in status.seats] == [
            (None, True),
            ("certificate_revoked", False),
        ]
        await turned_away(home, "bob", "certificate revoked")
        await ada.says(1, "Said all the same.")
        assert await home.serves()


async def test_a_reload_by_the_operator_does_it_at_once(tmp_path: Path, pki: Pki) -> None:
    async with open_house(tmp_path, pki=pki) as home:
        own = hold(home, "ada")
        (ada,) = await home.joined("ada")
        operator = await home.operator()
        pki.revoke(own["ada"])
        pki.publish()
        before = anyio.current_time()
        assert await operator.ask(m.Reload()) == m.AdminOk(operation="RELOAD")
        assert [said for said in await ada.control.rest() if isinstance(said, m.Error)] == [REVOKED]
        assert await ada.data.rest() == []
        assert anyio.current_time() - before < SECOND + BUSY
        assert await left(home) == ["certificate_revoked"]


async def test_a_revoked_peer_that_neither_reads_nor_stops_talking_is_out_and_unheard(
    tmp_path: Path, pki: Pki
) -> None:
    async with debate(tmp_path, ("ada", "bob"), pki=pki, buffer=4096, topic="x" * 8000) as home:
        own = hold(home, "ada")
        ada, _ = home.guest("ada"), home.guest("bob")
        ada.control = await home.connect("control", ada.context, buffer=4096)
        ada.granted = await ada.control.ask(m.Reg(name="ada"))
        await ada.bind()
        (bob,) = await home.joined("bob")
        context = await ada.turn()
        await ada.control.channel.send_many((m.StatusRequest(), None) for _ in range(30))
        pki.revoke(own["ada"])
        pki.publish()
        began = anyio.current_time()
        await until(lambda: home.debate.reason is not None)
        assert anyio.current_time() - began < SECOND + BUSY
        await talks_on(ada, context.turn_id)
        assert "Too late." not in home.transcript.read_text()
        assert (await bob.control.hear(m.DebatePaused)).missing == (ada.granted.participant_id,)


async def talks_on(seat: Guest, turn_id: int) -> None:
    with contextlib.suppress(ChannelError):
        for _ in range(1000):
            await seat.says(turn_id, "Too late.")
            await anyio.sleep(0.01)
        pytest.fail("the connection is still open")


async def test_a_token_of_a_revoked_certificate_is_void(tmp_path: Path, pki: Pki) -> None:
    async with open_house(tmp_path, pki=pki) as home:
        own = hold(home, "ada")
        ada = home.guest("ada")
        await ada.register()
        early = await home.connect("data", ada.context)
        pki.revoke(own["ada"])
        pki.publish()
        await until(lambda: not home.reception.seats)
        assert len(home.reception._tokens) == 0
        assert await refusals(early) == ["POLICY_DENIED"], "nor is a connection heard that was nobody's yet"
        await turned_away(home, "ada", "certificate revoked")


async def test_an_operator_is_revoked_like_anybody(tmp_path: Path, pki: Pki) -> None:
    async with debate(tmp_path, pki=pki) as home:
        gone = pki.issue("gone", "operator")
        wire = await home.connect("admin", client_context(gone))
        assert isinstance(await wire.ask(m.StatusRequest()), m.Status)
        pki.revoke(gone, "operators")
        pki.publish()
        assert await wire.rest() == [REVOKED]
        assert await home.serves()


async def test_revoking_an_authority_ends_everybody_below_it_and_nobody_else(
    tmp_path: Path, pki: Pki
) -> None:
    async with open_house(tmp_path, pki=pki) as home:
        ada, bob = await home.joined("ada", "bob")
        operator = await home.operator()
        pki.revoke_authority("participants")
        pki.publish()
        for seat in (ada, bob):
            assert [said for said in await seat.control.rest() if isinstance(said, m.Error)] == [REVOKED]
        assert isinstance(await operator.ask(m.StatusRequest()), m.Status)
        await turned_away(home, "ada", "certificate revoked")
        pki.revoked.clear()  # The house's good guest must come in again in the end.
        pki.publish()
        await until(lambda: not home.house.reloader.current.configured.revocations.revoked)


async def test_a_certificate_of_the_same_number_by_another_authority_is_not_meant(
    tmp_path: Path, pki: Pki
) -> None:
    async with open_house(tmp_path, pki=pki) as home:
        own = hold(home, "ada")
        (ada,) = await home.joined("ada")
        pki.revoke(own["ada"], "operators")
        pki.publish()
        await until(lambda: home.house.reloader.current.configured.revocations.revoked)
        assert isinstance(await ada.control.ask(m.StatusRequest()), m.Status)


async def test_what_the_authoritys_own_command_writes_is_taken(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        ada, bob = await home.joined("ada", "bob")
        home.authority.revoke("ada")
        assert REVOKED in await ada.control.rest()
        await turned_away(home, "ada", "certificate revoked")
        home.authority.publish(days=1)
        await until(
            lambda: (home.house.reloader.current.configured.revocations.next_update or 0) < clock() + 2 * DAY
        )
        assert isinstance(await bob.control.ask(m.StatusRequest()), m.Status)


# --- lists that are no good ---------------------------------------------------------------------------


def forged(pki: Pki) -> bytes:
    pki.number += 1
    fake = stranger("Test participants").key
    lists = [list_of(pki.root, number=pki.number)]
    lists += [list_of(signer, [1], number=pki.number, key=fake) for signer in pki.signers.values()]
    return b"".join(lists)


def another_version(pki: Pki) -> bytes:
    first, line, rest = pki.lists().partition(b"-----\n")
    body, last, more = rest.partition(b"-----END")
    der = base64.b64decode(body)
    at = der.index(b"\x02\x01\x01") + 2  # the version's value
    return first + line + base64.encodebytes(der[:at] + b"\x07" + der[at + 1 :]) + last + more


BAD_LISTS: dict[str, tuple[Callable[[Pki], bytes], str]] = {
    # what is written over the good list, and what everybody is told
    "nothing": (lambda _: b"", "holds no list of revoked certificates in PEM form"),
    "half of it": (lambda pki: pki.lists()[:300], "holds no list"),
    "noise": (lambda _: os.urandom(2000), "holds no list"),
    "of a version that nobody knows": (another_version, "that cannot be read"),
    "forged": (forged, "has not signed"),
    "another authority's": (lambda _: list_of(wide_root("Elsewhere")), "no list of an authority in ca.pem"),
    "expired": (lambda pki: pki.lists(start=-9000, seconds=60), "that expired 2 hours ago"),
    "of tomorrow": (lambda pki: pki.lists(start=DAY), "is this clock right?"),
    "rolled back": (lambda pki: pki.lists(number=0), r"older \(number 0\) than the one that applies"),
    "rolled back by its date": (
        lambda pki: pki.lists(start=-4000),
        "is 65 minutes older than the one that applies",
    ),
    "without the seats' list": (
        lambda pki: list_of(pki.root, number=99),
        "any more, and would take back what that revokes",
    ),
    "another under the same number": (lambda pki: pki.lists(number=1, start=-59), "under the same number 1"),
}


@pytest.mark.parametrize(("spoil", "told"), BAD_LISTS.values(), ids=BAD_LISTS)
async def test_a_list_that_is_no_good_changes_nothing_and_is_told_everywhere(
    tmp_path: Path, spoil: Callable[[Pki], bytes], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    pki = Pki.create(tmp_path / "pki")
    gone = pki.issue("gone")
    pki.revoke(gone)
    pki.publish()
    async with open_house(tmp_path, pki=pki) as home:
        home.holders["gone"] = client_context(gone)
        (ada,) = await home.joined("ada")
        before = home.house.reloader.current
        pki.publish(spoil(pki))
        await until(lambda: home.house.reloader.refused)
        assert home.house.reloader.current is before
        assert "nothing is reloaded, and what applied still does" in caplog.text
        said = await warnings(home)
        assert "what was read last is refused, and what applied before still does: " in said
        assert re.search(told, said)
        await turned_away(home, "gone", "certificate revoked")
        assert isinstance(await ada.control.ask(m.StatusRequest()), m.Status)
        operator = await home.operator()
        assert (await operator.ask(m.Reload())).code == "INVALID_STATE"
        pki.number = 100
        pki.publish()
        await until(lambda: home.house.reloader.refused is None)
        assert "refused" not in await warnings(home)


async def test_a_list_that_vanishes_still_applies_and_is_missed(tmp_path: Path, pki: Pki) -> None:
    async with open_house(tmp_path, pki=pki) as home:
        pki.file.unlink()
        await until(lambda: home.house.reloader.refused)
        assert "crl.pem is missing" in await warnings(home)
        pki.publish()
        await until(lambda: home.house.reloader.refused is None)


async def test_a_list_that_appears_applies_from_then_on(tmp_path: Path) -> None:
    pki = Pki.create(tmp_path / "pki")
    async with open_house(tmp_path, pki=pki) as home:
        own = hold(home, "ada", "bob")
        ada, bob = await home.joined("ada", "bob")
        assert "there is no list of revoked certificates" in await warnings(home)
        pki.revoke(own["bob"])
        pki.publish()
        assert REVOKED in await bob.control.rest()
        assert "revoked" not in await warnings(home)
        assert isinstance(await ada.control.ask(m.StatusRequest()), m.Status)


async def test_half_written_profiles_do_not_hold_up_a_revocation(tmp_path: Path, pki: Pki) -> None:
    async with open_house(tmp_path, pki=pki) as home:
        own = hold(home, "ada")
        (ada,) = await home.joined("ada")
        (tmp_path / "profiles.yaml").write_text("participant:\n  role: partic")
        pki.revoke(own["ada"])
        pki.publish()
        assert REVOKED in await ada.control.rest()
        assert home.house.reloader.refused is None


async def test_a_file_that_is_touched_is_read_and_leaves_no_record(tmp_path: Path, pki: Pki) -> None:
    async with open_house(tmp_path, pki=pki) as home:
        before = home.house.reloader.current
        os.utime(pki.file)
        await until(lambda: home.house.reloader.current is not before)
        await anyio.sleep(2 * POLL)
        assert not [stored for stored in home.records() if "RELOAD" in str(stored.entry)]


# --- time ---------------------------------------------------------------------------------------------


async def test_a_list_that_expires_lets_nobody_in_and_the_debate_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pki = Pki.create(tmp_path / "pki")
    async with debate(tmp_path, ("ada", "bob"), pki=pki) as home:
        ada, bob = await home.joined("ada", "bob")
        operator = await home.operator()
        await ada.speaks("First.")
        pki.publish(start=-2, seconds=5)
        await until(lambda: home.house.reloader.standing is Standing.AGEING)
        assert "past half of its life" in "".join((await operator.ask(m.StatusRequest())).warnings)
        await until(lambda: home.house.reloader.standing is Standing.EXPIRED)
        await turned_away(
            home, "late", r"refused the connection|certificate expired|bad certificate|certificate unknown"
        )
        await bob.speaks("Second.")
        status = await operator.ask(m.StatusRequest())
        assert status.debate_state == "RUNNING"
        assert "nobody new is let in until there is another" in "".join(status.warnings)
        await until(lambda: "expired" in caplog.text)
        pki.publish(start=-1)
        await until(lambda: home.house.reloader.standing is Standing.CURRENT)
        assert isinstance(await home.operator(), Wire)


async def test_at_half_of_its_life_a_list_is_missed_in_the_log_and_in_status(
    tmp_path: Path, pki: Pki, caplog: pytest.LogCaptureFixture
) -> None:
    wall_clock = Clock(clock())
    async with house(tmp_path, council(("ada",)), pki=pki, wall_clock=wall_clock) as home:
        assert await warnings(home) == "waiting for: ada"
        wall_clock.now += LIFE / 2
        await until(lambda: "past half of its life: it expires in 3 days" in caplog.text)
        assert "past half of its life: it expires in 3 days" in await warnings(home)
        assert caplog.text.count("past half of its life") == 1


async def test_a_list_for_a_part_of_the_authorities_shuts_out_the_other_part_only(tmp_path: Path) -> None:
    pki = Pki.create(tmp_path / "pki")
    everybody = {"root": pki.root, **pki.signers}
    pki.publish(b"".join(list_of(everybody[kind]) for kind in ("root", "operators", "servers")))
    async with debate(tmp_path, pki=pki) as home:
        assert await home.serves()
        await turned_away(home, "ada", "unknown CA|certificate|refused")


async def test_an_intermediate_that_is_renewed_under_its_name_is_another_authority(
    tmp_path: Path, pki: Pki
) -> None:
    async with open_house(tmp_path, pki=pki) as home:
        own = hold(home, "ada")
        (ada,) = await home.joined("ada")
        pki.signers["participants"] = renewed = intermediate(pki.root, "Test participants")
        assert pem_of(renewed)
        old = home.house.reloader.current.configured.revocations
        extra = b"".join(
            each.crl.public_bytes(Encoding.PEM) for each in old.lists if each.issuer == "Test participants"
        )
        pki.revoke(own["ada"])  # on the list of the new one, which did not issue it
        pki.publish(pki.lists() + extra)
        await until(lambda: home.house.reloader.current.configured.revocations.revoked)
        assert isinstance(await ada.control.ask(m.StatusRequest()), m.Status)
        bob = home.guest("bob")
        await bob.join()
