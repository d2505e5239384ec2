"""Where the Arbiter listens, from the command line and the environment (§15.1, §15.2)."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic reads it
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from consilium.errors import UserError
from consilium.sockets import SOCKET_DIR

PREFIX = "CONSILIUM_"

Port = Annotated[int, Field(ge=0, le=65535)]

_OF_TCP = frozenset({"host", "admin_host", "control_port", "data_port", "admin_port"})


class Ports(BaseSettings):
    """What the variables CONSILIUM_LISTEN, _HOST, _CONTROL_PORT and so on say: one for each field.

    ``admin_host`` is where an Arbiter listens for operators, if not at ``host``. Port 0 is any free port; the
    folder of the sockets counts where ``listen`` is ``unix``. Without a port for metrics there are none.
    Raises `UserError` for a value that cannot be one.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    listen: Literal["tcp", "unix"] = "tcp"
    host: str = "127.0.0.1"
    admin_host: str = ""
    control_port: Port = 9998
    data_port: Port = 9999
    admin_port: Port = 9997
    socket_dir: Path = SOCKET_DIR
    metrics_host: str = "127.0.0.1"
    metrics_port: Port | None = None

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            problem = error.errors()[0]
            name = str(problem["loc"][0])
            rule = "tcp or unix" if name == "listen" else "a port, 0 to 65535"
            raise UserError(
                f"{name} must be {rule} (given: {problem['input']!r})",
                hint=f"it comes from the command line or from {PREFIX}{name.upper()}",
            ) from None

    @classmethod
    def of(cls, **given: Any) -> Self:
        """What a command line gives, and the environment for the rest; None was not given.

        A place that the command line names also says which transport: it wins over the environment's.
        Raises `UserError` when it names both.
        """
        values = {name: value for name, value in given.items() if value is not None}
        tcp, unix = bool(values.keys() & _OF_TCP), "socket_dir" in values
        if tcp or unix:
            values.setdefault("listen", "unix" if unix else "tcp")
        if tcp if values.get("listen") == "unix" else unix:
            raise UserError(
                "host and ports are for TCP, a folder of sockets is for UNIX sockets: both were given",
                hint="give --socket-dir, or --host and ports",
            )
        return cls(**values)

    @property
    def sockets(self) -> Path | None:
        """The folder of the sockets, or None where host and ports count."""
        return self.socket_dir if self.listen == "unix" else None
