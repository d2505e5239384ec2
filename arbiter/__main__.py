"""``python -m arbiter`` is ``consilium arbiter``."""

from __future__ import annotations

import sys

from consilium.cli import main

sys.exit(main(["arbiter", *sys.argv[1:]]))
