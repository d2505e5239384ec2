"""The command line of ``consilium arbiter``."""

from __future__ import annotations

import argparse
from pathlib import Path

from consilium.health import VARIABLE
from consilium.sockets import SOCKET_DIR

EXAMPLES = """\
examples:
  consilium arbiter --council council.yaml --certs certs/arbiter --transcript debate.jsonl
  consilium arbiter --council council.yaml --certs certs/arbiter --transcripts transcripts
  consilium arbiter --council council.yaml --certs certs/arbiter --transcript debate.jsonl --control-port 0 \\
      --data-port 0 --admin-port 0        (any free ports; they are printed)
  consilium arbiter --council council.yaml --certs certs/arbiter --transcript debate.jsonl --listen unix
  consilium arbiter --council council.yaml --certs certs/arbiter --transcript debate.jsonl --metrics-port 9100

SIGHUP, or `consilium admin reload`, has it read its certificates and profiles again. A list of revoked
certificates is read again when it changes, and ends the sessions of whom it names.
It prints one JSON line once it listens, and ends with the debate: 0 when that reached an outcome. If it was
killed before that, the same command goes on in the same transcript: by the rules in there, paused, and with
every seat to come again.
"""


def parser() -> argparse.ArgumentParser:
    """The command line of ``consilium arbiter``."""
    made = argparse.ArgumentParser(
        prog="consilium arbiter",
        description="Hold one debate: admit seats, run the turns, write the transcript.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--council", type=Path, required=True, metavar="FILE", help="the council file")
    made.add_argument("--certs", type=Path, required=True, metavar="DIR", help="the Arbiter's credentials")
    made.add_argument(
        "--profiles",
        type=Path,
        metavar="FILE",
        help="capability profiles, in place of participant and operator as built in",
    )
    made.add_argument(
        "--crl",
        type=Path,
        metavar="FILE",
        help="revoked certificates (default crl.pem in --certs, if there); read again when it changes",
    )
    record = made.add_mutually_exclusive_group(required=True)
    record.add_argument(
        "--transcript",
        type=Path,
        metavar="FILE",
        help="where to write; a debate in it that has not ended goes on",
    )
    record.add_argument(
        "--transcripts",
        type=Path,
        metavar="DIR",
        help="in its place: the newest debate in DIR goes on if it has not ended, else a new file is begun",
    )
    made.add_argument(
        "--listen",
        choices=("tcp", "unix"),
        help="on ports or on UNIX sockets (default tcp, or CONSILIUM_LISTEN)",
    )
    made.add_argument(
        "--socket-dir",
        type=Path,
        metavar="DIR",
        help=f"the folder of the UNIX sockets (default {SOCKET_DIR}, or CONSILIUM_SOCKET_DIR)",
    )
    made.add_argument("--host", help="address to listen on (default 127.0.0.1, or CONSILIUM_HOST)")
    made.add_argument(
        "--admin-host",
        metavar="HOST",
        help="address of the admin port (default that of --host, or CONSILIUM_ADMIN_HOST)",
    )
    for name, port in (("control", 9998), ("data", 9999), ("admin", 9997)):
        made.add_argument(
            f"--{name}-port",
            type=int,
            metavar="PORT",
            help=f"default {port}, or CONSILIUM_{name.upper()}_PORT; 0 is any free one",
        )
    made.add_argument(
        "--health-file", type=Path, metavar="FILE", help=f"report health there (default: {VARIABLE})"
    )
    made.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="serve Prometheus at /metrics there (default: nowhere, or CONSILIUM_METRICS_PORT)",
    )
    made.add_argument(
        "--metrics-host",
        metavar="HOST",
        help="address for that, without TLS (default 127.0.0.1, or CONSILIUM_METRICS_HOST)",
    )
    made.add_argument("--lifeline", action="store_true", help="end when standard input closes")
    return made
