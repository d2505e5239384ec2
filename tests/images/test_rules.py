"""The rules of Prometheus: tested by its own tool, and each alert explained where it says."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import docker_engine
import pytest
import yaml
from expressions import IMAGE, PROMETHEUS, ROOT, RULES, alerts

if TYPE_CHECKING:
    pass

RULE_TESTS = sorted((PROMETHEUS / "tests").glob("*.yml"))
OPERATING = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run promtool on files of ``images/prometheus``: the one on PATH, or else the image's."""
    command = [shutil.which("promtool") or ""]
    if not command[0]:
        docker_engine.need_engine(IMAGE)
        there = (
            "--rm",
            "--user",
            "0",
            "--network",
            "none",
            "--volume",
            f"{PROMETHEUS}:/p:ro",
            "--workdir",
            "/p",
        )
        command = ["docker", "run", *there, "--entrypoint", "promtool", IMAGE]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, timeout=50, cwd=PROMETHEUS
    )


@pytest.mark.docker
@pytest.mark.parametrize("file", [f"tests/{path.name}" for path in RULE_TESTS])
def test_the_rules_pass_their_own_tests(file: str) -> None:
    done = promtool("test", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.docker
def test_the_configuration_is_one_and_finds_its_rules() -> None:
    done = promtool("check", "config", "prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 rule files found" in done.stdout


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_every_alert_says_what_it_is_and_what_to_do(alert: dict[str, Any]) -> None:
    said = alert["annotations"]
    assert set(said) == {"summary", "description", "runbook"}
    assert alert["labels"]["severity"] in ("warning", "critical")
    assert said["runbook"] == f"docs/operating.md#{alert['alert'].lower()}"
    section = re.search(rf"^### {alert['alert']}\n\n(.+?)(?=\n#|\Z)", OPERATING, re.MULTILINE | re.DOTALL)
    assert section is not None, "the page explains it under its name"
    assert len(section[1]) > 80


def test_the_page_explains_no_alert_that_is_not() -> None:
    explained = re.findall(r"^### (Consilium\w+)$", OPERATING, re.MULTILINE)
    assert explained == [alert["alert"] for alert in alerts()]


def test_every_alert_and_every_record_is_tested() -> None:
    tests = [yaml.safe_load(path.read_text()) for path in RULE_TESTS]
    cases = [case for each in tests for case in each["tests"]]
    fires = {t["alertname"] for c in cases for t in c.get("alert_rule_test", []) if t.get("exp_alerts")}
    values = {t["expr"] for c in cases for t in c.get("promql_expr_test", [])}
    assert fires == {rule["alert"] for rule in RULES if "alert" in rule}
    assert values == {rule["record"] for rule in RULES if "record" in rule}
