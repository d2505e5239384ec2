"""`wrapper.isolation.fence`: the rules for the packets of a seat's client, as text."""

from __future__ import annotations

import pytest

from wrapper.isolation.fence import NamedPlace, Place, named_places, rules


def test_without_a_place_everything_is_refused() -> None:
    text = rules(10002, [])
    assert "accept\n" not in text.replace("policy accept;\n", "")
    assert "meta skuid 10002 goto client" in text
    assert "reject with icmpx type admin-prohibited" in text


def test_each_place_is_one_rule_before_the_refusal_and_said_once() -> None:
    places = [Place("172.18.0.3", 8888), Place("fd00::2", 8888), Place("172.18.0.3", 8888)]
    lines = [line.strip() for line in rules(10002, places).splitlines()]
    accepted = ["ip daddr 172.18.0.3 tcp dport 8888 accept", "ip6 daddr fd00::2 tcp dport 8888 accept"]
    assert [line for line in lines if line.endswith(" accept")] == accepted
    assert lines.index(accepted[-1]) < lines.index("counter reject with icmpx type admin-prohibited")


def test_the_rules_replace_those_that_were_there() -> None:
    assert rules(10002, []).startswith("table inet consilium\ndelete table inet consilium\n")


@pytest.mark.parametrize("address", ["egress", "10.0.0.0/8", "0.0.0.0; accept", ""])
def test_only_an_address_becomes_part_of_a_rule(address: str) -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        rules(10002, [Place(address, 8888)])


def test_places_are_read_with_spaces_and_in_brackets() -> None:
    assert named_places(" egress:8888, [fd00::2]:8888 ,,model:8888 ") == (
        NamedPlace("egress", 8888),
        NamedPlace("fd00::2", 8888),
        NamedPlace("model", 8888),
    )
    assert named_places("") == ()


@pytest.mark.parametrize(
    "entry", ["egress", ":8888", "egress:", "egress:0", "egress:65536", "egress:x", "a:²"]
)
def test_what_is_no_place_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match="is not a host and a port") as refused:
        named_places(f"model:8888,{entry}")
    assert repr(entry) in str(refused.value)
