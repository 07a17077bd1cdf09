"""Blocks of a protocol as the groups of an analysis: who is meant, and what centers merged.

A block holds for each grouping one level, or several that its center merged. It belongs to a group
of the analysis if all its levels do; where only some do, its people cannot be counted, and the
analysis says so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from unpooled.analyses.request import group_label, in_order
from unpooled.center.data import where as conditions
from unpooled.center.questions import (
    EVERYBODY,
    MISSING_LEVEL,
    OTHER,
    Grouping,
    Protocol,
    block_levels,
)
from unpooled.errors import InputError, MessageError, unknown
from unpooled.results.provenance.record import Merged, Ungrouped

Names = str | Sequence[str] | None
Where = str | Mapping[str, object] | None

_APART = ", "  # between the levels of a group by several groupings
NOBODYS = (OTHER, MISSING_LEVEL)


@dataclass(frozen=True, slots=True)
class Selection:
    """Who is analysed: in which groups, which people, within which strata.

    `groups` are labels: of several groupings their levels, in order, with a comma between them.
    """

    by: tuple[Grouping, ...]
    groups: tuple[str, ...] | None
    condition: conditions.Condition | None
    strata: tuple[Grouping, ...]
    chosen: tuple[Grouping, ...]  # that the condition looks at

    @classmethod
    def of(
        cls,
        protocol: Protocol,
        by: Names = None,
        groups: Sequence[object] | None = None,
        where: Where = None,
        strata: Names = None,
    ) -> "Selection":
        """What the analyst asks for, if the protocol's groupings can say it.

        Examples
        --------
        >>> arm = Grouping(name="arm", levels=("control", "patient"))
        >>> age = Grouping(name="age_band", of="age", cuts=(65,))
        >>> from unpooled.center.questions import ProtocolVariable
        >>> plan = Protocol(title="t", groups=(arm, age), variables={"crp": ProtocolVariable()})
        >>> Selection.of(plan, by="arm", where="age >= 65").words
        'age >= 65'
        >>> Selection.of(plan, by="amr")
        Traceback (most recent call last):
            ...
        unpooled.errors.InputError: by: there is no grouping 'amr'. Hint: did you mean 'arm'?
        """
        by_name = {grouping.name: grouping for grouping in protocol.groups}
        roles = {"by": _listed("by", by), "strata": _listed("strata", strata)}
        for role, names in roles.items():
            for name in names:
                if name not in by_name:
                    raise InputError(f"{role}: {_no_grouping(name, by_name)}")
        twice = [name for name in roles["by"] if name in roles["strata"]]
        if twice:
            raise InputError(f"by and strata must differ, got {twice[0]!r} in both")
        condition = _condition(where, by_name)
        chosen = () if condition is None else _groupings_of(condition, protocol.groups)
        wanted = None if groups is None else tuple(map(_group_name, groups))
        if wanted is not None and not roles["by"]:
            raise InputError("groups needs by, the grouping that says who belongs to which group")
        if wanted is not None and len(set(wanted)) < len(wanted):
            raise InputError(f"groups must differ, got {', '.join(wanted)}")
        if wanted == ():
            raise InputError("groups must name at least one group, got none")
        return cls(
            tuple(by_name[name] for name in roles["by"]),
            wanted,
            condition,
            tuple(by_name[name] for name in roles["strata"]),
            chosen,
        )

    @property
    def needed(self) -> tuple[str, ...]:
        """The groupings that the blocks must tell apart, but for strata."""
        return tuple(dict.fromkeys(grouping.name for grouping in (*self.by, *self.chosen)))

    @property
    def every_name(self) -> frozenset[str]:
        """All groupings that it looks at."""
        return frozenset({*self.needed, *(grouping.name for grouping in self.strata)})

    @property
    def by_name(self) -> str | None:
        """What people are grouped by, in words."""
        return " x ".join(grouping.name for grouping in self.by) or None

    @property
    def words(self) -> str | None:
        """The condition, in one spelling."""
        return None if self.condition is None else str(self.condition)


def _listed(role: str, names: Names) -> tuple[str, ...]:
    if names is None:
        return ()
    if isinstance(names, str):
        return (names,)
    listed = tuple(names)
    if not all(isinstance(name, str) for name in listed):
        raise InputError(f"{role} must be the name of a grouping, or a list of names")
    if len(set(listed)) < len(listed):
        raise InputError(f"{role}: groupings must differ, got {', '.join(listed)}")
    return listed


def _no_grouping(name: str, groupings: Iterable[str]) -> str:
    names = list(groupings)
    if not names:
        return f"the protocol has no groupings, so there is no {name!r}"
    return unknown("grouping", name, names)


def _group_name(group: object) -> str:
    """A group of several groupings may be a list of levels."""
    if isinstance(group, list | tuple):
        return _APART.join(map(group_label, group))
    return group_label(group)


def _condition(where: Where, groupings: Mapping[str, Grouping]) -> conditions.Condition | None:
    """A condition in text, or levels by grouping: {"sex": "F", "age_band": ["50 to 64"]}."""
    if where is None:
        return None
    if isinstance(where, str):
        return conditions.parse(where)
    parts: list[conditions.Condition] = []
    for name, levels in where.items():
        if name not in groupings:
            raise InputError(f"where: {_no_grouping(name, groupings)}")
        several = levels if isinstance(levels, list | tuple | set | frozenset) else [levels]
        wanted = [group_label(level) for level in several]
        names = (*groupings[name].names, *NOBODYS)
        for level in wanted:
            if groupings[name].names and level not in names:
                raise InputError(f"where: {unknown('level', level, names[:-2], f' of {name}')}")
        if not wanted:
            raise InputError(f"where: {name} must have at least one level, got none")
        literals = tuple(conditions.Literal(level) for level in wanted)
        column = conditions.Column(name)
        parts.append(
            conditions.Comparison(column, "==", literals[0])
            if len(literals) == 1
            else conditions.In(column, literals)
        )
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else conditions.And(tuple(parts))


def _groupings_of(
    condition: conditions.Condition, groupings: Sequence[Grouping]
) -> tuple[Grouping, ...]:
    """The groupings that a condition names, by their name or their column."""
    chosen = []
    for name in conditions.columns(condition):
        named = [grouping for grouping in groupings if name == grouping.name]
        of_column = [grouping for grouping in groupings if name == grouping.column]
        if not named and not of_column:
            every_name = dict.fromkeys(n for g in groupings for n in (g.name, g.column))
            raise InputError(
                f"where: {_no_grouping(name, every_name)}. A book answers conditions over "
                "groupings; others can be asked of the centers"
            )
        chosen += (named or of_column)[:1]
    return tuple(dict.fromkeys(chosen))


# --- what a condition says of a level -----------------------------------------------------------


def holds(
    condition: conditions.Condition, levels: Mapping[str, str], groupings: Sequence[Grouping]
) -> bool | None:
    """Whether a condition holds of people with these levels; None where a level is missing.

    Examples
    --------
    >>> age = Grouping(name="age_band", of="age", cuts=(50, 65))
    >>> holds(conditions.parse("age >= 65"), {"age_band": "50 to under 65"}, [age])
    False
    >>> holds(conditions.parse("age < 60"), {"age_band": "50 to under 65"}, [age])
    Traceback (most recent call last):
        ...
    unpooled.errors.InputError: where: age < 60 needs a cut at 60; age_band is cut at 50, 65
    """
    match condition:
        case conditions.Not(part):
            inner = holds(part, levels, groupings)
            return None if inner is None else not inner
        case conditions.And(parts):
            every = [holds(part, levels, groupings) for part in parts]
            return False if False in every else None if None in every else True
        case conditions.Or(parts):
            every = [holds(part, levels, groupings) for part in parts]
            return True if True in every else None if None in every else False
        case conditions.Missing(column):
            return levels[_named(column.name, groupings).name] == MISSING_LEVEL
        case conditions.In(column, values):
            grouping = _named(column.name, groupings)
            allowed = [
                _compare(conditions.Comparison(column, "==", value), grouping, levels)
                for value in values
            ]
            return True if True in allowed else None if None in allowed else False
        case conditions.Comparison(column, _, conditions.Literal()):
            return _compare(condition, _named(column.name, groupings), levels)
        case _:
            raise InputError(f"where: a book cannot compare columns with each other: {condition}")


def _named(name: str, groupings: Sequence[Grouping]) -> Grouping:
    by_name = (grouping for grouping in groupings if grouping.name == name)
    by_column = (grouping for grouping in groupings if grouping.column == name)
    return next(by_name, None) or next(by_column)


def _compare(
    part: conditions.Comparison, grouping: Grouping, levels: Mapping[str, str]
) -> bool | None:
    """A comparison with a value: of a level itself, or of all numbers of a band."""
    assert isinstance(part.right, conditions.Literal)
    value, level = part.right.value, levels[grouping.name]
    if level == MISSING_LEVEL:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if grouping.cuts is not None and number:
        return _band(part, grouping, level, float(value))
    name = str(value).lower() if isinstance(value, bool) else group_label(value)
    if part.operator in ("==", "!="):
        named_levels = (*grouping.names, OTHER)
        if grouping.names and name not in named_levels:
            raise InputError(f"where: {unknown('level', name, grouping.names)}")
        return (level == name) == (part.operator == "==")
    try:
        one = float(level)
        limit = float(value)
    except ValueError:
        raise InputError(
            f"where: {part} compares levels of {grouping.name} that are no numbers. "
            f"Hint: {grouping.name} in (...)"
        ) from None
    return _RELATIONS[part.operator](one, limit)


_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _band(part: conditions.Comparison, grouping: Grouping, level: str, value: float) -> bool | None:
    """Bands are [low, high): only a comparison with a cut says the same of all in a band."""
    cuts = grouping.cuts or ()
    if part.operator not in ("<", ">=") or value not in cuts:
        at = ", ".join(f"{cut:g}" for cut in cuts)
        raise InputError(
            f"where: {part} needs a cut at {value:g}; {grouping.name} is cut at {at}"
            + ("" if part.operator in ("<", ">=") else ". Hint: ask < or >=")
        )
    if level == OTHER:
        return None
    from_cut = grouping.names.index(level) > cuts.index(value)
    return from_cut == (part.operator == ">=")


# --- what blocks stand for ----------------------------------------------------------------------


@dataclass(slots=True)
class Meaning:
    """What the blocks of one center stand for in an analysis."""

    center: str
    places: dict[str, tuple[str, str | None]] = field(default_factory=dict)  # group and stratum
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)  # and their levels
    merged: dict[tuple[str, ...], int] = field(default_factory=dict)  # groupings → people left out
    ungrouped: int = 0  # people with another level of the grouping, or none

    @property
    def lost(self) -> int:
        """People left out, since levels are merged."""
        return sum(self.merged.values())

    def notes(self, selection: Selection) -> list[Merged | Ungrouped]:
        """What a result says of it."""
        notes: list[Merged | Ungrouped] = [
            Merged(self.center, people, groupings) for groupings, people in self.merged.items()
        ]
        if self.ungrouped and selection.groups is None:
            names = tuple(grouping.name for grouping in selection.by)
            notes.append(Ungrouped(self.center, self.ungrouped, names))
        return notes


def levels_by_grouping(label: str, groupings: Sequence[Grouping]) -> dict[str, tuple[str, ...]]:
    """For each grouping the levels that a block holds; raises MessageError."""
    levels = block_levels(label)
    if len(levels) != len(groupings) or not all(levels):
        raise MessageError(f"this is no block of these groupings: {label!r}")
    return {grouping.name: level for grouping, level in zip(groupings, levels, strict=True)}


def meaning(
    center: str,
    selection: Selection,
    groupings: Sequence[Grouping],
    people: Mapping[str, int],
) -> Meaning:
    """To which group and stratum each block of a center belongs, and who is left out."""
    meant = Meaning(center)
    for label, n in people.items():
        levels = levels_by_grouping(label, groupings)
        group = _group_of(selection, levels, n, meant)
        if group is None:
            continue
        several = tuple(g.name for g in selection.strata if len(levels[g.name]) > 1)
        if several:  # within a coarser stratum people would differ in more than their group
            meant.merged[several] = meant.merged.get(several, 0) + n
            continue
        stratum = _APART.join(levels[grouping.name][0] for grouping in selection.strata)
        meant.places[label] = group, stratum if selection.strata else None
    return meant


def _group_of(
    selection: Selection, levels: Mapping[str, tuple[str, ...]], people: int, meant: Meaning
) -> str | None:
    """The one group that all people of a block belong to; None where they belong to none."""
    names = selection.needed
    groups: dict[str | None, tuple[str, ...]] = {}
    nobodys = False
    for combination in product(*(levels[name] for name in names)):
        of = dict(zip(names, combination, strict=True))
        inside = selection.condition is None or holds(selection.condition, of, selection.chosen)
        part = tuple(of[grouping.name] for grouping in selection.by)
        nobodys |= bool(inside) and any(level in NOBODYS for level in part)
        groups[_wanted(selection, part) if inside else None] = part
    if groups.keys() == {None}:
        meant.ungrouped += people if nobodys else 0
        return None
    if len(groups) > 1:
        several = tuple(name for name in names if len(levels[name]) > 1)
        meant.merged[several] = meant.merged.get(several, 0) + people
        return None
    ((group, part),) = groups.items()
    assert group is not None
    meant.groups[group] = part
    return group


def _wanted(selection: Selection, levels: Sequence[str]) -> str | None:
    if not selection.by:
        return EVERYBODY
    name = _APART.join(levels)
    if selection.groups is not None:
        return name if name in selection.groups else None
    return None if any(level in NOBODYS for level in levels) else name


def groups_in_order(selection: Selection, there: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The groups of an analysis: as asked for; else as declared, or else by name.

    `there` has the levels of each group that somebody has.
    """
    if not selection.by:
        return (EVERYBODY,)
    if selection.groups is not None:
        return selection.groups
    ranks = []
    for place, grouping in enumerate(selection.by):
        names = grouping.names or in_order({levels[place] for levels in there.values()})
        ranks.append({name: rank for rank, name in enumerate(names)})
    return tuple(
        sorted(
            there,
            key=lambda group: [
                rank.get(level, len(rank)) for rank, level in zip(ranks, there[group], strict=True)
            ],
        )
    )


def as_levels(selection: Selection) -> dict[str, tuple[str, ...]] | None:
    """The condition as levels of each grouping; None where it is no such condition."""
    if selection.condition is None:
        return {}
    names = [grouping.name for grouping in selection.chosen]
    each = [(*grouping.names, *NOBODYS) for grouping in selection.chosen]
    if not all(grouping.names for grouping in selection.chosen):
        return None
    inside = [
        combination
        for combination in product(*each)
        if holds(selection.condition, dict(zip(names, combination, strict=True)), selection.chosen)
    ]
    levels = {
        name: tuple(dict.fromkeys(combination[i] for combination in inside))
        for i, name in enumerate(names)
    }
    whole = 1
    for named in levels.values():
        whole *= len(named)
    return levels if len(inside) == whole else None
