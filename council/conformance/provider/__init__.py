"""Stub providers that speak the APIs of the real ones."""
