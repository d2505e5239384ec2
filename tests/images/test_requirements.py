"""What an image installs is pinned by version and by hash, and nothing else is installed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETS = ROOT / "images" / "requirements"
DOCKERFILES = sorted((ROOT / "images").glob("*/Dockerfile"))

PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)(?P<rest>.*)")
WISH = re.compile(r"^[A-Za-z0-9._-]+", re.MULTILINE)


def canonical(name: str) -> str:
    """The form in which two spellings of one package are equal."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lines(text: str) -> list[re.Match[str]]:
    """One match a package, its hashes in ``rest``."""
    joined = re.sub(r"\\\n\s*", "", text).splitlines()
    return [found for line in joined if (found := PIN.match(line))]


def pins(text: str) -> dict[str, str]:
    return {canonical(found["name"]): found["version"] for found in lines(text)}


@pytest.mark.parametrize("wanted", sorted(SETS.glob("*.in")), ids=lambda path: path.stem)
def test_every_package_of_a_set_is_pinned_with_the_hashes_of_its_files(wanted: Path) -> None:
    text = wanted.with_suffix(".txt").read_text()
    assert {canonical(each[0]) for each in WISH.finditer(wanted.read_text())} <= pins(text).keys()
    assert [each["name"] for each in lines(text) if "--hash=sha256:" not in each["rest"]] == []
    assert sum(each["rest"].count("--hash") for each in lines(text)) == text.count("--hash")


@pytest.mark.parametrize("name", ["consilium", "seat", "llm", "model", "build"])
def test_images_hold_the_versions_that_the_tests_passed_with(name: str) -> None:
    tested = pins((ROOT / "constraints.txt").read_text())
    locked = pins((SETS / f"{name}.txt").read_text())
    assert {package: locked[package] for package in locked.keys() & tested.keys()} == {
        package: tested[package] for package in locked.keys() & tested.keys()
    }
    assert locked.keys() <= tested.keys(), "a package whose version nobody has tested with"


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_an_image_installs_nothing_without_its_hash(path: Path) -> None:
    commands = re.sub(r"\\\n\s*", "", path.read_text()).splitlines()
    installs = [
        line for line in commands if line.startswith("RUN") and re.search(r"\bpip\b.*\binstall\b", line)
    ]
    assert installs
    for line in installs:
        for step in line.split("&&"):
            if re.search(r"\bpip\b.*\binstall\b", step):
                assert re.search(r"--require-hashes .*-r |--require-hashes -r ", step), step


LOCKS = sorted((ROOT / "images").glob("*/package-lock.json"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_every_npm_package_of_a_client_is_pinned_with_its_hash(lock: Path) -> None:
    packages = json.loads(lock.read_text())["packages"]
    wanted = json.loads(lock.with_name("package.json").read_text())
    for kind in ("dependencies", "optionalDependencies"):
        for version in wanted.get(kind, {}).values():
            assert re.fullmatch(r"\d+(\.\d+)+", version), "exact, or the next lock is of something else"
    assert len(packages) > 1
    for name, package in packages.items():
        assert not name or package["integrity"].startswith("sha512-"), name


def test_npm_installs_what_the_locks_say_and_runs_nothing_of_it() -> None:
    text = re.sub(r"\\\n\s*", "", (ROOT / "images" / "seat" / "Dockerfile").read_text())
    installs = [step for step in re.split(r"&&|\n", text) if re.search(r"\bnpm (ci|i|install|add)\b", step)]
    assert len(installs) == 1
    assert "npm ci --ignore-scripts " in installs[0]
