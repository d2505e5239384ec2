"""`python -m council.conformance.provider [PORT [HOST]]`: serve a stub provider until standard input ends."""

from __future__ import annotations

import json
import sys

from council.conformance.provider.script import KEY
from council.conformance.provider.stub import Stub

port, host = (*sys.argv[1:], *("0", "127.0.0.1")[len(sys.argv) - 1 :])
with Stub(host, int(port)) as stub:
    sys.stdout.write(json.dumps({"event": "ready", "url": stub.url, "key": KEY}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
