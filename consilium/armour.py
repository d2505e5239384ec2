"""PEM: the blocks of one kind in a file that may hold other things too. Pure."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

Kind = Literal["CERTIFICATE", "X509 CRL"]


def blocks(content: bytes, kind: Kind) -> list[bytes]:
    """The blocks of ``kind`` in ``content``, in order, each from its first dash to its last.

    What stands outside of them is commentary, in whatever encoding its author had.
    """
    return _form(kind).findall(content)


@cache
def _form(kind: Kind) -> re.Pattern[bytes]:
    return re.compile(rf"-----BEGIN {kind}-----\s.*?-----END {kind}-----".encode(), re.DOTALL)
