"""The proxy's metrics (docs/metrics.md): one registry, served on an address that must be asked for."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from consilium.errors import UserError
from wrapper.egress.verdicts import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator


class Counts:
    """Counts for Prometheus. Every outcome is there from the start, as 0."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "consilium_egress_requests",
            "Requests at the egress proxy, by what became of them.",
            ["outcome"],
            registry=self.registry,
        )
        self._connections = Gauge(
            "consilium_egress_connections", "Connections that are open.", registry=self.registry
        )
        self._bytes = Counter(
            "consilium_egress_bytes",
            "Bytes that were passed on through tunnels, out to a host or in from it.",
            ["direction"],
            registry=self.registry,
        )
        for outcome in Outcome:
            self._requests.labels(outcome.value)
        for direction in ("out", "in"):
            self._bytes.labels(direction)

    def judged(self, outcome: Outcome) -> None:
        """Count one request."""
        self._requests.labels(outcome.value).inc()

    def opened(self, change: int) -> None:
        """Count a connection that came (1) or went (-1)."""
        self._connections.inc(change)

    def carried(self, direction: str, count: int) -> None:
        """Count ``count`` bytes that went ``out`` or ``in``."""
        self._bytes.labels(direction).inc(count)


@contextmanager
def served(counts: Counts, host: str, port: int) -> Iterator[int]:
    """Serve ``counts`` on ``host`` while the block runs; its value is the port. Raises `UserError`."""
    try:
        server, thread = start_http_server(port, host, registry=counts.registry)
    except OSError as error:
        raise UserError(
            f"metrics cannot be served on {host}, port {port}: {error.strerror}",
            hint="give another --metrics-host and --metrics-port; without the port none are served",
        ) from None
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
