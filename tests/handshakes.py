"""Two ends of TLS 1.3 joined in memory, with nothing of ours between them and OpenSSL."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from consilium.credentials import Credentials


def context(credentials: Credentials, *, server: bool) -> ssl.SSLContext:
    """Strict verification of the other end, as from Python 3.13 on."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.verify_mode = ssl.CERT_REQUIRED
    made.verify_flags |= ssl.VERIFY_X509_STRICT
    made.load_cert_chain(credentials.cert, credentials.key)
    made.load_verify_locations(credentials.ca)
    return made


class Pair:
    """A server and a client. `shake` raises what either end raises, with its words."""

    def __init__(
        self,
        server: Credentials,
        client: Credentials,
        host: str = "localhost",
        *,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """``context`` is the server's, where it is not the usual one."""
        up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
        serving = context or _context(server, server=True)
        self.server = serving.wrap_bio(up, down, server_side=True)
        self.client = _context(client, server=False).wrap_bio(down, up, server_hostname=host)

    def shake(self) -> None:
        done: set[ssl.SSLObject] = set()
        while len(done) < 2:
            for end in {self.client, self.server} - done:
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                done.add(end)

    def pass_on(self, text: bytes) -> bytes:
        """What the server reads of what the client writes."""
        self.client.write(text)
        return self.server.read(len(text))


_context = context
