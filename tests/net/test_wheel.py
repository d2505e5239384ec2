"""What a guest installs: the wheel, in an environment of its own, joins an Arbiter that runs elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from hall import Hall

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]


def build_wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("consilium-*.whl")
    return wheel


def fresh_environment(folder: Path, wheel: Path) -> Path:
    """A new environment with the wheel; its dependencies are those that are installed here already."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*install, str(wheel)], check=True)
    purelib = subprocess.check_output(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    )
    # A path in a .pth file is searched after the environment's own packages, and its .pth files are not read.
    (Path(purelib.strip()) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_a_guest_joins_from_the_wheel_alone(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    python = fresh_environment(tmp_path / "venv", build_wheel(tmp_path / "wheel"))
    away = {"PYTHONPATH": "", "CONSILIUM_BUNDLE_PASSPHRASE": "correct horse"}
    where = subprocess.check_output(
        [str(python), "-P", "-c", "import consilium, council, wrapper; print(wrapper.__file__)"],
        text=True,
        env={"PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
    )
    assert where.startswith(str(tmp_path)), "the installed package is what runs"
    with Hall(tmp_path) as hall:
        hall.ports = dict.fromkeys(hall.ports, 0)
        hall.open()
        hall.seat("ada")
        guest = hall.join("--role", "sceptic", python=str(python), environment=away)
        guest.says("spoke", 2)
        guest.process.terminate()
        assert guest.ends() == 0
        shown = json.dumps(guest.events())
        assert "left: stopped by SIGTERM" in shown
        assert str(ROOT) not in guest.err.read_text()
