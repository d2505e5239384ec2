"""The real clients, driven before a stub provider."""
