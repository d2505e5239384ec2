"""The one way out of the seats' network: a CONNECT proxy that knows where each client has to go (§14.4)."""
