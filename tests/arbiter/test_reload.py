"""A reload at a real Arbiter: what applies afterwards, and to whom; what stays when it fails; the record."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from certificates import clock
from cryptography import x509
from house import Home, Wire, until
from houses import debate, left, open_house

from arbiter.edge.listener import HandshakeOutcome
from arbiter.reload import Configuration, Reloader, Sources
from consilium import messages as m
from consilium.certificate import load
from consilium.credentials import Credentials
from consilium.errors import ChannelError, TranscriptError, UserError
from consilium.messages import DebateState
from consilium.records import EventName, EventRecord
from consilium.tls import client_context
from consilium.transcript import read_head
from pki.authority import Authority

if TYPE_CHECKING:
    from pathlib import Path

    from arbiter.debate.events import Reloaded
    from consilium.headseal import HeadSigner

pytestmark = pytest.mark.anyio

OPERATOR = "operator:\n  role: operator\n  may_ask_status: true\n"
SEAT = "participant:\n  role: participant\n  may_ask_status: true\n"
ALL = OPERATOR + SEAT + '  names: ["*"]\n'
DONE = m.AdminOk(operation="RELOAD")


def write(home: Home, text: str) -> None:
    (home.folder / "profiles.yaml").write_text(text)


def renew(home: Home, authority: Authority | None = None) -> Credentials:
    """Put other credentials in the Arbiter's folder."""
    issuer = authority or Authority.create(home.folder / "renewal")
    new = issuer.issue("renewed", profile="arbiter", dns=["localhost"])
    own = home.folder / "certs" / "arbiter"
    # The lists of another authority go with it; those of the same are not to be touched: that is a reload.
    for name in ("key.pem", "cert.pem", "ca.pem", *(("crl.pem",) if authority is None else ())):
        shutil.copyfile(new.cert.with_name(name), own / name)
    return Credentials.load(own)


async def reloads(home: Home) -> Any:
    """Reload, as an operator; return what the record says changed."""
    operator = await home.operator()
    assert await operator.ask(m.Reload()) == DONE
    await operator.close()
    return recorded(home)[-1]["changed"]


def recorded(home: Home) -> list[Any]:
    found = []
    for stored in home.records():
        entry = stored.entry
        if isinstance(entry, EventRecord) and entry.event is EventName.OPERATOR_COMMAND:
            assert (entry.data["operation"], entry.participant_id) == ("RELOAD", None)
            found.append(entry.data)
    return found


async def test_a_reload_that_changes_nothing_ends_nobody_and_is_on_the_record(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        (ada,) = await home.joined("ada")
        assert await reloads(home) == []
        assert recorded(home) == [{"operation": "RELOAD", "by": "operator", "changed": []}]
        assert isinstance(await ada.control.ask(m.StatusRequest()), m.Status)


async def test_newcomers_meet_the_new_certificate_and_who_is_here_stays(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        (ada,) = await home.joined("ada")
        renewed = renew(home, home.authority)
        assert await reloads(home) == ["certificate"]
        wire = await home.connect("control", home.context("bob"))
        assert wire.stream.peer_der == renewed.leaf()
        assert isinstance(await ada.control.ask(m.StatusRequest()), m.Status)


async def test_the_head_of_the_record_is_signed_with_the_new_key_at_once(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        renewed = renew(home, home.authority)
        await reloads(home)
        await until(lambda: signer(home) == renewed.leaf())
        await until(lambda: vouched(home) == len(home.records()) == 2)


def vouched(home: Home) -> int:
    head = read_head(home.transcript)
    assert head is not None
    return head.count


def signer(home: Home) -> bytes:
    head = read_head(home.transcript)
    assert head is not None
    (first, *_) = x509.load_pem_x509_certificates(head.certificate.encode())
    found = Credentials.load(home.folder / "certs" / "arbiter").leaf()
    return found if load(found) == first else b""


async def test_certificates_of_an_authority_that_is_trusted_no_more_are_refused(tmp_path: Path) -> None:
    async with debate(tmp_path) as home:
        old = home.context("ada")
        operator = await home.operator()
        renew(home)
        assert await operator.ask(m.Reload()) == DONE
        assert recorded(home)[-1]["changed"] == ["certificate", "trust anchors", "revoked certificates"]
        with pytest.raises(ChannelError):
            await home.connect("control", old)
        await until(lambda: HandshakeOutcome.FAILED in [outcome for outcome, _ in home.reports])
        other = Authority.open(home.folder / "renewal").issue("ada", profile="participant")
        wire = await home.connect("control", client_context(other))
        assert isinstance(await wire.ask(m.Reg(name="ada")), m.RegOk)


GONE: dict[str, tuple[str, str]] = {
    "the profile is gone": (OPERATOR, "no capability profile is called participant here"),
    "the name is not allowed any more": (OPERATOR + SEAT + "  names: [bob]\n", "may not use the name ada"),
    "the role is another": (
        OPERATOR + "participant:\n  role: operator\n",
        "a certificate of role operator may not use this channel",
    ),
    "the certificate lives too long": (ALL + "  max_lifetime_days: 1\n", "profile participant accepts 1"),
}


@pytest.mark.parametrize(("profiles", "told"), GONE.values(), ids=GONE)
async def test_a_session_that_is_not_admitted_any_more_is_told_and_ends(
    tmp_path: Path, profiles: str, told: str
) -> None:
    async with debate(tmp_path, ("ada",), roster={"mode": "dynamic"}) as home:
        (ada,) = await home.joined("ada")
        home.context("operator", "operator")
        write(home, profiles)
        before = anyio.current_time()
        assert await reloads(home) == ["profile operator", "profile participant"]
        (error,) = [said for said in await ada.control.rest() if isinstance(said, m.Error)]
        assert error.code == "POLICY_DENIED"
        assert told in error.message
        assert not [said for said in await ada.data.rest() if isinstance(said, m.Context)]
        assert anyio.current_time() - before < 3
        (reason,) = await left(home)
        assert reason.startswith("no longer admitted: ")
        again = await home.connect("control", ada.context)
        await again.say(m.Reg(name="ada"))
        assert [said.code for said in await again.rest()] == ["POLICY_DENIED"]


async def test_a_connection_that_is_nobodys_yet_is_judged_again_too(tmp_path: Path) -> None:
    async with debate(tmp_path) as home:
        early = await home.guest("ada").arrive()
        write(home, OPERATOR)
        await reloads(home)
        (error,) = await early.rest()
        assert error.code == "POLICY_DENIED"


async def test_an_operator_can_lose_the_right_to_be_one(tmp_path: Path) -> None:
    async with debate(tmp_path) as home:
        operator, other = await home.operator(), await home.operator()
        write(home, "auditor:\n  role: operator\n")
        await operator.say(m.Reload())
        heard = await operator.rest()
        assert [said.code for said in heard if isinstance(said, m.Error)] == ["POLICY_DENIED"]
        assert [said.code for said in await other.rest()] == ["POLICY_DENIED"]
        await until(lambda: not home.reception.operators)


async def test_a_token_of_a_session_that_is_ended_is_void(tmp_path: Path) -> None:
    async with debate(tmp_path) as home:
        ada, bob = home.guest("ada"), home.guest("bob")
        await ada.register()
        write(home, OPERATOR + SEAT + "  names: [bob]\n")
        await reloads(home)
        data = await home.connect("data", ada.context)
        await data.say(ada.hello())
        assert [said.code for said in await data.rest()] == ["TOKEN_REFUSED"]
        await bob.join()


async def test_new_limits_hold_for_who_is_here(tmp_path: Path) -> None:
    async with debate(tmp_path, roster={"mode": "dynamic"}) as home:
        ada, bob = await home.joined("ada", "bob")
        write(home, ALL + "  max_message_bytes: 1024\n  burst: 2\n  messages_per_second: 0.01\n")
        await reloads(home)
        await ada.control.say(m.Unreg(reason="x" * 1100))
        assert [said.code for said in await ada.control.rest() if isinstance(said, m.Error)] == ["TOO_LARGE"]
        for _ in range(3):
            await bob.control.say(m.StatusRequest())
        heard = await bob.control.rest()
        assert [said.code for said in heard if isinstance(said, m.Error)] == ["RATE_LIMITED"]


async def test_what_a_profile_grants_anew_holds_for_who_is_here(tmp_path: Path) -> None:
    async with debate(tmp_path, ("ada",), roster={"mode": "dynamic"}) as home:
        (ada,) = await home.joined("ada")
        write(home, OPERATOR + 'participant:\n  role: participant\n  names: ["*"]\n  may_be_required: true\n')
        await reloads(home)
        updated = await ada.control.ask(m.StateUpdate(required=True))
        assert updated == m.StateOk(
            required=True, disconnect_policy=m.DisconnectPolicy.KEEP_ALIVE, capped_by_profile=False
        )
        refused = await ada.control.ask(m.StatusRequest())
        assert refused.code == "POLICY_DENIED"


def spoil_key(home: Home) -> None:
    other = home.authority.issue("other", profile="arbiter", dns=["localhost"])
    shutil.copyfile(other.key, home.folder / "certs/arbiter/key.pem")


def expire(home: Home) -> None:
    there = home.folder / "certs/arbiter"
    shutil.copyfile(home.authority.issue("eve", profile="participant").cert, there / "cert.pem")


BAD: dict[str, tuple[Any, str]] = {
    # what is wrong with the new, and what the operator is told
    "a key of another certificate": (spoil_key, "cannot be used"),
    "a seat's certificate": (expire, "is not an Arbiter's certificate"),
    "no anchors": (lambda home: (home.folder / "certs/arbiter/ca.pem").unlink(), "ca.pem is missing"),
    "bad profiles": (lambda home: write(home, OPERATOR + "  brust: 1\n"), "did you mean burst?"),
}


@pytest.mark.parametrize(("spoil", "told"), BAD.values(), ids=BAD)
async def test_what_cannot_be_used_changes_nothing_and_the_operator_is_told_why(
    tmp_path: Path, spoil: Any, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_house(tmp_path) as home:
        (ada,) = await home.joined("ada")
        before = home.house.reloader.current
        operator = await home.operator()
        spoil(home)
        refused = await operator.ask(m.Reload())
        assert refused.code == "INVALID_STATE"
        assert refused.message.startswith("nothing is reloaded: ")
        assert told in refused.message
        assert "nothing is reloaded, and what applied still does: " in caplog.text
        assert home.house.reloader.current is before
        assert recorded(home) == []
        assert isinstance(await ada.control.ask(m.StatusRequest()), m.Status)
        assert isinstance(await operator.ask(m.StatusRequest()), m.Status)


async def test_good_certificates_are_not_taken_beside_bad_profiles(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        before = Credentials.load(home.folder / "certs/arbiter").leaf()
        renew(home, home.authority)
        write(home, "nonsense\n")
        operator = await home.operator()
        assert isinstance(await operator.ask(m.Reload()), m.Error)
        wire = await home.connect("control", home.context("bob"))
        assert wire.stream.peer_der == before


async def test_a_reload_after_the_outcome_is_answered_and_not_recorded(tmp_path: Path) -> None:
    async with debate(tmp_path, grace=5) as home:
        operator, other = await home.operator(), await home.operator()
        ada = home.guest("ada")
        await ada.register()
        await operator.ask(m.Terminate())
        renew(home, home.authority)
        assert await other.ask(m.Reload()) == DONE
        await ada.control.cut()
        assert await home.outcome() is DebateState.FINISHED
        told = [stored.entry for stored in home.records()]
        assert isinstance(told[-1], EventRecord)
        assert told[-1].event is EventName.DEBATE_ENDED


async def test_a_signal_reloads_without_an_operator(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        write(home, ALL)
        await home.house.reloader()
        await until(lambda: recorded(home))
        assert recorded(home)[0]["by"] == "signal"
        assert recorded(home)[0]["changed"] == ["profile operator", "profile participant"]


async def test_reloads_come_one_after_another(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        operators: list[Wire] = [await home.operator() for _ in range(4)]
        write(home, ALL)
        for operator in operators:
            await operator.say(m.Reload())
        assert [(await operator.line()).message for operator in operators] == [DONE] * 4
        changes = [data["changed"] for data in recorded(home)]
        assert changes == [["profile operator", "profile participant"], [], [], []]


async def test_a_head_that_cannot_be_signed_anew_undoes_no_reload(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority.create(tmp_path / "certs")
    made = [authority.issue(f"a{n}", profile="arbiter", dns=["localhost"]) for n in (1, 2)]
    first, second = [Configuration.read(Sources(own.cert.parent), clock()) for own in made]
    heard: list[Reloaded] = []

    async def tell(event: Reloaded) -> None:
        heard.append(event)

    async def refuse(_: HeadSigner) -> None:
        raise TranscriptError("disk full")

    reloader = Reloader(first, Sources(made[1].cert.parent), tell, refuse, clock)
    await reloader("operator", "m-1")
    assert reloader.current.configured == second.configured
    assert [(event.session, event.changed) for event in heard] == [("operator", ("certificate",))]
    assert "is not signed anew yet: disk full" in caplog.text


async def test_a_certificate_that_does_not_hold_now_is_refused(tmp_path: Path) -> None:
    own = Authority.create(tmp_path / "certs").issue("arbiter", profile="arbiter", dns=["localhost"])
    with pytest.raises(UserError, match=r"cert\.pem cannot be used: expired"):
        Configuration.read(Sources(own.cert.parent), clock() + 91 * 86400)


async def test_anchors_that_vanish_while_they_are_read_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Authority.create(tmp_path / "certs").issue("arbiter", profile="arbiter", dns=["localhost"])
    late = Credentials(own.cert, own.key, tmp_path / "gone.pem")
    monkeypatch.setattr(Credentials, "load", lambda _: late)
    with pytest.raises(UserError, match=r"gone\.pem cannot be read: No such file"):
        Configuration.read(Sources(own.cert.parent), clock())
