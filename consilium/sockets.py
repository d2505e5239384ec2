"""Where the Arbiter's UNIX sockets are (§15.1): the container-less way in on one machine."""

from __future__ import annotations

from pathlib import Path

SOCKET_DIR = Path("/run/consilium")

GROUP = "consilium"
"""Who is in it may connect; who may do what is decided by certificates, as on TCP."""

NAMES = {"control": "arbiter_ctrl.sock", "data": "arbiter_data.sock", "admin": "arbiter_admin.sock"}

SERVER_NAME = "localhost"
"""The name that the certificate of an Arbiter behind a socket must bear, unless another is asked for."""


def socket_path(folder: Path, channel: str) -> Path:
    """The socket of ``channel``: control, data or admin."""
    return folder / NAMES[channel]
