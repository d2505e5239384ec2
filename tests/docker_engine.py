"""The container engine that some tests need: used where it is, and said where it is not.

Without an engine such a test is skipped, with one line that says why. ``CONSILIUM_REQUIRE_DOCKER=1`` turns that into a
failure: where the engine has to be, a test that does not run is no test that passed.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess

import pytest

REQUIRED = "CONSILIUM_REQUIRE_DOCKER"


def run(*command: str, seconds: float = 60) -> str:
    """Run ``docker`` with these arguments; return its output. Raises `AssertionError` with its complaint."""
    done = subprocess.run(["docker", *command], capture_output=True, text=True, check=False, timeout=seconds)
    assert done.returncode == 0, f"docker {' '.join(command)}: {done.stderr.strip()}"
    return done.stdout


@functools.cache
def what_is_missing(image: str | None = None) -> str | None:
    """Why no container can be started here, or none of ``image``; None when one can."""
    if shutil.which("docker") is None:
        return "there is no docker command"
    commands = [["info"]] if image is None else [["info"], ["image", "inspect", image]]
    for command in commands:
        try:
            done = subprocess.run(
                ["docker", *command], capture_output=True, text=True, check=False, timeout=30
            )
        except subprocess.TimeoutExpired:
            return "the container engine does not answer"
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["the container engine does not answer"])[-1]
    return None


def require(image: str | None = None) -> None:
    """Go on if containers can be started here, and of ``image``, which is never pulled; skip, or else fail."""
    missing = what_is_missing(image)
    if missing is None:
        return
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{REQUIRED}=1, and {missing}", pytrace=False)
    pytest.skip(missing)
