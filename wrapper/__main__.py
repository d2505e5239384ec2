"""`python -m wrapper` is `consilium seat`, with the same messages and exit codes."""

from __future__ import annotations

import sys

from consilium.cli import main

if __name__ == "__main__":
    sys.exit(main(["seat", *sys.argv[1:]]))
