"""Run in a container of a test: every provider that the clients know, by HTTPS, and a line for each request.

``python provider_service.py FOLDER`` serves with FOLDER/cert.pem and FOLDER/key.pem on port 443.
"""

from __future__ import annotations

import json
import ssl
import sys
import time
from pathlib import Path

from council.conformance.provider.stub import Stub

folder = Path(sys.argv[1])
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(folder / "cert.pem", folder / "key.pem")
told = 0
with Stub("0.0.0.0", 443, tls=tls) as stub:
    while True:
        while told < len(stub.requests):
            request = stub.requests[told]
            heard = request.heard
            line = {
                "host": request.headers.get("host", ""),
                "path": request.path,
                "model": heard and heard.model,
                "prompts": heard and heard.prompts,
                "tools": heard and heard.tools,
            }
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
            told += 1
        time.sleep(0.1)
