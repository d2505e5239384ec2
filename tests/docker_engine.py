"""The container engine, for tests marked `docker`: whether there is one, and commands to it.

Without an engine such a test is skipped, with one line that says why. CONSILIUM_REQUIRE_DOCKER=1 makes that a
failure: where the engine has to be, a test that does not run is no test that passed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

REQUIRE = "CONSILIUM_REQUIRE_DOCKER"

BUILD_SECONDS = 900


@cache
def _missing(image: str | None) -> str:
    """Why no container can be started here, or none of ``image``; empty when one can."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    for words in (["info"], *([["image", "inspect", image]] if image else [])):
        try:
            asked = subprocess.run(
                ["docker", *words], capture_output=True, text=True, timeout=60, check=False
            )
        except subprocess.TimeoutExpired:
            return "the container engine does not answer"
        if asked.returncode:
            return (asked.stderr.strip().splitlines() or ["the container engine does not answer"])[-1]
    return ""


def need_engine(image: str | None = None) -> None:
    """Skip the test, or fail it, where no container can be started, or none of ``image``: none is pulled."""
    if why := _missing(image):
        if os.environ.get(REQUIRE) == "1":
            pytest.fail(f"{why}, and {REQUIRE}=1", pytrace=False)
        pytest.skip(why)


def docker(*words: str, timeout: float = 120, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run one `docker` command. With ``check``, its failure is the test's, with what it said."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=timeout, check=False)
    if check and done.returncode:
        raise AssertionError(
            f"docker {' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done


@cache
def build(
    tag: str, dockerfile: Path, *arguments: str, context: Path = ROOT, target: str | None = None
) -> str:
    """Build ``dockerfile`` as ``tag``, once a run of the tests, and return the tag.

    ``arguments`` are build arguments, ``NAME=value``; ``target`` is the stage, if not the last.
    """
    options = [word for argument in arguments for word in ("--build-arg", argument)]
    stage = ["--target", target] if target else []
    words = ("-q", "-t", tag, "-f", str(dockerfile), *stage, *options, str(context))
    docker("build", *words, timeout=BUILD_SECONDS)
    return tag
