"""A bounded fuzzer of TLS 1.3: hundreds of probes, an alert where TLS asks for one, a good client after each.

The probes are in ``tests/probes_*.py``. Some of every kind run always, all of them with ``-m slow``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle

import probes_flight
import probes_hello
import probes_records
import probes_session
import pytest
from probing import KINDS, Probe
from standing import Standing, standing
from tls13 import Client, Refused

MODULES = (probes_records, probes_hello, probes_flight, probes_session)
"""Each adds its kinds to `KINDS` when it is imported."""

FAST = 6
"""About so many of each kind always run, from all over it."""


@pytest.fixture(scope="module")
def arbiter() -> Iterator[Standing]:
    with standing() as made:
        yield made


def run(arbiter: Standing, probe: Probe, door: str) -> str:
    own = None
    if probe.member:
        own = arbiter.operator if door == "admin" else arbiter.seat
    with Client.connect(arbiter.ports[door], own) as client:
        try:
            probe.act(client)
        except Refused as refused:
            return str(refused)
        except ConnectionError:
            return "reset"
        return client.ending(finish=not probe.waits)


def hold(arbiter: Standing, probes: Iterable[Probe]) -> None:
    """Run ``probes`` on the three doors in turn; after each, somebody good is served."""
    wrong = []
    for probe, door in zip(probes, cycle(("control", "data", "admin")), strict=False):
        place = door if probe.door is None else probe.door
        ending = run(arbiter, probe, place)
        if ending not in probe.endings:
            wrong.append(f"{probe.label}, on {place}: {ending}, not {sorted(probe.endings)}")
        arbiter.serves()
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", KINDS)
def test_some_probes_of_each_kind(arbiter: Standing, name: str) -> None:
    probes = list(KINDS[name]())
    hold(arbiter, probes[:: max(1, len(probes) // FAST)])


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_all_probes(arbiter: Standing, name: str) -> None:
    hold(arbiter, KINDS[name]())


def test_there_are_several_hundred() -> None:
    assert sum(len(list(probes())) for probes in KINDS.values()) > 600
