"""What a center shares with a joint center: its people, counted at public points, in secret shares.

The plan says what is counted where; it is public, and the same for all members. A share alone says
nothing: each is sealed to one of three keepers.
"""

from collections.abc import Iterator
from hashlib import sha256
from itertools import product
from typing import Annotated

import msgspec
import numpy as np

from unpooled.center.data.variables import Variable
from unpooled.center.questions.message import OTHER, Code, Grouping, Message
from unpooled.center.questions.protocol import Protocol
from unpooled.errors import InputError
from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.joint.cutting import DRAWERS
from unpooled.maths.lattice.lattice import WHOLE, Lattice

MOST_POINTS = 1024  # at which a variable is counted: each costs a share, in each block
MOST_BLOCKS = 512
LEAST_MEMBERS = 3  # of two, each would know the other by subtraction

Key = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class JointPart(Message, frozen=True):
    """A variable or an outcome that is counted."""

    variable: str
    missing: tuple[Code, ...] = ()

    @property
    def width(self) -> int:
        """At how many points, or in how many levels, people are counted."""
        raise NotImplementedError

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values it counts."""
        return (self.variable,)

    @property
    def tables(self) -> int:
        """How many tables a block has."""
        return 1

    @property
    def is_cut(self) -> bool:
        """Whether its tables are cut where somebody draws."""
        return True


class JointScale(JointPart, frozen=True, kw_only=True):
    """Public points of a number; who lies beyond `low` or `high` is counted at the last of them."""

    scale: float
    resolution: float | None
    lower: float | None  # declared limits
    upper: float | None
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InputError(f"{self.variable}: low must be below high")

    @property
    def declared(self) -> Variable:
        """What is declared of the variable."""
        return Variable(
            resolution=self.resolution, lower=self.lower, upper=self.upper, scale=self.scale
        )

    @property
    def lattice(self) -> Lattice:
        """The lattice that the points are of."""
        return self.declared.lattice(self.scale)

    @property
    def edges(self) -> FloatArray:
        """Between these lie the points at which people are counted."""
        lattice = self.lattice
        first = np.ceil((self.low - lattice.origin) / lattice.step)
        last = np.floor((self.high - lattice.origin) / lattice.step)
        steps = np.arange(first, min(last, first + MOST_POINTS) + 1)  # more are an error
        points = lattice.snap(lattice.origin + lattice.step * steps)
        edges = np.unique(np.concatenate((points, lattice.atom_sides.ravel())))
        low = max(self.low, lattice.lower)
        return np.asarray(edges[(edges >= low) & (edges < min(self.high, lattice.upper))])

    @property
    def width(self) -> int:
        """At how many points people are counted."""
        return len(self.edges) + 1


class JointNumber(JointScale, frozen=True, tag="number", tag_field="kind", kw_only=True):
    """A variable with numbers.

    Where it is `rough`, nobody knows how far it spreads: people are counted at finer points than
    they are released at, and the keepers agree on one of `scales` first, by the quartiles of all.
    """

    rough: bool = False

    def at_scale(self, scale: float) -> "JointNumber":
        """The same on the lattice of another scale."""
        return msgspec.structs.replace(self, scale=scale, rough=False)

    @property
    def scales(self) -> tuple[float, ...]:
        """The scales to choose from, of which all points are points here, too."""
        if not self.rough:
            return (self.scale,)
        nice = (float(f"{digit}e{power}") for power in range(-9, 10) for digit in (1, 2, 5))
        some = (one for one in nice if self.scale <= one <= self.high - self.low)
        return tuple(s for s in some if (self._places(s) >= 0).all()) or (self.scale,)

    def coarser(self, scale: float) -> IntArray:
        """The point on another scale's lattice of each point here."""
        return np.searchsorted(self._places(scale), np.arange(self.width))

    def _places(self, scale: float) -> IntArray:
        """Which edge here is each edge of another scale's lattice, a last digit aside; else -1."""
        fine, coarse = self.edges, self.at_scale(scale).edges
        behind = np.searchsorted(fine, coarse)
        beside = np.clip(behind[:, None] + np.array([-1, 0, 1]), 0, len(fine) - 1)
        apart = np.abs(fine[beside] - coarse[:, None])
        nearest = np.argmin(apart, axis=1)[:, None]
        places = np.take_along_axis(beside, nearest, axis=1)[:, 0]
        close = np.take_along_axis(apart, nearest, axis=1)[:, 0] <= WHOLE * self.lattice.step
        return np.where(close, places, -1)


class JointOutcome(JointScale, frozen=True, tag="outcome", tag_field="kind", kw_only=True):
    """Times to an event, from 0 to the horizon."""

    event: str
    event_is: str
    horizon: float

    @property
    def lattice(self) -> Lattice:
        """The lattice of follow-up."""
        return self.declared.follow_up_lattice(self.scale, self.horizon)

    @property
    def columns(self) -> tuple[str, ...]:
        """Times and events."""
        return self.variable, self.event

    @property
    def tables(self) -> int:
        """Events, and those without."""
        return 2


class JointCategory(JointPart, frozen=True, tag="category", tag_field="kind", kw_only=True):
    """A variable with levels; whoever has another one is counted as "other"."""

    levels: tuple[str, ...]
    ordered: bool = False

    @property
    def is_cut(self) -> bool:
        """Levels are merged, not cut."""
        return False

    @property
    def level_names(self) -> tuple[str, ...]:
        """The levels that people are counted in."""
        return self.levels if OTHER in self.levels else (*self.levels, OTHER)

    @property
    def has_others(self) -> bool:
        """Whether the last level are all that were not named."""
        return OTHER not in self.levels

    @property
    def width(self) -> int:
        """In how many levels people are counted."""
        return len(self.level_names)


Part = JointNumber | JointOutcome | JointCategory


class JointPlan(Message, frozen=True):
    """What is counted: public, and the same for all members and keepers.

    Each column is counted once: two tables of one, cut here and there, would count few by
    subtraction, and keepers judge no table together with another.
    """

    k: int
    groupings: tuple[Grouping, ...]
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        for grouping in self.groupings:
            if not grouping.names:
                raise InputError(
                    f"groups: a joint center needs the levels of {grouping.name}. Hint: declare "
                    "levels or cuts in the protocol"
                )
        columns = [column for part in self.parts for column in part.columns]
        twice = next((column for column in columns if columns.count(column) > 1), None)
        if twice is not None:
            raise InputError(f"{twice}: a joint center counts each column once")
        for part in self.parts:
            if part.width > MOST_POINTS:
                raise InputError(
                    f"{part.variable}: there are more than {MOST_POINTS} points or levels to count "
                    "people at"
                )
        if self.blocks > MOST_BLOCKS:
            raise InputError(
                f"groups: there are {self.blocks} combinations of levels, more than {MOST_BLOCKS} "
                "for a joint center"
            )

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The levels of each grouping that people are counted in."""
        return tuple(level_names(grouping) for grouping in self.groupings)

    @property
    def others(self) -> tuple[bool, ...]:
        """Of which groupings the last level are all that were not named."""
        return tuple(
            len(names) > len(grouping.names)
            for grouping, names in zip(self.groupings, self.names, strict=True)
        )

    @property
    def blocks(self) -> int:
        """How many combinations of levels there are."""
        return int(np.prod([len(names) for names in self.names], dtype=np.int64))

    @property
    def counted(self) -> int:
        """How many counts a member shares: by block; then those of each part."""
        return self.blocks + sum(size for _, size in self.sections())

    @property
    def length(self) -> int:
        """How many numbers there are in all: after the counts come the draws and coins of tables.

        These are as many as the counts of the part; members who draw nothing do not send them.
        """
        return self.counted + sum(size for part, size in self.sections() if part.is_cut)

    def sections(self) -> Iterator[tuple[Part, int]]:
        """How many counts each part has: of everybody, then of those who lack a value.

        All are by block; of an outcome first those of the events.
        """
        for part in self.parts:
            yield part, 2 * part.tables * self.blocks * part.width


def level_names(grouping: Grouping) -> tuple[str, ...]:
    """The levels that people are counted in; of those that were named, all others are one more."""
    if grouping.cuts is not None or OTHER in grouping.names:
        return grouping.names
    return (*grouping.names, OTHER)


class Keeper(Message, frozen=True):
    """A center that holds shares, and the key that they are sealed to."""

    name: str
    public: Key


class JointQuestion(Message, frozen=True, tag="joint", tag_field="ask"):
    """Shares of all people of a center, for a joint center with these members."""

    protocol: Protocol
    plan: JointPlan
    members: tuple[str, ...]
    keepers: tuple[Keeper, ...]

    def length(self, member: str) -> int:
        """How many numbers a member shares."""
        draws = self.members.index(member) < DRAWERS
        return self.plan.length if draws else self.plan.counted

    def context(self, member: str, keeper: str) -> bytes:
        """What shares are for: they cannot be moved elsewhere."""
        return msgspec.json.encode([encoded(self).hex(), member, keeper])


Run = Annotated[bytes, msgspec.Meta(min_length=16, max_length=64)]  # nobody used it before


class HoldQuestion(Message, frozen=True, tag="hold", tag_field="ask"):
    """For one keeper, what all members sealed to it, in the order of the members."""

    question: JointQuestion
    run: Run
    sealed: tuple[bytes, ...]

    def __post_init__(self) -> None:
        if len(self.sealed) != len(self.question.members):
            raise InputError("there must be shares of each member")


class KeepQuestion(Message, frozen=True, tag="keep", tag_field="ask"):
    """For the three keepers: compute with the shares that each of them holds."""

    question: JointQuestion
    run: Run


class JointNote(Message, frozen=True, tag="joint-note", tag_field="ask"):
    """What a joint center said, for its members to write down: an answer with the receipts."""

    question: JointQuestion
    answer: str


class JointShares(Message, frozen=True, tag="joint", tag_field="say"):
    """A center's shares, sealed to one keeper each."""

    sealed: tuple[bytes, ...]

    def sentence(self) -> str:
        """What a steward reads."""
        return f"shares, sealed to {len(self.sealed)} keepers: nobody can read one alone"


def share_words(plan: JointPlan, numbers: IntArray) -> Iterator[str]:
    """A center's own share in words, for its steward: who is counted where."""
    sizes, rest = numbers[: plan.blocks], numbers[plan.blocks : plan.counted]
    names = [grouping.name for grouping in plan.groupings]
    yield f"everybody: {int(sizes.sum())}"
    for block, levels in enumerate(product(*plan.names)):
        if sizes[block] and names:
            where = ", ".join(f"{n} {level}" for n, level in zip(names, levels, strict=True))
            yield f"{where}: {sizes[block]}"
    for part, size in plan.sections():
        counts, rest = rest[:size], rest[size:]
        lacking = int(counts[size // 2 :].sum())
        points = "levels" if isinstance(part, JointCategory) else "points"
        events = f" by {part.event}" if isinstance(part, JointOutcome) else ""
        yield (
            f"{part.variable}{events}, at {part.width} {points}: {int(sizes.sum()) - lacking}; "
            f"without a value: {lacking}"
        )


def encoded(question: JointQuestion) -> bytes:
    """What names a joint release: 32 bytes."""
    return sha256(msgspec.json.encode(question)).digest()


def is_same_joint(one: JointQuestion, other: JointQuestion) -> bool:
    """Whether two are the same release but for who is a member: keepers open one of them alone."""
    return (one.protocol, one.plan, one.keepers) == (other.protocol, other.plan, other.keepers)
