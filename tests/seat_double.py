"""A seat without a client, run as ``python -m wrapper``: it speaks the protocol, and does what its name says.

The tests of `consilium up` put it in the wrapper's place, as ``wrapper.py`` in a folder of PYTHONPATH. The
first part of the name is what it does at its turn; ``crasher_x`` and ``crasher_y`` are two that crash.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

import anyio

from consilium import messages as m
from consilium.channel import dial
from consilium.codec import Codec
from consilium.credentials import Credentials
from consilium.errors import ChannelError
from consilium.lifeline import until_orphaned

SLOW_SECONDS = 60.0


async def main() -> int:
    parser = argparse.ArgumentParser()
    for option in ("council", "name", "state", "certs", "host", "control-port", "data-port"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--model-url")
    parser.add_argument("--give-up-after", required=True)
    parser.add_argument("--lifeline", action="store_true", required=True)
    options = parser.parse_args()
    if options.name == "refused":
        sys.stderr.write("the Arbiter does not want me\n")
        return 3
    if options.name == "absent":
        await until_orphaned()
        return 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_when_orphaned, tasks.cancel_scope)
        try:
            await _sit(options)
        except ChannelError as error:
            sys.stderr.write(f"link lost: {error}\n")
            return 4
        finally:
            tasks.cancel_scope.cancel()
    return 0


async def _end_when_orphaned(scope: anyio.CancelScope) -> None:
    await until_orphaned()
    scope.cancel()


async def _sit(options: argparse.Namespace) -> None:
    credentials = Credentials.load(Path(options.certs))
    to_seat: Codec[m.Message] = Codec(m.ControlToSeat)
    control = await dial(options.host, int(options.control_port), credentials, to_seat, prefix="c")
    meta = m.Meta(brand="double", role_label="Double")
    await control.send(m.Reg(name=options.name, required=not options.name.startswith("optional"), meta=meta))
    registered = (await control.receive()).message
    assert isinstance(registered, m.RegOk), registered
    from_arbiter: Codec[m.Message] = Codec(m.DataToSeat)
    data = await dial(options.host, int(options.data_port), credentials, from_arbiter, prefix="d")
    await data.send(m.DataHello(session_id=registered.session_id, data_token=registered.data_token))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_drain, data)
        while True:
            line = await control.receive()
            match line.message:
                case m.Ping(ts=ts):
                    await control.send(m.Pong(ts=ts), in_reply_to=line.msg_id)
                case m.TurnStart(turn_id=turn_id):
                    await control.send(m.Ack(turn_id=turn_id))
                    tasks.start_soon(_take_turn, options.name.partition("_")[0], turn_id, control, data)
                case m.DebateEnded():
                    tasks.cancel_scope.cancel()
                    return


async def _drain(data: object) -> None:
    while True:
        await data.receive()  # type: ignore[attr-defined]  # a Channel; what comes on it is not needed


async def _take_turn(what: str, turn_id: int, control: object, data: object) -> None:
    send_control, send_data = control.send, data.send  # type: ignore[attr-defined]  # both are Channels
    match what:
        case "crasher":
            os.kill(os.getpid(), signal.SIGKILL)
        case "faulty":
            await send_control(
                m.TurnFailed(
                    turn_id=turn_id,
                    fault=m.Fault.STALLED,
                    prompt_sent=m.PromptSent.MAYBE,
                    detail="nothing for 120 s",
                )
            )
        case "skipper":
            await send_control(m.TurnEnd(turn_id=turn_id))
        case "leaver":
            await send_control(m.Unreg(reason="had enough"))
            os._exit(0)
        case "slow":
            await anyio.sleep(SLOW_SECONDS)
        case _:
            usage = m.Usage(tokens_in=100, tokens_out=10)
            await send_data(m.Speech(turn_id=turn_id, text=f"Point {turn_id}.\x1b[2J", usage=usage))
            await send_control(m.TurnEnd(turn_id=turn_id, speech=True))


if __name__ == "__main__":
    sys.exit(anyio.run(main))
