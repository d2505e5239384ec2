"""One failure is one exception, also where tasks ran side by side."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def first_cause() -> Iterator[None]:
    """Raise what a task group gathered as the first exception it gathered."""
    try:
        yield
    except BaseExceptionGroup as group:
        cause: BaseException = group
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        raise cause from cause.__cause__
