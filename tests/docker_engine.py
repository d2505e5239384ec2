"""The container engine, for tests marked `docker`: whether there is one, and commands to it.

Without an engine such a test is skipped; with CONSILIUM_REQUIRE_DOCKER=1 it fails instead.
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
def _missing() -> str:
    """Why there is no engine; empty if there is one."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    asked = subprocess.run(["docker", "version"], capture_output=True, text=True, timeout=60, check=False)
    if asked.returncode:
        return f"no container engine answers: {asked.stderr.strip().splitlines()[-1]}"
    return ""


def need_engine() -> None:
    """Skip the test, or fail it, where there is no engine."""
    if why := _missing():
        if os.environ.get(REQUIRE) == "1":
            pytest.fail(f"{why}, and {REQUIRE}=1")
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
def build(tag: str, dockerfile: Path, *arguments: str, context: Path = ROOT) -> str:
    """Build ``dockerfile`` as ``tag``, once a run of the tests, and return the tag.

    ``arguments`` are build arguments, ``NAME=value``.
    """
    options = [word for argument in arguments for word in ("--build-arg", argument)]
    docker("build", "-q", "-t", tag, "-f", str(dockerfile), *options, str(context), timeout=BUILD_SECONDS)
    return tag
