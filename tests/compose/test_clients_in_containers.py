"""`docker compose --profile ... up`: the real clients debate in their containers, behind every fence.

Their providers are one stub, by HTTPS and under the real names: the only way there is through the proxy, and
what the clients trust is what their service says.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker_engine
import pytest
from certificates import SERVER_AUTH, forge_root, issue_odd
from compose_project import CLIENT_IMAGES, VERSION, Project, build_client_images, build_images
from cryptography import x509

from council.conformance.provider.script import KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]

HERE = Path(__file__).parent

ASKS = {
    "claude": ("api.anthropic.com", "/v1/messages"),
    "codex": ("api.openai.com", "/v1/responses"),
    "gemini": ("generativelanguage.googleapis.com", "/v1beta/models/"),
    "opencode": ("api.openai.com", "/v1/chat/completions"),
}
"""Each client of the debate, and whom it asks: the host, and how the path begins."""

SEATS = tuple(ASKS)

KEYS = ("ANTHROPIC_API_KEY_FILE", "CODEX_API_KEY_FILE", "GEMINI_API_KEY_FILE", "OPENAI_API_KEY_FILE")

BASE = "python:3.13-slim"

MOST = {
    "consilium-claude": 440,
    "consilium-codex": 345,
    "consilium-gemini": 260,
    "consilium-opencode": 215,
    "consilium-qwen-code": 330,
    "consilium-kimi": 215,
}
"""Megabytes above the base image: the client's own program is most of it."""


@dataclass
class Story:
    """What was seen of the clients, from the first `up` to the last `down`."""

    fences: dict[str, Any] = field(default_factory=dict)
    containers: dict[str, Any] = field(default_factory=dict)
    configuration: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    """What somebody sees who looks into a seat's container."""
    ended: dict[str, str] = field(default_factory=dict)
    told: str = ""
    asked: list[list[dict[str, Any]]] = field(default_factory=list)
    """What the providers were sent, an `up` each."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    docker_engine.need_engine(BASE)
    build_images()
    build_client_images()
    folder = tmp_path_factory.mktemp("clients")
    profiles = [word for seat in SEATS for word in ("--profile", seat)]
    project = Project.create(
        folder,
        *("-f", str(HERE / "provider.yaml"), *profiles),
        PROVIDER_SUBNET=f"11.22.{os.getpid() % 256}.0/24",
        **dict.fromkeys(KEYS, "./key"),
    )
    (folder / "key").write_text(f"{KEY}\n", encoding="utf-8")
    names = [x509.DNSName(host) for host in sorted({host for host, _ in ASKS.values()})]
    provider = folder / "provider"
    issue_odd(forge_root(), names=names, usages=(SERVER_AUTH,)).write(provider)
    shutil.copy(HERE / "provider_service.py", provider)
    seen = Story()
    try:
        _first_debate(project, seen)
        _second_debate(project, seen)
        yield seen
    finally:
        project.clear()


def _first_debate(project: Project, seen: Story) -> None:
    project("up", "-d", "--no-build", *SEATS, timeout=600)  # not yet the service that begins
    project.until(lambda: all(project.states()[seat] == "healthy" for seat in SEATS))
    for seat in SEATS:
        told = project(
            *("exec", "-T", seat, "consilium", "verify-isolation", "--json", "--egress-host", ASKS[seat][0]),
            check=False,
        )
        seen.fences[seat] = json.loads(told.stdout)
        seen.variables[seat] = project("exec", "-T", seat, "env").stdout
    seen.containers = project.containers()
    seen.configuration = project("config").stdout
    project("up", "-d", "--no-build", timeout=600)
    mortal = ("arbiter", "moderator", "begin", *SEATS)
    project.until(lambda: all(project.states()[service].startswith("exited") for service in mortal))
    seen.ended = {service: project.states()[service] for service in mortal}
    seen.told = project.logs("moderator")
    seen.asked.append(_asked(project))


def _second_debate(project: Project, seen: Story) -> None:
    project("down", "-t", "2")
    project("up", "-d", "--no-build", timeout=600)
    project.until(lambda: all(turns(_asked(project), seat) for seat in SEATS))
    seen.asked.append(_asked(project))


def _asked(project: Project) -> list[dict[str, Any]]:
    return [json.loads(line) for line in project.logs("provider").splitlines()]


def turns(asked: list[dict[str, Any]], seat: str) -> list[dict[str, Any]]:
    """What of it one client's model was asked."""
    host, path = ASKS[seat]
    return [
        each
        for each in asked
        if each["host"] == host and each["path"].startswith(path) and each["prompts"] is not None
    ]


def test_those_who_were_started_debate_and_all_ends_well(story: Story) -> None:
    assert set(story.ended.values()) == {"exited 0"}, story.ended
    assert f"The debate is finished after {2 * len(SEATS)} turns" in story.told
    for seat in SEATS:
        assert f"OPENING: {seat} (" in story.told
        assert f"CLOSING: {seat} (" in story.told
    assert story.told.count("I have seen ") == 2 * len(SEATS)


@pytest.mark.parametrize("seat", SEATS)
def test_every_fence_stands_in_a_live_seat(story: Story, seat: str) -> None:
    attempts = story.fences[seat]["attempts"]
    assert story.fences[seat]["ok"], [attempt for attempt in attempts if attempt["surprise"]]
    assert story.fences[seat]["seat"] is not None
    outcomes = {attempt["attempt"]: attempt["outcome"] for attempt in attempts}
    assert {name for name, outcome in outcomes.items() if outcome == "not tried"} <= {"loopback6"}
    assert outcomes["egress_refused"] == "denied"
    assert outcomes["egress_allowed"] == "allowed"


@pytest.mark.parametrize("seat", SEATS)
def test_every_turn_is_one_request_without_a_tool_through_the_proxy(story: Story, seat: str) -> None:
    asked = turns(story.asked[0], seat)
    assert len(asked) == 2, "and nothing else of the model"
    assert [each["tools"] for each in asked] == [[], []]


@pytest.mark.parametrize("seat", SEATS)
def test_a_chat_outlives_down(story: Story, seat: str) -> None:
    first, second = (turns(asked, seat) for asked in story.asked)
    assert [len(each["prompts"]) for each in (*first, second[0])] == [1, 2, 3]
    assert second[0]["prompts"][:2] == first[1]["prompts"]


def test_a_key_is_in_no_configuration(story: Story) -> None:
    assert KEY not in story.configuration
    for seat in SEATS:
        assert KEY not in json.dumps(story.containers[seat])
        assert "CONSILIUM_HOST=arbiter" in story.variables[seat]
        assert KEY not in story.variables[seat]


def test_a_client_s_service_is_as_tight_as_any_seat_s(story: Story) -> None:
    for seat in SEATS:
        how = story.containers[seat]["HostConfig"]
        assert how["ReadonlyRootfs"]
        assert how["CapDrop"] == ["ALL"]
        added = {name.removeprefix("CAP_") for name in how["CapAdd"]}
        assert added == {"SETUID", "SETGID", "SETPCAP", "NET_ADMIN", "CHOWN", "KILL"}
        assert how["PidsLimit"] <= 200
        assert how["Memory"] <= 2**30
        assert story.containers[seat]["Config"]["Image"].endswith(f":{VERSION}")


@pytest.mark.parametrize("image", CLIENT_IMAGES)
@pytest.mark.usefixtures("story")
def test_an_image_holds_one_client_and_nothing_that_installed_it(image: str) -> None:
    (base,) = json.loads(docker_engine.docker("image", "inspect", BASE).stdout)
    (made,) = json.loads(docker_engine.docker("image", "inspect", f"{image}:{VERSION}").stdout)
    assert (made["Size"] - base["Size"]) / 1e6 <= MOST[image]
    assert made["Config"]["Labels"]["org.opencontainers.image.title"] == image
    how = ("run", "--rm", "--network", "none", "--entrypoint", "sh", f"{image}:{VERSION}")
    said = docker_engine.docker(*how, "-c", "command -v npm npx; ls /build /root/.npm; true")
    assert said.stdout == ""
