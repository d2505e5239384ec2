"""The dashboards of Grafana: whole, in their places, and asking the datasource that is provisioned."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from expressions import (
    CONSOLES,
    DASHBOARDS,
    GRAFANA,
    LIBRARIES,
    RULES,
    of_alerts,
    of_consoles,
    of_dashboards,
    of_rules,
    panels,
)

from arbiter.metrics.catalogue import CATALOGUE

if TYPE_CHECKING:
    from pathlib import Path

EGRESS = {"consilium_egress_requests_total"}


def boards() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in DASHBOARDS}


@pytest.mark.parametrize("name", boards())
def test_every_panel_asks_the_datasource_that_is_provisioned(name: str) -> None:
    provisioned = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())
    (source,) = provisioned["datasources"]
    board = boards()[name]
    (variable,) = board["templating"]["list"]
    asked = [panel["datasource"]["uid"] for panel in board["panels"]]
    asked += [target["datasource"]["uid"] for panel in panels(board) for target in panel["targets"]]
    assert {*asked, variable["datasource"]["uid"]} == {source["uid"]}


@pytest.mark.parametrize("name", boards())
def test_panels_have_their_own_ids_titles_and_places(name: str) -> None:
    shown = boards()[name]["panels"]
    assert len({panel["id"] for panel in shown}) == len({panel["title"] for panel in shown}) == len(shown)
    taken: set[tuple[int, int]] = set()
    for panel in shown:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_the_dashboards_are_two_and_lead_to_each_other() -> None:
    uids = {board["uid"] for board in boards().values()}
    assert uids == {"consilium-cost", "consilium-liveness"}
    for board in boards().values():
        (link,) = board["links"]
        assert {link["url"].removeprefix("/d/"), board["uid"]} == uids


def test_nothing_asks_for_a_figure_that_is_not_exported() -> None:
    known = CATALOGUE.keys() | EGRESS | {rule["record"] for rule in RULES if "record" in rule}
    for expression in (*of_rules(), *of_alerts(), *of_consoles(), *of_dashboards()):
        for name in re.findall(r"(?:instance\w*:)?consilium_[a-z_]+(?::\w+)?", expression.text):
            plain = re.sub(r"_(bucket|sum|count)$", "", name)
            assert name in known or plain in known, f"{expression.where} asks for {name}"


def test_every_figure_is_on_a_page_or_in_a_rule() -> None:
    every = (*of_rules(), *of_alerts(), *of_consoles(), *of_dashboards())
    asked = " ".join(expression.text for expression in every)
    assert [name for name in CATALOGUE if name not in asked] == []


@pytest.mark.parametrize("page", [*CONSOLES, *LIBRARIES], ids=lambda path: path.name)
def test_a_console_loads_nothing_from_elsewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert "http://" not in text
    assert "https://" not in text
    assert " src=" not in text
