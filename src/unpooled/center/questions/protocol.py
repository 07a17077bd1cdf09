"""The protocol: what a study asks for, in full, so that it is asked once.

A center takes a protocol apart into ordinary questions (`expand`), whose groups are *blocks*: the
people who are alike in several groupings. Whatever an analysis asks for later is a sum over blocks.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import isfinite
from typing import Literal

from unpooled.center.questions.message import Message, bands
from unpooled.errors import InputError

Kind = Literal["number", "category"]
Code = float | str  # a value that means "missing"
OTHER, MISSING_LEVEL = "other", "missing"  # levels that nobody declared


class Grouping(Message, frozen=True, rename={"with_": "with"}):
    """A variable that people are grouped by: whole levels, or a number in bands.

    A grouping is crossed with all others of the protocol; one `with` some only with these.

    Examples
    --------
    >>> Grouping(name="age_band", of="age", cuts=(65,)).names
    ('under 65', '65 and over')
    """

    name: str
    of: str | None = None  # the column, where it has another name
    levels: tuple[str, ...] | None = None  # None: those that K people have
    cuts: tuple[float, ...] | None = None
    labels: tuple[str, ...] | None = None  # of the bands
    ordered: bool = False
    with_: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.cuts is None:
            if self.labels is not None:
                raise InputError(f"groups: {self.name} has labels, but no cuts that they name")
            if len(set(self.levels or ())) < len(self.levels or ()):
                raise InputError(f"groups: the levels of {self.name} must differ")
            return
        if self.levels is not None:
            raise InputError(f"groups: {self.name} must have levels or cuts, not both")
        rise = all(a < b for a, b in pairwise(self.cuts)) and all(map(isfinite, self.cuts))
        if not self.cuts or not rise:
            cuts = ", ".join(f"{cut:g}" for cut in self.cuts)
            raise InputError(f"groups: the cuts of {self.name} must rise, got {cuts or 'none'}")
        if self.labels is not None and len(self.labels) != len(self.cuts) + 1:
            raise InputError(
                f"groups: {self.name} needs {len(self.cuts) + 1} labels for {len(self.cuts)} cuts, "
                f"got {len(self.labels)}"
            )

    @property
    def column(self) -> str:
        """The column that it reads."""
        return self.of or self.name

    @property
    def names(self) -> tuple[str, ...]:
        """Its levels, in order, as far as they are declared."""
        if self.cuts is not None:
            return self.labels or bands(self.cuts)
        return self.levels or ()

    @property
    def rises(self) -> bool:
        """Whether its levels have an order."""
        return self.ordered or self.cuts is not None


class ProtocolVariable(Message, frozen=True):
    """A variable of the study. `missing` are the codes that mean "no value"."""

    kind: Kind | None = None  # None: a number where the column has numbers
    label: str | None = None
    unit: str | None = None
    resolution: float | None = None
    lower: float | None = None
    upper: float | None = None
    missing: tuple[Code, ...] = ()
    levels: tuple[str, ...] | None = None
    ordered: bool = False


class ProtocolOutcome(Message, frozen=True):
    """Times to an event."""

    time: str
    event: str
    horizon: float
    event_is: str | None = None
    label: str | None = None


class Pair(Message, frozen=True):
    """Two variables that are looked at together."""

    variables: tuple[str, str]


class Protocol(Message, frozen=True):
    """The plan of a study; the most important grouping comes first."""

    title: str
    purpose: str | None = None
    k: int | None = None  # at least so many people a number; a center's own K may be higher
    groups: tuple[Grouping, ...] = ()
    variables: Mapping[str, ProtocolVariable] = {}
    survival: tuple[ProtocolOutcome, ...] = ()
    pairs: tuple[Pair, ...] = ()

    def __post_init__(self) -> None:
        names = [grouping.name for grouping in self.groups]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"groups: there are two groupings named {twice!r}")
        for grouping in self.groups:
            for other in grouping.with_ or ():
                if other not in names or other == grouping.name:
                    raise InputError(
                        f"groups: {grouping.name} is to be crossed with {other!r}, which is no "
                        f"other grouping. There are: {', '.join(names)}"
                    )
        if not self.variables and not self.survival:
            raise InputError("a protocol needs at least one variable or one survival outcome")
        if self.k is not None and self.k < 1:
            raise InputError(f"k must be a positive whole number, got {self.k}")

    def families(self) -> Iterator[tuple[Grouping, ...]]:
        """Groupings that are crossed with each other, the most important first."""
        main = tuple(grouping for grouping in self.groups if grouping.with_ is None)
        if main or not self.groups:
            yield main
        for side in self.groups:
            if side.with_ is not None:
                yield (*(g for g in self.groups if g.name in side.with_), side)
