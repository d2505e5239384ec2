"""Where the Arbiter listens, from the environment (§15.2)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from consilium.errors import UserError

PREFIX = "CONSILIUM_"

Port = Annotated[int, Field(ge=0, le=65535)]


class Ports(BaseSettings):
    """CONSILIUM_HOST, CONSILIUM_CONTROL_PORT, CONSILIUM_DATA_PORT and CONSILIUM_ADMIN_PORT.

    Port 0 is any free port. Raises `UserError` for what is not a port.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    host: str = "127.0.0.1"
    control_port: Port = 9998
    data_port: Port = 9999
    admin_port: Port = 9997

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            problem = error.errors()[0]
            name = str(problem["loc"][0])
            raise UserError(
                f"{name} must be a port, 0 to 65535 (given: {problem['input']!r})",
                hint=f"it comes from the command line or from {PREFIX}{name.upper()}",
            ) from None
