"""Estimates with their intervals, as plain values and in words."""

from math import isfinite

from unpooled.maths.ranks.effect import Interval
from unpooled.results.report.text import number


def interval_dict(interval: Interval) -> dict[str, float | None]:
    """An interval as plain values; None is a limit that is infinite."""
    ends = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
    return {name: value if isfinite(value) else None for name, value in ends.items()}


def interval_text(interval: Interval) -> str:
    """An estimate and its interval in words."""
    estimate, limits = interval_cells(interval)
    return f"{estimate} (95 % interval {limits})"


def interval_cells(interval: Interval) -> tuple[str, str]:
    """An estimate and its interval as two cells of a table."""
    low, high = number(interval.low, 3), number(interval.high, 3)
    return number(interval.estimate, 3), f"{low} to {high}"
