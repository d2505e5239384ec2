"""Whether a memory is flat. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

WARM_UP = 0.2
"""The share of the readings, from the first on, that is not looked at: by then everything was used once."""


@dataclass(slots=True)
class Memory:
    """Readings of one process's memory: seconds, turns taken by then, KiB."""

    readings: list[tuple[float, int, int]] = field(default_factory=list)

    @property
    def warm(self) -> list[tuple[float, int, int]]:
        """The readings that count. Raises `ValueError` when fewer than two are left."""
        left = self.readings[int(len(self.readings) * WARM_UP) :]
        if len(left) < 2:
            raise ValueError("a slope needs two readings after the warm-up")
        return left

    @property
    def a_minute(self) -> float:
        """KiB that it grows a minute, as the line of least squares has it."""
        return slope([(seconds / 60, kib) for seconds, _, kib in self.warm])

    @property
    def a_turn(self) -> float:
        """KiB that it grows a turn."""
        (_, before, small), *_, (_, after, large) = self.warm
        return (large - small) / max(after - before, 1)


def slope(points: list[tuple[float, float]]) -> float:
    """The slope of the line of least squares through ``points``, of which at least two differ in x."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
