"""`python -m council.conformance.provider [PORT [HOST]]`: serve a stub provider until standard input ends."""

from __future__ import annotations

import argparse
import json
import sys

from council.conformance.provider.script import ACTS, KEY
from council.conformance.provider.stub import Stub

own = argparse.ArgumentParser(
    prog="python -m council.conformance.provider",
    description="Serve the provider of `consilium conformance`, to look at a client by hand. Its address\n"
    "and its key are printed; it ends with standard input (Ctrl+D).",
    epilog="A prompt that holds <<ACT>> or <<ACT ARGUMENT>> is answered by that act:\n"
    + "\n".join(f"  {act:<12} {what}" for act, what in ACTS.items()),
    formatter_class=argparse.RawDescriptionHelpFormatter,
)
own.add_argument("port", nargs="?", type=int, default=0, help="where it listens (default: any free port)")
own.add_argument("host", nargs="?", default="127.0.0.1", help="on which address (%(default)s)")
options = own.parse_args()
try:
    stub = Stub(options.host, options.port)
except OSError as error:
    own.error(f"nothing can listen on {options.host}:{options.port}: {error.strerror}")
with stub:
    sys.stdout.write(json.dumps({"event": "ready", "url": stub.url, "key": KEY}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
