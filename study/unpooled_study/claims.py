"""What the paper claims of its simulations, each to be judged by ours.

A claim is reproduced where the numbers agree with its words, up to two standard errors where they
are close; the numbers stand beside the verdict on the page.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from unpooled_study.settings import AnySetting
from unpooled_study.tables import Results


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claim is reproduced, and the numbers; `why` explains where it is not."""

    reproduced: bool
    numbers: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """Words of the paper, the settings that they speak of, and how they are judged."""

    words: str
    settings: tuple[AnySetting, ...]
    judge: Callable[[Results], Verdict]


CLAIMS: list[Claim] = []


def claim(
    words: str, settings: Iterable[AnySetting]
) -> Callable[[Callable[[Results], Verdict]], Callable[[Results], Verdict]]:
    """Make a judgement known as that of these words."""

    def register(judge: Callable[[Results], Verdict]) -> Callable[[Results], Verdict]:
        CLAIMS.append(Claim(words, tuple(settings), judge))
        return judge

    return register


def range_text(values: Iterable[float], digits: int = 3) -> str:
    """The least and the greatest of some numbers.

    Examples
    --------
    >>> range_text([0.25, 1.0, 0.5], 2)
    '0.25 to 1.00'
    """
    figures = list(values)
    return f"{min(figures):.{digits}f} to {max(figures):.{digits}f}"
