"""Whoever holds keys and tokens leaves no core dump."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import resource, {module}
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
try:
    {module}.main(["--help"])
except SystemExit:
    pass
print(resource.getrlimit(resource.RLIMIT_CORE))
"""


@pytest.mark.parametrize("module", ["arbiter.main", "wrapper.main", "council.join"])
def test_no_core_dump_is_written_of_who_holds_a_key(module: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", CODE.format(module=module)], capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines()[-1] == "(0, 0)"
