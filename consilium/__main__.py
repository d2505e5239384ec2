"""`python -m consilium` is the `consilium` command."""

from __future__ import annotations

import sys

from consilium.cli import main

if __name__ == "__main__":
    sys.exit(main())
