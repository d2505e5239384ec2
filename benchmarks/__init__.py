"""Measurements of the real Arbiter against hand-written references of the same work, in one run."""
