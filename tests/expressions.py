"""Every PromQL expression that is shipped, found in the files that ship it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PROMETHEUS = ROOT / "images" / "prometheus"
GRAFANA = ROOT / "images" / "grafana"
IMAGE = "prom/prometheus:v3"

RULES_FILE = PROMETHEUS / "rules" / "consilium.rules.yml"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(RULES_FILE.read_text())["groups"] for rule in group["rules"]
]
CONSOLES = sorted((PROMETHEUS / "consoles").glob("*.html"))
LIBRARIES = sorted((PROMETHEUS / "console_libraries").glob("*.lib"))
DASHBOARDS = sorted((GRAFANA / "dashboards").glob("*.json"))

ANY = ".+"
"""What stands for the chosen Arbiter: all of them."""


@dataclass(frozen=True)
class Expression:
    """An expression and where it stands."""

    where: str
    text: str


def alerts() -> list[dict[str, Any]]:
    """The alerting rules."""
    return [rule for rule in RULES if "alert" in rule]


def of_rules() -> Iterator[Expression]:
    """What the recording rules record, and the name under which it is to be found."""
    for rule in RULES:
        if "record" in rule:
            yield Expression(f"rule {rule['record']}", rule["expr"])
            yield Expression(f"record {rule['record']}", rule["record"])


def of_alerts() -> Iterator[Expression]:
    """Alerts are empty in health: what each compares has to be there all the same."""
    for rule in alerts():
        for part in parts(rule["expr"]):
            yield Expression(f"alert {rule['alert']}", part)


def parts(expression: str) -> list[str]:
    """The operands of an alert: its expression without set operators, comparisons and groups around them.

    ``(a > 90 or b == 0) unless on (x) (c == 1)`` has the parts a, b and c.
    """
    text = " ".join(expression.split())
    operands = re.split(r"\b(?:or|and|unless)\b(?: (?:on|ignoring) \([^)]*\))?", text)
    found = [re.sub(r"\s*(?:[<>]=?|==|!=)\s*[\d.]+", "", operand).strip() for operand in operands]
    return [_without_spare_parentheses(operand) for operand in found]


def _without_spare_parentheses(operand: str) -> str:
    while operand.count("(") > operand.count(")"):
        operand = operand[1:].strip()
    while operand.count(")") > operand.count("("):
        operand = operand[:-1].strip()
    return operand


def of_consoles() -> Iterator[Expression]:
    """What the console pages ask: in their template, and later in their charts."""
    for path in (*CONSOLES, *LIBRARIES):
        text = path.read_text(encoding="utf-8")
        asked = re.findall(r"query \(printf `([^`]+)`", text) + re.findall(r"query `([^`]+)`", text)
        for expression in asked:
            yield Expression(path.name, expression.replace("%s", ANY))
        for expression in re.findall(r"data-expr='([^']+)'", text):
            yield Expression(path.name, re.sub(r"\{\{[^}]*\}\}", ANY, expression))


def of_dashboards() -> Iterator[Expression]:
    """What the panels of Grafana ask, and what fills its list of Arbiters."""
    for path in DASHBOARDS:
        board = json.loads(path.read_text())
        for panel in panels(board):
            for target in panel["targets"]:
                where = f"{path.name}, {panel['title']}"
                yield Expression(where, target["expr"].replace("$instance", ANY))


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    """The panels of a dashboard that show something."""
    return [panel for panel in board["panels"] if panel["type"] not in ("row", "text")]
