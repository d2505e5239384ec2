"""A client's terminal: what is typed there, what it shows, and what of that is the answer (§6.5, §12)."""
