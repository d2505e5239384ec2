"""Reference of P10: the same five messages through mosquitto: mutual TLS 1.3, QoS 0, TCP_NODELAY everywhere.

Three processes: the broker, who gives the turns (this one), and the seats, which share one connection. The
reference of P1 and this one speak and record alike; here every message travels twice.
"""

from __future__ import annotations

import argparse
import getpass
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from benchmarks.hosts.model import Model, line
from benchmarks.peers.common import SEATS, SPEAKERS, Taken, answer, questions, ready, speech

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOST = "127.0.0.1"
PATIENCE = 20.0
CONFIG = """\
listener {port} {host}
cafile {certs}/ca.pem
certfile {certs}/cert.pem
keyfile {certs}/key.pem
require_certificate true
tls_version tlsv1.3
allow_anonymous true
persistence false
set_tcp_nodelay true
log_dest none
user {user}
"""


def client(args: argparse.Namespace, topic: str, hear: Callable[[MQTTMessage], None]) -> Client:
    """A client that has subscribed to ``topic``."""
    context = ssl.create_default_context(cafile=args.seat / "ca.pem")
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(args.seat / "cert.pem", args.seat / "key.pem")
    made = Client(CallbackAPIVersion.VERSION2)
    made.tls_set_context(context)
    made.on_socket_open = no_delay
    heard: list[int] = []
    made.on_subscribe = lambda *_: heard.append(1)
    made.on_message = lambda _client, _data, message: hear(message)
    made.connect(HOST, args.port)
    made.on_connect = lambda *_: made.subscribe(topic)
    until = time.monotonic() + PATIENCE
    while not heard:
        step(made)
        if time.monotonic() > until:
            raise TimeoutError(f"mosquitto let nobody subscribe within {PATIENCE:g} s")
    return made


def no_delay(_client: Client, _data: Any, opened: Any) -> None:
    """Without it, a small message waits 40 ms for the acknowledgement of the one before it."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def step(connected: Client) -> None:
    """Let a client do what there is to do. Raises `ConnectionError` when the broker is gone."""
    if (code := connected.loop(1.0)) is not MQTTErrorCode.MQTT_ERR_SUCCESS:
        raise ConnectionError(f"mosquitto: {code.name}")


def speak(args: argparse.Namespace) -> None:
    """Hold the three seats: ACK, SPEECH and TURN_END for every CONTEXT, until the broker goes."""
    turn = 0

    def hear(message: MQTTMessage) -> None:
        nonlocal turn
        if not message.topic.endswith("/data"):
            return
        seats.publish("said/control", line("ACK", turn, turn_id=turn))
        seats.publish("said/data", line("SPEECH", turn, turn_id=turn, text=speech(turn), usage=None))
        seats.publish("said/control", line("TURN_END", turn, turn_id=turn, speech=True))
        turn += 1

    seats = client(args, "seat/#", hear)
    print(flush=True)
    while True:
        step(seats)


class Table:
    """Gives the seats their turns."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._debate = Model.recorded_in(args.folder)
        self._said: list[bytes] = []
        self._client = client(args, "said/#", lambda message: self._said.append(message.payload))

    def take(self, turns: int) -> Taken:
        """Take ``turns`` turns, one after the other."""
        taken = []
        used = time.process_time()
        then = time.perf_counter()
        for turn in range(turns):
            start, context = self._debate.start()
            seat = turn % SEATS
            self._client.publish(f"seat/{seat}/control", start)
            self._client.publish(f"seat/{seat}/data", context)
            while len(self._said) < 3:
                step(self._client)
            self._debate.end(SPEAKERS[seat], self._said)
            self._said.clear()
            now = time.perf_counter()
            taken.append(now - then)
            then = now
        return Taken(taken, time.process_time() - used)


@contextmanager
def broker(args: argparse.Namespace) -> Iterator[None]:
    """Run mosquitto on a port of the loopback interface."""
    config = args.folder / "mosquitto.conf"
    config.write_text(
        CONFIG.format(port=args.port, host=HOST, certs=args.certs, user=getpass.getuser()), "utf-8"
    )
    with subprocess.Popen([args.mosquitto, "-c", config], stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + PATIENCE
            while not listening(args.port):
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError("mosquitto does not start")
                time.sleep(0.05)
            yield
        finally:
            process.terminate()


def listening(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@contextmanager
def seats_beside(args: argparse.Namespace) -> Iterator[None]:
    """Run the seats in a process of their own."""
    words = ["--seat", args.seat, "--port", str(args.port), "--speak"]
    command = [sys.executable, "-m", "benchmarks.peers.mqtt", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError("the seats do not start")
            yield
        finally:
            process.kill()


def main() -> None:
    """Give turns as they are asked for; or be the seats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seat", type=Path, required=True)
    parser.add_argument("--certs", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--mosquitto")
    parser.add_argument("--port", type=int)
    parser.add_argument("--speak", action="store_true")
    args = parser.parse_args()
    if args.speak:
        speak(args)
        return
    with socket.create_server((HOST, 0)) as probe:
        args.port = probe.getsockname()[1]
    with broker(args), seats_beside(args):
        table = Table(args)
        ready()
        for turns in questions():
            answer(table.take(turns))


if __name__ == "__main__":
    main()
