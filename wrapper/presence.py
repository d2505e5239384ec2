"""Whether the person of a seat is at the table (§9.3, §9.4), and what the Arbiter is told of it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from consilium import messages
from wrapper.events import News, Note, SendControl, Show, Tell, Weight

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wrapper.events import Effect

_STEPPED_BACK: Mapping[str, Any] = {"required": False, "disconnect_policy": messages.DisconnectPolicy.DROP}
_AT_THE_TABLE: Mapping[str, Any] = {
    "required": True,
    "disconnect_policy": messages.DisconnectPolicy.KEEP_ALIVE,
}


class Presence:
    """A program is always there, and none of this is ever asked of it."""

    def __init__(self) -> None:
        self.away = False
        self._known_away = False

    def registration(self, reg: messages.Reg) -> messages.Reg:
        """What ``reg`` is asked as: whoever comes back from a lost connection is still away."""
        self._known_away = self.away
        return reg.model_copy(update=_STEPPED_BACK) if self.away else reg

    def update(self) -> list[Effect]:
        """STATE_UPDATE, unless the Arbiter knows already."""
        if self.away is self._known_away:
            return []
        self._known_away = self.away
        changes = _STEPPED_BACK if self.away else _AT_THE_TABLE
        return [SendControl(messages.StateUpdate(**changes))]

    def applied(self, message: messages.StateOk) -> list[Effect]:
        """STATE_OK: what the Arbiter made of it (§8.3)."""
        return [
            Tell(
                News.STANDING,
                {
                    "required": message.required,
                    "disconnect_policy": message.disconnect_policy.value,
                    "capped": message.capped_by_profile,
                },
            )
        ]

    def ask(self, *, connected: bool) -> list[Effect]:
        """Ask where the debate stands (§10, Ctrl+S)."""
        if connected:
            return [SendControl(messages.StatusRequest())]
        return [Note(Weight.WARNING, "there is no connection to the Arbiter now: it cannot be asked")]

    def shown(self, message: messages.Status) -> list[Effect]:
        """STATUS: where it stands."""
        return [Show(message)]
