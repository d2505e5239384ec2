"""Where bytes arrive: TLS, listeners, limits. Thin."""
