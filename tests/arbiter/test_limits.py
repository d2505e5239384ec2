"""`arbiter.edge.limits`: counting, with made-up times and addresses."""

from __future__ import annotations

import pytest

from arbiter.edge.limits import Doors, HandshakeGate, neighbourhood


def test_the_gate_counts_in_all() -> None:
    gate, doors = HandshakeGate(), Doors(handshakes=2, handshakes_per_address=2)
    assert gate.enter("10.0.0.1", doors) is None
    assert gate.enter("10.0.0.2", doors) is None
    assert gate.enter("10.0.0.3", doors) == "2 handshakes are under way already"
    assert gate.inside == 2
    gate.leave("10.0.0.1")
    assert gate.enter("10.0.0.3", doors) is None


def test_one_address_cannot_take_everybodys_places() -> None:
    gate, doors = HandshakeGate(), Doors(handshakes=10, handshakes_per_address=2)
    assert [gate.enter("10.0.0.1", doors) for _ in range(2)] == [None, None]
    assert gate.enter("10.0.0.1", doors) == "2 handshakes from 10.0.0.1 are under way already"
    assert gate.enter("10.0.0.2", doors) is None
    gate.leave("10.0.0.1")
    assert gate.enter("10.0.0.1", doors) is None


def test_a_refused_entry_takes_no_place_and_an_empty_gate_remembers_nobody() -> None:
    gate, doors = HandshakeGate(), Doors(handshakes=1, handshakes_per_address=1)
    assert gate.enter("10.0.0.1", doors) is None
    assert gate.enter("10.0.0.2", doors) is not None
    gate.leave("10.0.0.1")
    assert gate.inside == 0
    assert not gate._inside


@pytest.mark.parametrize(
    ("address", "party"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix", "unix"),
        ("", ""),
    ],
)
def test_a_party_is_an_ipv4_address_or_an_ipv6_network(address: str, party: str) -> None:
    assert neighbourhood(address) == party
