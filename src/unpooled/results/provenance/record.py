"""How a result came about: who was asked, who answered (`Reach`), under which K, and what left."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from unpooled.center.data.variables import Codebook
from unpooled.center.policy import Policy
from unpooled.center.questions import EVERYBODY, decode_answer
from unpooled.errors import MessageError
from unpooled.results.provenance.refusals import CenterRefusal
from unpooled.results.provenance.releases import Releases, shut_out
from unpooled.results.report.text import count, people_text


@dataclass(frozen=True, slots=True)
class Nearest:
    """A group that a center answered as an earlier question, or without the condition."""

    center: str
    group: str
    k: int  # the two differ by fewer people


@dataclass(frozen=True, slots=True)
class Merged:
    """People whom an analysis leaves out: their center merged levels that it has to separate."""

    center: str
    people: int
    groupings: tuple[str, ...]

    @property
    def note(self) -> str:
        """What a result says of it."""
        return (
            f"{self.center}: {people_text(self.people)} left out, since levels of "
            f"{' and '.join(self.groupings)} are merged there"
        )


@dataclass(frozen=True, slots=True)
class Ungrouped:
    """People who belong to no group of an analysis: they have another level of it, or none."""

    center: str
    people: int
    groupings: tuple[str, ...]

    @property
    def note(self) -> str:
        """What a result says of it."""
        return (
            f"{self.center}: {people_text(self.people)} with another level of "
            f"{' or '.join(self.groupings)}, or without one, left out"
        )


@dataclass(frozen=True, slots=True)
class FewCells:
    """People of a book whose tables have so few cells that they were completed."""

    center: str
    people: int

    @property
    def note(self) -> str:
        """What a result says of it."""
        return (
            f"{self.center}: {people_text(self.people)} in blocks of one or two cells, placed by "
            "their mean and SD and the distribution of everybody"
        )


@dataclass(frozen=True, slots=True)
class Estimated:
    """People of a book whose mean or SD was withheld and is estimated."""

    center: str
    people: int

    @property
    def note(self) -> str:
        """What a result says of it."""
        return (
            f"{self.center}: the mean or SD of {people_text(self.people)} was withheld, since one "
            "person or few values decide it, and is estimated from their cells"
        )


@dataclass(frozen=True, slots=True)
class OfVariables:
    """What is to be said of people of several variables, center by center."""

    kind: type[FewCells | Estimated | Merged | Ungrouped]
    people_of: tuple[tuple[str, tuple[Merged | Ungrouped | FewCells | Estimated, ...]], ...]

    @property
    def people(self) -> int:
        """The most people of one variable."""
        return max(sum(note.people for note in notes) for _, notes in self.people_of)

    @property
    def note(self) -> str:
        """What a result says of it."""
        listed = "; ".join(
            f"{variable} ({', '.join(f'{note.center} {note.people:,}' for note in notes)})"
            for variable, notes in self.people_of
        )
        return f"{_SAID[self.kind]}: {listed}"


_SAID = {
    Merged: "people are left out where levels of groupings are merged",
    Ungrouped: "people with another level of the grouping, or without one, are left out",
    FewCells: "people in blocks of one or two cells are placed by their mean and SD and the "
    "distribution of everybody",
    Estimated: "means or SDs that are withheld, since one person or few values decide them, are "
    "estimated from cells",
}


Note = Merged | Ungrouped | FewCells | Estimated | OfVariables
"""What a result from a book says of its people."""


@dataclass(frozen=True, slots=True)
class Record:
    """The circumstances of a result."""

    centers: tuple[str, ...] = ()
    releases: Releases = field(default_factory=lambda: Releases(()))
    variables: Codebook = field(default_factory=dict)
    seed: int | None = None
    policy: Policy | None = None  # of centers in this process; others tell only their K
    nearest: tuple[Nearest, ...] = ()  # whom a condition leaves out, and who are counted
    merged: tuple[Note, ...] = ()  # of a book: whom an analysis leaves out
    without: tuple[str, ...] = ()  # of a book: centers that have not answered

    @property
    def k(self) -> Mapping[str, int]:
        """The K that was in force at each center."""
        by_center = {}
        for release in self.releases:
            try:
                by_center[release.center] = decode_answer(release.payload).k
            except MessageError:
                continue
        return by_center

    @property
    def notes(self) -> list[str]:
        """What goes on after the numbers, a line a center.

        People who differ by too few from others to be answered apart, people who are left out,
        and what can no more be asked.

        Examples
        --------
        >>> print(*Record(nearest=(Nearest("Bern", "patient", 10),)).notes)
        Bern, patient: the condition differs from everybody, or from an earlier question, by ...
        """
        groups: dict[tuple[str, int], list[str]] = {}
        for near in dict.fromkeys(self.nearest):
            groups.setdefault((near.center, near.k), []).append(near.group)
        notes = [merged.note for merged in self.merged]
        notes += [f"{center} is not in the book" for center in self.without]
        notes += [
            f"{center}: after this, nothing new can be asked of {' and '.join(names)} there"
            for center, names in self._shut_out().items()
        ]
        return notes + [
            f"{', '.join([center, *(group for group in named if group != EVERYBODY)])}: the "
            "condition differs from everybody, or from an earlier question, by fewer than "
            f"{k} people; the answer is that without the difference"
            for (center, k), named in groups.items()
        ]

    def _shut_out(self) -> dict[str, list[str]]:
        """Center → groupings, or everybody, of which it can tell no more after this result."""
        names: dict[str, list[str]] = {}
        for release in self.releases:
            with suppress(MessageError):
                for name in shut_out(decode_answer(release.payload)):
                    names.setdefault(release.center, []).append(name)
        return {center: list(dict.fromkeys(some)) for center, some in names.items()}

    def unit(self, value: str) -> str:
        """The unit in brackets, where one is declared, else nothing."""
        declared = self.variables.get(value)
        return "" if declared is None or declared.unit is None else f" ({declared.unit})"

    def label(self, value: str) -> str:
        """A variable's name, with its unit where one is declared."""
        return f"{value}{self.unit(value)}"


_JOINT = re.compile(r"joint \((\d+) centers\)")


def joint_name(members: int) -> str:
    """What a joint center is called among centers.

    Examples
    --------
    >>> joint_members(joint_name(23)), joint_members("Haifa")
    (23, 0)
    """
    return f"joint ({members} centers)"


def joint_members(center: str) -> int:
    """How many centers a joint center has; 0 of any other."""
    match = _JOINT.fullmatch(center)
    return 0 if match is None else int(match[1])


@dataclass(frozen=True, slots=True)
class Reach:
    """How many centers answered, of how many, and the people they answered for.

    Of the centers, `joint` count together in a joint center; how many people, where it is known.

    Examples
    --------
    >>> print(Reach(9, 40, 726))
    over 9 of 40 centers, 726 people
    >>> print(Reach(5, 5, 1485), "|", Reach(1, 1, 992.93))
    over 5 centers, 1,485 people | over 1 center, about 993 people
    >>> print(Reach(32, 32, 272, joint=30, joint_people=152))
    over 32 centers (2 alone with 120 people, 30 joint with 152), 272 people
    """

    answered: int
    every: int
    people: float
    joint: int = 0
    joint_people: float | None = None

    @classmethod
    def of(
        cls,
        answered: Iterable[str],
        people: float,
        record: Record,
        refusals: Iterable[CenterRefusal],
        people_of: Mapping[str, float] | None = None,
    ) -> "Reach":
        """From who answered; who did not is in the record, or refused."""
        names = set(answered)
        every = names.union(record.centers, (refusal.center for refusal in refusals))
        joint = {name for name in every if joint_members(name)}
        members = sum(map(joint_members, names & joint))
        joint_people = None if people_of is None else sum(people_of.get(name, 0) for name in joint)
        return cls(len(names - joint) + members, len(every - joint), people, members, joint_people)

    @property
    def whole(self) -> bool:
        """Whether all centers answered."""
        return self.answered == self.every

    @property
    def centers_text(self) -> str:
        """How many centers."""
        every = count(self.every, "center")
        text = every if self.whole else f"{self.answered} of {every}"
        if not self.joint:
            return text
        alone, joint = f"{self.answered - self.joint} alone", f"{self.joint} joint"
        if self.joint_people is not None:
            alone += f" with {people_text(self.people - self.joint_people)}"
            joint += f" with {self.joint_people:,.0f}"
        return f"{text} ({alone}, {joint})"

    @property
    def people_text(self) -> str:
        """How many people."""
        return people_text(self.people)

    def __str__(self) -> str:
        return f"over {self.centers_text}, {self.people_text}"
