"""A seat: the trusted wrapper that holds its certificate and drives its untrusted client (§3.3.A)."""
