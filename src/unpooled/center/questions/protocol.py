"""The protocol: what a study asks for, in full, so that it is asked once.

A center takes a protocol apart into ordinary questions (`expand`), whose groups are *blocks*: the
people who are alike in several groupings. Whatever an analysis asks for later is a sum over blocks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from unpooled.center.questions.category import MOST_LEVELS, CategoryQuestion
from unpooled.center.questions.lattice import LatticeQuestion
from unpooled.center.questions.message import Code, Grouping, Message
from unpooled.center.questions.moments import MomentsQuestion
from unpooled.center.questions.sizes import SizesQuestion
from unpooled.center.questions.survival import SurvivalQuestion
from unpooled.errors import InputError, MessageError, unknown

Kind = Literal["number", "category"]
PartQuestion = (
    SizesQuestion | MomentsQuestion | LatticeQuestion | CategoryQuestion | SurvivalQuestion
)


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

    def __post_init__(self) -> None:
        if self.levels is not None:
            if self.kind == "number":
                raise InputError('a number has no levels. Hint: kind = "category"')
            if not self.levels or len(set(self.levels)) < len(self.levels):
                raise InputError(f"levels must be one or more, each once, got {self.levels}")
            if len(self.levels) > MOST_LEVELS:
                raise InputError(
                    f"a category may have at most {MOST_LEVELS} levels, got {len(self.levels)}"
                )
        if self.resolution is not None and not 0 < self.resolution < float("inf"):
            raise InputError(f"resolution must be positive, got {self.resolution:g}")
        if self.lower is not None and self.upper is not None and not self.lower < self.upper:
            raise InputError(f"lower must be below upper, got {self.lower:g} and {self.upper:g}")


class ProtocolOutcome(Message, frozen=True):
    """Times to an event."""

    time: str
    event: str
    horizon: float
    event_is: str | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        if self.time == self.event:
            raise InputError(f"event must be another variable than time, got {self.event!r}")
        if not 0 < self.horizon < float("inf"):
            raise InputError(f"horizon must be positive and finite, got {self.horizon:g}")


class Pair(Message, frozen=True):
    """Two variables that are looked at together."""

    variables: tuple[str, str]


class Protocol(Message, frozen=True):
    """The plan of a study; the most important grouping comes first."""

    title: str
    purpose: str | None = None
    k: int | None = None  # at least this many people a number; a center's own K may be higher
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
                    others = [name for name in names if name != grouping.name]
                    hint = unknown("other grouping", other, others)
                    raise InputError(f"groups: {grouping.name} is crossed with {other!r}: {hint}")
        if not self.variables and not self.survival:
            raise InputError("a protocol needs at least one variable or one survival outcome")
        if self.k is not None and self.k < 1:
            raise InputError(f"k must be a positive whole number, got {self.k}")

    def families(self) -> Iterator[tuple[Grouping, ...]]:
        """Groupings that are crossed with each other, the most important first."""
        groups = tuple(map(self._coded, self.groups))
        main = tuple(grouping for grouping in groups if grouping.with_ is None)
        if main or not groups:
            yield main
        for side in groups:
            if side.with_ is not None:
                yield (*(g for g in groups if g.name in side.with_), side)

    def _coded(self, grouping: Grouping) -> Grouping:
        """The grouping with the missing codes of its column, as the variable declares them."""
        variable = self.variables.get(grouping.column)
        if variable is None or grouping.missing:
            return grouping
        return msgspec.structs.replace(grouping, missing=variable.missing)


class ProtocolQuestion(Message, frozen=True, tag="protocol", tag_field="ask"):
    """All that a study asks, at once."""

    protocol: Protocol
    joint: bool = False  # whether there is a joint center for those who are too small


class ProtocolCheckQuestion(Message, frozen=True, tag="protocol-check", tag_field="ask"):
    """What would be released for a protocol, and what not? No count is released."""

    protocol: Protocol
    joint: bool = False  # whether there is a joint center for those who are too small


def expand(protocol: Protocol, kinds: Mapping[str, Kind] | None = None) -> tuple[PartQuestion, ...]:
    """The questions that a protocol consists of, in the order in which they are judged.

    How many people all blocks have comes first: else the levels of a side grouping, released as
    those of a variable by other blocks, would stand against its own blocks. `kinds` says what the
    variables are whose kind the protocol leaves open; else they are numbers, unless they have
    levels.

    Examples
    --------
    >>> plan = Protocol(title="CRP", variables={"crp": ProtocolVariable()})
    >>> [type(question).__name__ for question in expand(plan)]
    ['SizesQuestion', 'MomentsQuestion', 'LatticeQuestion']
    """
    families = tuple(protocol.families())
    sizes = (
        SizesQuestion(variable=_counted_by(protocol, blocks), blocks=blocks) for blocks in families
    )
    each = (
        question for blocks in families for question in _of_family(protocol, blocks, kinds or {})
    )
    return (*sizes, *each)


def _of_family(
    protocol: Protocol, blocks: tuple[Grouping, ...], kinds: Mapping[str, Kind]
) -> Iterator[PartQuestion]:
    """Each variable and each outcome by block.

    An outcome's time is released by status and not once more on its own: a person has one value.
    """
    times = {outcome.time for outcome in protocol.survival}
    for name, variable in protocol.variables.items():
        if name in times:
            continue
        kind = variable.kind or ("category" if variable.levels else kinds.get(name, "number"))
        if kind == "category":
            yield CategoryQuestion(
                variable=name,
                blocks=blocks,
                missing=variable.missing,
                levels=variable.levels,
                ordered=variable.ordered,
            )
        else:
            yield MomentsQuestion(variable=name, blocks=blocks, missing=variable.missing)
            yield LatticeQuestion(variable=name, blocks=blocks, missing=variable.missing)
    for outcome in protocol.survival:
        declared = protocol.variables.get(outcome.time, ProtocolVariable())
        yield SurvivalQuestion(
            variable=outcome.time,
            event=outcome.event,
            event_is=outcome.event_is,
            horizon=outcome.horizon,
            blocks=blocks,
            missing=declared.missing,
        )


def _counted_by(protocol: Protocol, blocks: tuple[Grouping, ...]) -> str:
    """A name for a question that looks at nobody's value: the first grouping's column."""
    if blocks:
        return blocks[0].column
    return next(iter(protocol.variables), "") or protocol.survival[0].time


def block_label(levels: Iterable[Sequence[str]]) -> str:
    """What a block is called: for each grouping the levels that it holds.

    Examples
    --------
    >>> block_label([["patient"], ["F", "M"]])
    '[["patient"],["F","M"]]'
    """
    return msgspec.json.encode([list(some) for some in levels]).decode()


def block_levels(label: str) -> tuple[tuple[str, ...], ...]:
    """For each grouping the levels that a block holds; raises MessageError.

    Examples
    --------
    >>> block_levels('[["patient"],["F","M"]]')
    (('patient',), ('F', 'M'))
    """
    try:
        return msgspec.json.decode(label.encode(), type=tuple[tuple[str, ...], ...])
    except msgspec.MsgspecError as error:
        raise MessageError(f"this is not the name of a block: {label!r}") from error
