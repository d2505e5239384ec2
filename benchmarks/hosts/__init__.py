"""The processes that are measured: the Arbiter itself, and the references. Each is a program of its own."""
