"""A seat that a person fills (§3.3.B, §10, §11): what they read, what they type, and what becomes of it."""
