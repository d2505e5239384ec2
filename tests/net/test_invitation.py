"""From an invitation to a seat: the bundle of `consilium pki invite`, and the very line that it prints."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hall import Hall

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def test_the_line_of_an_invitation_takes_the_seat(tmp_path: Path) -> None:
    with Hall(tmp_path) as hall:
        hall.ports = dict.fromkeys(hall.ports, 0)
        hall.open()
        hall.seat("ada")
        (tmp_path / "secret").write_text("correct horse battery\n")
        words = ("--profile", "participant", "--name", "guest", "--preset", "llm", "--role", "pragmatist")
        more = ("--host", hall.address, "--out", "guest.p12", "--passphrase-file", "secret")
        invite = [sys.executable, "-P", "-m", "consilium", "pki", "invite", "certs", "guest", *words, *more]
        printed = subprocess.check_output(invite, cwd=tmp_path, text=True).splitlines()
        (line,) = [line for line in printed if line.strip().startswith("consilium join ")]

        _, *join = shlex.split(line)
        ports = ("--control-port", str(hall.ports["control"]), "--data-port", str(hall.ports["data"]))
        guest = hall.run(
            "guest",
            *(*join, *ports, "--model", "scripted", "--json"),
            environment={"CONSILIUM_BUNDLE_PASSPHRASE": "correct horse battery"},
        )
        guest.says("spoke", 2)
        assert guest.heard("registered")[0]["participant_id"].startswith("guest_")
        meta = hall.turns("guest")[0].meta
        assert meta is not None
        assert meta.role_label == "Pragmatist"
