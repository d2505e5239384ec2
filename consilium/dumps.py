"""No core dumps: an Arbiter's and a wrapper's memory hold keys and tokens."""

from __future__ import annotations

import resource


def forbid_core_dumps() -> None:
    """Have the kernel write nothing of this process, or of what it starts, when it crashes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
