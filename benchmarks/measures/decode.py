"""P15: from the bytes of a 4 KB SPEECH to a checked message, against `orjson.loads` alone."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import orjson

from benchmarks.table import Row, Target, p10, ratios
from benchmarks.texts import english
from consilium import messages
from consilium.codec import Codec, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.setting import Setting

SPEECH_BYTES = 4096
CALLS = 200
LOTS = 40
"""A round times so many lots of `CALLS` calls."""


def measure(setting: Setting) -> list[Row]:
    """Fill P15."""
    usage = messages.Usage(tokens_in=5200, tokens_out=980, model="some-model-4")
    line = encode(messages.Speech(turn_id=7, text=english(SPEECH_BYTES), usage=usage), "s-21").rstrip(b"\n")
    codec = Codec[Any](messages.DataFromSeat)
    checked: list[float] = []
    bare: list[float] = []
    for _ in range(setting.rounds):
        one, other = [], []
        for _ in range(setting.some(LOTS)):
            one.append(each(codec.decode, line))
            other.append(each(orjson.loads, line))
        checked.append(p10(one))
        bare.append(p10(other))
    basis = f"{statistics.median(checked) * 1e6:.1f} us to {statistics.median(bare) * 1e6:.1f} us"
    detail = {"subject_s": checked, "reference_s": bare}
    what = "decode and check a SPEECH of 4 KB, CPU, x orjson.loads"
    return [Row("P15", what, Target("<=", 3), ratios(checked, bare), basis, wall=False, detail=detail)]


def each(call: Callable[[bytes], object], line: bytes) -> float:
    """CPU seconds that one call takes."""
    then = time.process_time()
    for _ in range(CALLS):
        call(line)
    return (time.process_time() - then) / CALLS
