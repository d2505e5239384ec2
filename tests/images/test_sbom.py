"""A bill of materials names everything that the image holds."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docker_engine import ROOT, build, docker, need_engine

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1200)]

TOOLS = Path(sys.executable).parent / ".." / "outside" / "images" / "bin"
DEBIAN = ["dpkg-query", "-W", "-f", "${Package}@${Version}\\n"]
PYTHON = (
    "from importlib.metadata import distributions as d;"
    "print(*(f'{x.metadata[\"Name\"]}@{x.version}' for x in d()), sep='\\n')"
)
IMAGES = {
    "consilium-arbiter": ("images/consilium/Dockerfile", "arbiter"),
    "consilium-egress": ("images/consilium/Dockerfile", "egress"),
    "consilium-console": ("images/consilium/Dockerfile", "console"),
    "consilium-model": ("images/consilium/Dockerfile", "model"),
    "consilium-llm": ("images/seat/Dockerfile", "llm"),
}
CLIENTS = ("claude", "gemini")
"""One that is a program, and one that is a folder of packages."""
NPM = """
const fs = require("fs")
for (const file of fs.globSync("/opt/client/node_modules/{*,@*/*}/package.json")) {
  const held = JSON.parse(fs.readFileSync(file))
  console.log(`${held.name}@${held.version}`)
}
"""


def tools() -> Path:
    if not (TOOLS / "debsbom").exists():
        why = "what writes bills of materials is not installed: make .venv/.images"
        if os.environ.get("CONSILIUM_REQUIRE_DOCKER") == "1":
            pytest.fail(why)
        pytest.skip(why)
    return TOOLS


def components(path: Path) -> set[str]:
    told = json.loads(path.read_text())["components"]
    return {f"{canonical(each['name'])}@{each['version']}" for each in told if each.get("version")}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def inside(image: str, *words: str) -> set[str]:
    """What a command in the image says, a component a line."""
    said = docker("run", "--rm", "--network", "none", "--entrypoint", words[0], image, *words[1:]).stdout
    return {f"{canonical(name)}@{version}" for name, _, version in (x.partition("@") for x in said.split())}


def test_the_bills_name_every_package_of_every_image(tmp_path: Path) -> None:
    need_engine("python:3.13-slim")
    bin_folder = tools()
    for image, (dockerfile, target) in IMAGES.items():
        build(image, ROOT / dockerfile, target=target)
    for client in CLIENTS:
        build(f"consilium-{client}", ROOT / "images/seat/Dockerfile", f"CLIENT={client}", target="client")
    sh = shutil.which("sh")
    assert sh is not None
    subprocess.run(
        [sh, str(ROOT / "images" / "sbom.sh"), str(tmp_path), str(bin_folder)], check=True, timeout=600
    )
    for image in IMAGES:
        debian = components(tmp_path / f"{image}.debian.cdx.json")
        assert inside(image, *DEBIAN) <= debian, image
        python = set().union(*(components(path) for path in tmp_path.glob(f"{image}.python.*.cdx.json")))
        venvs = ["/opt/consilium/bin/python"] + (["/opt/llm/bin/python"] if image == "consilium-llm" else [])
        held = set().union(*(inside(image, venv, "-c", PYTHON) for venv in venvs))
        assert held, image
        assert {each for each in held if not each.startswith("consilium@")} <= python, image
    for client in CLIENTS:
        pins = json.loads((ROOT / "images" / client / "package.json").read_text())["dependencies"]
        npm = components(tmp_path / f"consilium-{client}.npm.cdx.json")
        assert {f"{canonical(name)}@{version}" for name, version in pins.items()} <= npm
    how = ("run", "--rm", "--network", "none", "--entrypoint", "node", "consilium-gemini", "-e", NPM)
    held = {f"{canonical(x.rpartition('@')[0])}@{x.rpartition('@')[2]}" for x in docker(*how).stdout.split()}
    assert held
    assert held <= components(tmp_path / "consilium-gemini.npm.cdx.json")
