"""Giving an order that the plan of a debate holds, and telling when it is not taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from consilium.errors import PeerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from consilium.messages import Resume
    from council.operator import Operator
    from council.plan import Order

ORDER_SECONDS = 5.0
"""How long the Arbiter may take to answer an order."""


async def give(admin: Operator, order: Order | Resume, say: Callable[[str], None]) -> None:
    """Send ``order``; ``say`` is told when it is refused, or not answered. Raises `ChannelError`."""
    with anyio.move_on_after(ORDER_SECONDS) as scope:
        try:
            await admin.request(order)
        except PeerError as refusal:
            say(f"The Arbiter refused {order.type}: {refusal.message}.")
    if scope.cancelled_caught:
        say(f"The Arbiter did not answer {order.type} within {ORDER_SECONDS:g} s.")
