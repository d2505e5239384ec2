"""The images: what is in them, what is not, and how large they may be."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import docker_engine
import pytest
import yaml
from compose_project import IMAGES, VERSION, build_images

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]

BASE = "python:3.13-slim"

MOST = {
    "consilium-arbiter": 130,
    "consilium-egress": 130,
    "consilium-console": 130,
    "consilium-llm": 130,
    "consilium-model": 300,
}
"""Megabytes above the base image."""

ROOMS = {
    "consilium-arbiter": {"consilium", "arbiter"},
    "consilium-egress": {"consilium", "wrapper"},
    "consilium-console": {"consilium", "wrapper", "pki", "council"},
    "consilium-model": {"consilium", "council"},
    "consilium-llm": {"consilium", "wrapper"},
}

FIND = """
from importlib.util import find_spec
print(*[room for room in ("consilium", "arbiter", "wrapper", "pki", "council", "tests") if find_spec(room)])
"""


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    docker_engine.need_engine(BASE)
    build_images()


def inspected(image: str) -> dict[str, object]:
    (found,) = json.loads(docker_engine.docker("image", "inspect", image).stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", IMAGES)
def test_sizes(name: str) -> None:
    base, size = inspected(BASE)["Size"], inspected(f"{name}:{VERSION}")["Size"]
    assert isinstance(base, int)
    assert isinstance(size, int)
    assert (size - base) / 1e6 <= MOST[name]


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_holds_the_rooms_that_it_needs(name: str) -> None:
    command = ("run", "--rm", "--network", "none", "--read-only", "--entrypoint", "/opt/consilium/bin/python")
    said = docker_engine.docker(*command, f"{name}:{VERSION}", "-P", "-c", FIND).stdout
    assert set(said.split()) == ROOMS[name]


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_says_what_it_is_and_begins_as_nobody_of_importance(name: str) -> None:
    config = inspected(f"{name}:{VERSION}")["Config"]
    assert isinstance(config, dict)
    assert config["Labels"]["org.opencontainers.image.title"] == name
    assert config["Labels"]["org.opencontainers.image.description"]
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert bool(config["User"]) == (name != "consilium-llm")  # a seat drops root once its fences stand


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_of_a_service_says_how_it_is_asked_whether_it_is_well(name: str) -> None:
    config = inspected(f"{name}:{VERSION}")["Config"]
    assert isinstance(config, dict)
    by_itself = {
        "consilium-arbiter": ["consilium", "health", "arbiter"],
        "consilium-llm": ["consilium", "health", "wrapper"],
    }
    test = (config.get("Healthcheck") or {"Test": []})["Test"]
    if name == "consilium-console":
        assert test == [], "it is the moderator, the operator and others: the service says which"
    else:
        assert test[:1] == ["CMD"]
        assert test[1:] == by_itself.get(name, test[1:])


@pytest.mark.parametrize("name", [name for name in IMAGES if name != "consilium-llm"])
def test_an_image_runs_read_only_and_without_rights(name: str) -> None:
    how = ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--network", "none")
    said = docker_engine.docker("run", "--rm", *how, f"{name}:{VERSION}", "--version").stdout
    assert said.startswith("consilium ")


def test_no_dockerfile_asks_for_a_builder_of_its_own() -> None:
    files = [path for path in (docker_engine.ROOT / "images").rglob("Dockerfile*") if path.is_file()]
    assert files
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "# syntax=" not in text, path
        assert "RUN --mount" not in text, path
        for line in text.splitlines():
            if line.startswith("FROM ") and " AS " not in line and "${" not in line:
                assert ":" in line, f"{path}: {line}: a base is pinned"


OVERRIDES = re.findall(
    r"^```yaml\n(.*?)^```",
    (docker_engine.ROOT / "docs" / "deployment.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize("text", OVERRIDES)
def test_the_page_s_examples_are_services_as_tight_as_ours(text: str, tmp_path: Path) -> None:
    for name in ("compose.yaml", "council.yaml"):
        shutil.copyfile(docker_engine.ROOT / name, tmp_path / name)
    (tmp_path / "compose.override.yaml").write_text(text, encoding="utf-8")
    words = ("--project-directory", str(tmp_path), "--profile", "*", "config", "--format", "json")
    files = ("-f", str(tmp_path / "compose.yaml"), "-f", str(tmp_path / "compose.override.yaml"))
    services = json.loads(docker_engine.docker("compose", *files, *words).stdout)["services"]
    ((name, told),) = yaml.safe_load(text)["services"].items()
    extended = told.get("extends", {"service": name})["service"]
    made, model = services[name], services[extended]
    for key in (
        "read_only",
        "cap_drop",
        "cap_add",
        "security_opt",
        "networks",
        "dns",
        "entrypoint",
        "healthcheck",
    ):
        assert made[key] == model[key], key
    mounted = {volume["target"]: volume["source"] for volume in made["volumes"]}
    if extended == name:
        assert len(mounted) == 5, "one more"
        return
    assert made["command"] != model["command"]
    assert not {extended, f"{tmp_path}/certs/{extended}"} & set(mounted.values()), "nothing of the other seat"
    assert len(mounted) == 4
