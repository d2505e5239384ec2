"""The Arbiter: the hub that holds a debate (§3.3.C)."""
