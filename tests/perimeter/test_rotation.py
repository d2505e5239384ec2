"""Rotation in a running debate: another authority, another certificate of the Arbiter's; no seat is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from house import Guest, Home, until
from houses import debate, entries, event_names
from revocations import Pki, pem_of

from consilium import messages as m
from consilium.errors import ChannelError
from consilium.records import EventName
from consilium.tls import client_context

if TYPE_CHECKING:
    from pathlib import Path

    from consilium.credentials import Credentials

pytestmark = pytest.mark.anyio

TROUBLE = {EventName.PARTICIPANT_FAULT, EventName.DEBATE_PAUSED, EventName.PARTICIPANT_LEFT}


class Rotation:
    """Two authorities, of the same names, and an Arbiter that goes from the one to the other."""

    def __init__(self, folder: Path) -> None:
        self.old = Pki.create(folder / "old")
        self.new = Pki.create(folder / "new")
        self.both = pem_of(self.old.root) + pem_of(self.new.root)

    def trust(self, anchors: bytes, *lists: Pki) -> None:
        """Put anchors into the Arbiter's folder, and the lists that go with them."""
        arbiter = self.old.folder / "arbiter"
        (arbiter / "ca.pem").write_bytes(anchors)
        self.old.publish(b"".join(pki.lists() for pki in lists))

    def take(self, own: Credentials) -> None:
        """Put another certificate and key into the Arbiter's folder."""
        arbiter = self.old.folder / "arbiter"
        for name in ("key.pem", "cert.pem"):
            (arbiter / name).write_bytes(own.cert.with_name(name).read_bytes())


async def reload(home: Home) -> list[str]:
    operator = await home.operator()
    assert await operator.ask(m.Reload()) == m.AdminOk(operation="RELOAD")
    await operator.close()
    told = entries(home)[-1]
    return list(told.model_dump()["data"]["changed"])


async def round_of(*guests: Guest) -> None:
    for guest in guests:
        await guest.speaks(f"{guest.name} is still here.")


async def test_authority_and_certificate_change_and_nobody_is_dropped(tmp_path: Path) -> None:
    ways = Rotation(tmp_path)
    old, new = ways.old, ways.new
    old.publish()
    roster = {"mode": "dynamic", "required_names": ["ada", "bob"]}
    async with debate(tmp_path, ("ada", "bob"), pki=old, roster=roster) as home:
        both = {name: old.issue(name, anchors_of=ways.both) for name in ("ada", "bob")}
        home.holders |= {name: client_context(own) for name, own in both.items()}
        newer = {name: new.issue(name, anchors_of=ways.both) for name in ("cyn", "dee")}
        home.holders |= {name: client_context(own) for name, own in newer.items()}
        operator = old.issue("operator", "operator", anchors_of=ways.both)
        home.holders["operator"] = client_context(operator)
        ada, bob = await home.joined("ada", "bob")
        await round_of(ada, bob)

        refused = await home.connect("control", home.context("cyn"))
        with pytest.raises(ChannelError, match="unknown CA"):
            await refused.line()

        ways.trust(ways.both, old, new)
        await until(lambda: home.house.reloader.current.configured.anchors == ways.both)
        await round_of(ada, bob)
        (cyn,) = await home.joined("cyn")
        await round_of(ada, bob, cyn)

        ways.take(new.own)
        assert await reload(home) == ["certificate"]
        wire = await home.connect("control", home.context("dee"))
        assert wire.stream.peer_der == new.own.leaf()
        await wire.close()
        await round_of(ada, bob, cyn)

        home.holders["operator"] = client_context(new.issue("operator", "operator"))
        ways.trust(pem_of(new.root), new)
        await until(lambda: home.house.reloader.current.configured.anchors == pem_of(new.root))
        await round_of(ada, bob, cyn)
        late = await home.connect("control", client_context(both["ada"]))
        with pytest.raises(ChannelError, match="unknown CA"):
            await late.line()
        assert await home.serves()
        assert not TROUBLE & set(event_names(entries(home)))


async def test_the_same_without_lists(tmp_path: Path) -> None:
    ways = Rotation(tmp_path)
    async with debate(tmp_path, ("ada",), pki=ways.old) as home:
        home.holders["ada"] = client_context(ways.old.issue("ada", anchors_of=ways.both))
        home.holders["operator"] = client_context(
            ways.old.issue("operator", "operator", anchors_of=ways.both)
        )
        (ada,) = await home.joined("ada")
        (ways.old.folder / "arbiter/ca.pem").write_bytes(ways.both)
        ways.take(ways.new.own)
        assert await reload(home) == ["certificate", "trust anchors"]
        await round_of(ada)
        late = await home.connect("control", client_context(ways.new.issue("late", anchors_of=ways.both)))
        assert late.stream.peer_der == ways.new.own.leaf()
