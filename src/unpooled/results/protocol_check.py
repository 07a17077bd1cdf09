"""What the centers would tell for a protocol: a dry run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from unpooled.center.data.variables import Codebook, Variable
from unpooled.center.questions import (
    MISSING_LEVEL,
    OTHER,
    CategoryQuestion,
    CheckedPart,
    CohortQuestion,
    LatticeQuestion,
    Protocol,
    ProtocolCheck,
    Reason,
    SizesQuestion,
    block_levels,
)
from unpooled.center.questions.joint import LEAST_MEMBERS
from unpooled.errors import MessageError
from unpooled.results.data_frame import data_frame
from unpooled.results.provenance.refusals import CenterRefusal
from unpooled.results.report.parts import Grid, Part, Remarks, Sentences, parts_html, parts_text

_ENDS = "lower", "upper"
WHY = "fewer than {least} people, or too few together with an earlier answer"


_BESIDE = (
    "together with other parts of the protocol, or earlier answers, it could reveal something "
    "about fewer than {limit} people"
)


@dataclass(frozen=True, slots=True)
class CheckedGroupings:
    """Groupings that are crossed, at one center: the blocks of which it would tell.

    `merged` has for each grouping the blocks in which its levels are released together.
    """

    center: str
    groupings: tuple[str, ...]
    blocks: tuple[tuple[tuple[str, ...], ...], ...]
    merged: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """The groupings as plain values."""
        return {
            "center": self.center,
            "groupings": list(self.groupings),
            "blocks": [[list(levels) for levels in block] for block in self.blocks],
            "merged": dict(self.merged),
        }


@dataclass(frozen=True, slots=True, repr=False)
class ProtocolCheckResult:
    """What each center would tell for a protocol, what it merges, and what is lost; no count."""

    protocol: Protocol
    checks: Mapping[str, ProtocolCheck]
    refusals: tuple[CenterRefusal, ...] = ()  # of whole centers
    variables: Codebook = field(default_factory=dict)  # what is public of them

    @property
    def groupings(self) -> tuple[CheckedGroupings, ...]:
        """Center by center, the groupings that are crossed with each other."""
        return tuple(
            _groupings(center, part)
            for center, check in self.checks.items()
            for part in check.parts
            if isinstance(part.question, SizesQuestion)
        )

    @property
    def lost(self) -> tuple[CenterRefusal, ...]:
        """Which variables a center would not tell, by which groupings or of which block."""
        return tuple(dict.fromkeys(self._lost()))

    def _lost(self) -> Iterator[CenterRefusal]:
        for center, check in self.checks.items():
            for part in check.parts:
                sizes = isinstance(part.question, SizesQuestion)
                variable = None if sizes else part.question.variable
                by = " x ".join(grouping.name for grouping in part.question.blocks or ())
                for refusal in part.refusals:
                    whole = f"by {by}" if by else None
                    block = whole if refusal.name is None else _readable(refusal.name)
                    rule = refusal.rule
                    if refusal.reason is Reason.WOULD_ISOLATE:
                        rule = _BESIDE.format(limit=refusal.limit)
                    yield CenterRefusal(center, block, refusal.reason.value, rule, variable)

    @property
    def advice(self) -> tuple[str, ...]:
        """What a lower priority of a grouping would cost, and which one to drop."""
        return tuple(self._advice())

    @property
    def joined(self) -> tuple[str, ...]:
        """The centers whose people would count in the joint center."""
        return tuple(r.center for r in self.refusals if r.reason == Reason.JOINED)

    def _advice(self) -> Iterator[str]:
        if 0 < len(self.joined) < LEAST_MEMBERS:
            yield (
                f"There is no joint center: it takes {LEAST_MEMBERS} centers, and people of "
                f"{len(self.joined)} would count in it: {', '.join(self.joined)}."
            )
        elif self.joined:
            yield from self._undeclared()
            yield (
                f"A joint center brings back {len(self.joined)} of the centers: "
                f"{', '.join(self.joined)}."
            )
        silent = [c for c, check in self.checks.items() if not any(p.blocks for p in check.parts)]
        if self.checks and len(silent) == len(self.checks):
            lacking = self._lacking()
            which = f"Drop {lacking}" if lacking else "Ask larger centers, or a joint center"
            yield f"No center can answer anything. {which}."
        yield from self._spelled_twice()
        for names in dict.fromkeys(one.groupings for one in self.groupings if one.blocks):
            same = [one for one in self.groupings if one.groupings == names and one.blocks]
            merged = {name: sum(one.merged[name] for one in same) for name in names}
            blocks = sum(len(one.blocks) for one in same)
            for name, count in merged.items():
                if count:
                    yield (
                        f"{name} is merged in {count} of {blocks} blocks of "
                        f"{' x '.join(names)}. Named earlier, it stays apart and the "
                        "others are merged instead; without it, they are split further."
                    )
            whole = [name for name, count in merged.items() if not count and len(names) > 1]
            if whole and any(merged.values()):
                yield (
                    f"{' and '.join(whole)} {'is' if len(whole) == 1 else 'are'} kept apart "
                    "everywhere: a lower priority would cost this where people are few."
                )

    def _undeclared(self) -> Iterator[str]:
        for outcome in self.protocol.survival:
            if outcome.event_is is None:
                yield _no_joint(f"which value of {outcome.event} means the event (event_is)")
        for grouping in next(self.protocol.families()):
            if not grouping.names and not self._tells(SizesQuestion, None):
                yield _no_joint(f"the levels of {grouping.name} (levels), which no center tells")
        for name, variable in self.protocol.variables.items():
            if self._tells(CategoryQuestion, name) or variable.levels:
                continue
            if variable.kind == "category":
                yield _no_joint(f"the levels of {name} (levels), which no center tells")
                continue
            public = self.variables.get(name, Variable())
            limits = variable.lower, variable.upper, public.lower, public.upper
            given = {end for end, limit in zip(_ENDS * 2, limits, strict=True) if limit is not None}
            lacking = [end for end in _ENDS if end not in given]
            if lacking and not self._tells(LatticeQuestion, name):
                yield _no_joint(
                    f"between which limits {name} lies ({' and '.join(lacking)}), which no center "
                    "tells"
                )

    def _tells(self, kind: type[CohortQuestion], variable: str | None) -> bool:
        """Whether some center would tell of a variable in this form; None: of any."""
        return any(
            bool(part.blocks)
            for check in self.checks.values()
            for part in check.parts
            if isinstance(part.question, kind) and variable in (None, part.question.variable)
        )

    def _spelled_twice(self) -> Iterator[str]:
        """Levels that differ in case or spaces only."""
        levels: dict[tuple[str, str], set[str]] = {}
        for one in self.groupings:
            for block in one.blocks:
                for name, some in zip(one.groupings, block, strict=True):
                    for level in some:
                        levels.setdefault((name, level.strip().casefold()), set()).add(level)
        for (name, _), spellings in levels.items():
            if len(spellings) > 1:
                shown = " and ".join(map(repr, sorted(spellings)))
                yield f"{name}: {shown} look like one level. Spell it one way at the centers."

    def _lacking(self) -> str:
        """The groupings that no center has."""
        named = {refusal.rule: refusal for refusal in self.lost if refusal.group is not None}
        columns = {g.column: g.name for g in self.protocol.groups}
        lacking = [columns[r.group] for r in named.values() if r.group in columns]
        return f"the grouping {' and '.join(map(repr, lacking))}" if lacking else ""

    @property
    def title(self) -> str:
        """What was checked."""
        return f"Check of the protocol {self.protocol.title}"

    def parts(self) -> list[Part]:
        """What is shown: the blocks of each center, what is lost, and what could be changed."""
        rows = [
            [
                one.center,
                " x ".join(one.groupings) or "everybody",
                str(len(one.blocks)),
                ", ".join(f"{name} in {n}" for name, n in one.merged.items() if n) or "nothing",
            ]
            for one in self.groupings
        ]
        merges = [
            (one.center, _told_together(one, self.protocol))
            for one in self.groupings
            if any(one.merged.values())
        ]
        lost = [
            (r.center, f"{r.variable or 'all'}{f' {r.group}' if r.group else ''}: {r.rule}")
            for r in self.lost
        ]
        centers = [(r.center, r.rule) for r in self.refusals]
        return [
            Grid(["center", "groupings", "blocks", "merged"], rows),
            Sentences(self.advice),
            Remarks("Merged", merges),
            Remarks("Lost", [*lost, *centers]),
        ]

    def to_dict(self) -> dict[str, Any]:
        """The check as plain values."""
        return {
            "protocol": self.protocol.title,
            "k": {center: check.k for center, check in self.checks.items()},
            "groupings": [one.to_dict() for one in self.groupings],
            "lost": [refusal.to_dict() for refusal in self.lost],
            "advice": list(self.advice),
            "refusals": [refusal.to_dict() for refusal in self.refusals],
        }

    def to_frame(self) -> Any:
        """A row per center and block as a data frame."""
        return data_frame(
            [
                {
                    "center": one.center,
                    "groupings": " x ".join(one.groupings),
                    "block": ", ".join(" or ".join(levels) for levels in block),
                }
                for one in self.groupings
                for block in one.blocks
            ]
        )

    def __str__(self) -> str:
        return parts_text(self.title, self.parts())

    def __repr__(self) -> str:
        return parts_text(self.title, self.parts(), most=12)

    def _repr_html_(self) -> str:
        return parts_html(self.parts())


def _no_joint(what: str) -> str:
    return f"There is no joint center until the protocol says {what}."


def _groupings(center: str, part: CheckedPart) -> CheckedGroupings:
    names = tuple(grouping.name for grouping in part.question.blocks or ())
    blocks = tuple(block_levels(label) for label in part.blocks)
    merged = {
        name: sum(len(_named(block[place])) > 1 for block in blocks)
        for place, name in enumerate(names)
    }
    return CheckedGroupings(center, names, blocks, merged)


def _named(levels: tuple[str, ...]) -> list[str]:
    """The levels that stand for people whom somebody asked for."""
    return [level for level in levels if level not in (OTHER, MISSING_LEVEL)]


def _told_together(checked: CheckedGroupings, protocol: Protocol) -> str:
    """Which levels are released together, and why."""
    k = protocol.k or "K"
    least = LatticeQuestion(variable="").needs(k) if isinstance(k, int) else "2 K"
    together = {
        f"{name} {' or '.join(block[place])}"
        for place, name in enumerate(checked.groupings)
        for block in checked.blocks
        if len(_named(block[place])) > 1
    }
    return f"{'; '.join(sorted(together))} ({WHY.format(least=least)})"


def _readable(name: str) -> str:
    """A block's name, or a column's, in words."""
    try:
        levels = block_levels(name)
    except MessageError:
        return name
    return ", ".join(" or ".join(some) for some in levels)
