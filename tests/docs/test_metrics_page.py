"""docs/metrics.md says of the figures what the catalogue says, and the catalogue keeps to the conventions."""

from __future__ import annotations

import re

import pytest
from metrics_page import PAGE, SECTIONS, shown, table

from arbiter.edge.listener import HandshakeOutcome
from arbiter.metrics.catalogue import CATALOGUE, Figure
from arbiter.metrics.exposition import ISOLATIONS, READINGS, SEAT_STATES
from consilium.records import TurnOutcome
from wrapper.egress.counting import Counts

TEXT = PAGE.read_text(encoding="utf-8")

BASE_UNITS = ("seconds", "bytes", "ratio")
UNBOUNDED = {
    "session",
    "session_id",
    "turn",
    "turn_id",
    "debate",
    "debate_id",
    "peer",
    "address",
    "reason",
    "topic",
}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_shows_the_catalogue(section: str) -> None:
    assert shown(TEXT, section) == table(SECTIONS[section]), "run: python tests/metrics_page.py"


def test_the_page_shows_what_the_egress_proxy_counts() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|.*\| (.+) \|$", shown(TEXT, "egress"), re.MULTILINE)
    counted = {
        (family.name + ("_total" if family.type == "counter" else ""), family.type, family.documentation)
        for family in Counts().registry.collect()
    }
    assert {(name, kind, meaning) for name, kind, _, meaning in rows} == counted


def test_every_figure_is_read_and_none_besides() -> None:
    assert READINGS.keys() == CATALOGUE.keys()


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("`state` of a seat", SEAT_STATES),
        ("`isolation`", ISOLATIONS),
        ("`outcome`", TurnOutcome),
        ("`result` of a handshake", HandshakeOutcome),
    ],
)
def test_the_page_lists_the_values_of_a_label(words: str, values: tuple[str, ...]) -> None:
    (listed,) = re.findall(rf"^\| {re.escape(words)} \| (.+) \|$", TEXT, re.MULTILINE)
    assert listed == ", ".join(f"`{value}`" for value in values)


@pytest.mark.parametrize("figure", CATALOGUE.values(), ids=lambda figure: figure.name)
def test_a_name_says_unit_and_kind_as_is_the_custom(figure: Figure) -> None:
    assert re.fullmatch(r"consilium(_[a-z]+)+", figure.name)
    assert figure.name.endswith("_total") is (figure.kind == "counter")
    named = [unit for unit in BASE_UNITS if unit in figure.name.removesuffix("_total").split("_")]
    assert not named or figure.name.removesuffix("_total").endswith(named[0]), "the unit stands last"
    assert figure.unit in (*named, "tokens", "US dollars", "") if figure.unit else True
    assert not named or figure.unit == named[0]
    assert not UNBOUNDED & {*figure.labels}
    assert figure.meaning.endswith(".")
