"""The book: all that came back for a protocol. Every analysis is computed from it; nobody is asked.

A center released each variable once, by blocks. An analysis finds the blocks that belong to its
groups and adds them up; how, is the same as for a federation.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.metadata import version
from itertools import combinations
from math import inf, sqrt
from pathlib import Path
from typing import Any, TypeVar, Unpack, overload

import msgspec
import numpy as np

from unpooled.analyses.crosstab import LevelCells, LevelTables, combine_crosstab
from unpooled.analyses.numbers.compare import (
    BY_CENTER,
    KRUSKAL,
    CompareOptions,
    Comparing,
    GroupTests,
    Unit,
    UnitRanks,
    combine_comparison,
    combine_groups,
    combine_pooled,
)
from unpooled.analyses.numbers.describe import combine_description
from unpooled.analyses.numbers.parallel import (
    Tables,
    can_place,
    combine_distribution,
    common_lattice,
    read_table,
)
from unpooled.analyses.numbers.quantiles import CELL_METHODS, combine_quantiles
from unpooled.analyses.protocols.ask_protocol import ProtocolReplies
from unpooled.analyses.protocols.blocks import (
    NOBODYS,
    Meaning,
    Names,
    Selection,
    Where,
    as_levels,
    groups_in_order,
    levels_by_grouping,
    meaning,
)
from unpooled.analyses.request import Request, group_label, refuse
from unpooled.analyses.specification import select_methods
from unpooled.analyses.survival import (
    BlockAnswer,
    BlockView,
    checked_times,
    combine_survival,
    outcome_of_blocks,
)
from unpooled.analyses.table1 import (
    Quartiles,
    Shown,
    VariableRow,
    category_row,
    heap_notes,
    number_row,
    table_of,
)
from unpooled.center.data.variables import Variable
from unpooled.center.questions import (
    EVERYBODY,
    Aggregate,
    Answer,
    Categories,
    CategoryQuestion,
    CohortQuestion,
    Grouping,
    GroupMoments,
    LatticeQuestion,
    LatticeTables,
    LevelCount,
    Moments,
    MomentsQuestion,
    Protocol,
    ProtocolAnswer,
    ProtocolQuestion,
    ProtocolVariable,
    Reason,
    Refusal,
    Signature,
    Sizes,
    SizesQuestion,
    SurvivalQuestion,
    SurvivalTables,
    block_levels,
    decode_answer,
)
from unpooled.center.records.signatures import are_valid, signatures
from unpooled.errors import InputError, MessageError, RefusedError, unknown
from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.few_cells import Completed, completed, matched, nodes_of, normal_nodes
from unpooled.maths.density.heaps import are_at_tens, heaps, shared_in
from unpooled.maths.density.placing import Placed, place
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, OpenScale, public_lattice
from unpooled.maths.moments import MeanSD
from unpooled.maths.quantiles.quantile import check_probabilities
from unpooled.maths.ranks.cross_center import placed_ranks
from unpooled.maths.ranks.group_ranks import placed_group_ranks
from unpooled.maths.ranks.mann_whitney import Alternative, RankStatistics
from unpooled.results.crosstab import CrosstabResult
from unpooled.results.numbers.compare import CompareResult, PooledComparison
from unpooled.results.numbers.describe import DescribeResult
from unpooled.results.numbers.distribution import DistributionResult
from unpooled.results.numbers.many_variables import ManyComparisons, ManyQuantiles, each
from unpooled.results.numbers.quantiles import DEFAULT_P, QuantilesResult, QuantileSummary
from unpooled.results.provenance.record import Estimated, FewCells, Note, Record, joint_members
from unpooled.results.provenance.refusals import CenterRefusal, center_refusals
from unpooled.results.provenance.releases import Received, Releases
from unpooled.results.survival import SurvivalResult
from unpooled.results.table1 import Layout, Table1Result

A = TypeVar("A", bound=Aggregate)
Q = TypeVar("Q", bound=CohortQuestion)
R = TypeVar("R", CompareResult, QuantileSummary)

FORMAT = "unpooled book 1"
COMPARE_METHODS = (*BY_CENTER, "parallel")


class _CompareOptions(CompareOptions, total=False):
    """What `compare` takes besides, of one variable or several."""

    where: Where
    strata: Names


@dataclass(frozen=True, slots=True)
class Page:
    """What one center said to the protocol, and the very bytes."""

    center: str
    payload: bytes
    answer: Answer = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "answer", decode_answer(self.payload))

    @property
    def k(self) -> int:
        """The K that was in force."""
        whole = self.answer.aggregate
        return whole.k if isinstance(whole, ProtocolAnswer) else self.answer.k

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """Who signed it: the center, or the keepers of a joint center."""
        return signatures(self.answer)

    def is_signed(self, protocol: Protocol) -> bool:
        """Whether the center said this to the protocol, by its signature; refusals have none."""
        if not isinstance(self.answer.aggregate, ProtocolAnswer):
            return True
        itself = {signature.center for signature in self.signatures} == {self.center}
        return (itself or joint_members(self.center) > 0) and are_valid(self.answer, protocol)

    def parts(self) -> Iterator[tuple[CohortQuestion, Answer]]:
        """Each question of the protocol, and what was said to it."""
        whole = self.answer.aggregate
        for part in whole.parts if isinstance(whole, ProtocolAnswer) else ():
            yield part.question, part.answer


@dataclass(frozen=True, slots=True)
class Told:
    """What a center said of one variable by blocks, as far as an analysis looks at it."""

    center: str
    k: int
    groupings: tuple[Grouping, ...]
    aggregate: Any
    meaning: Meaning


@dataclass(slots=True)
class Chapter:
    """What all centers said of one variable, for one analysis."""

    parts: list[Told]
    refusals: list[tuple[str, Refusal]]
    selection: Selection
    groups: tuple[str, ...] = ()
    notes: list[FewCells | Estimated] = field(default_factory=list)

    def __post_init__(self) -> None:
        there: dict[str, tuple[str, ...]] = {}
        for one in self.parts:
            there |= one.meaning.groups
        self.groups = groups_in_order(self.selection, there)
        lacking = [group for group in self.groups if group not in there]
        if there and lacking:
            shown = ", ".join(map(repr, lacking))
            in_order_there = groups_in_order(replace(self.selection, groups=None), there)
            raise InputError(
                f"groups: no center tells {shown} of {self.selection.by_name!r} by itself. "
                f"There are: {', '.join(in_order_there)}"
            )
        if not there and self.selection.groups and self.parts:
            names = self.selection.by[0].names if len(self.selection.by) == 1 else ()
            unknown_groups = [g for g in self.groups if names and g not in (*names, *NOBODYS)]
            if unknown_groups:
                shown = ", ".join(map(repr, unknown_groups))
                raise InputError(
                    f"groups: no center tells {shown} of {self.selection.by_name!r} by itself. "
                    f"There are: {', '.join(names)}"
                )
        if not there and not any(one.meaning.lost for one in self.parts):
            if self.refusals:
                refuse(self.refusals)
            ungrouped = sum(one.meaning.ungrouped for one in self.parts)
            if ungrouped:
                levels = "; ".join(f"{g.name}: {', '.join(g.names)}" for g in self.selection.by)
                raise InputError(
                    f"{ungrouped:,} people have none of the protocol's levels ({levels}). "
                    "Hint: spell them as the centers do, in a new protocol"
                )
            raise InputError("the book has nobody whom this describes. Hint: look at by and where")
        if not there:
            lost = "; ".join(
                note.note for one in self.parts for note in one.meaning.notes(self.selection)
            )
            raise InputError(f"the book has nobody by themselves: {lost}")

    def request(self, variable: str) -> Request:
        """What results say was asked."""
        named = self.groups if self.selection.by else None
        return Request(variable, self.selection.by_name, named, self.selection.words)


class Book:
    """What the centers released for a protocol; it answers every analysis without asking again.

    Attributes
    ----------
    protocol
        The plan that was asked.
    members
        The centers whose people count in a joint center, which stands among `centers`.
    """

    def __init__(
        self,
        protocol: Protocol,
        received: Iterable[Received],
        refused: Iterable[tuple[str, Refusal]] = (),
        centers: Sequence[str] | None = None,
        members: Sequence[str] = (),
        no_joint: str | None = None,
    ) -> None:
        self.protocol = protocol
        self.members = tuple(members)
        self.no_joint = no_joint  # why there is no joint center, where one was wanted; not kept
        self._joint = False
        self._pages: dict[str, Page] = {}
        self._shelves: dict[tuple[str, tuple[str, ...]], Shelf] = {}
        self._refused = list(refused)
        for release in received:
            question = release.question
            if not isinstance(question, ProtocolQuestion) or question.protocol != protocol:
                raise InputError(f"{release.center} answered another protocol, and stays separate")
            self._joint |= question.joint
            try:
                page = Page(release.center, release.payload)
            except MessageError:
                self._refused.append((release.center, Refusal(reason=Reason.UNREADABLE_ANSWER)))
                continue
            if not page.is_signed(protocol):
                self._refused.append((release.center, Refusal(reason=Reason.WRONG_SIGNATURE)))
                continue
            if isinstance(page.answer.aggregate, ProtocolAnswer):
                self._pages[release.center] = page
            self._refused += [(release.center, refusal) for refusal in page.answer.refusals]
        every = centers or dict.fromkeys((*self._pages, *(c for c, _ in self._refused)))
        self.asked = tuple(every)

    @classmethod
    def of(cls, replies: ProtocolReplies) -> "Book":
        """The book of what came back for a protocol."""
        about = replies.received, replies.refusals, replies.centers, replies.members
        joins = any(refusal.reason is Reason.JOINED for _, refusal in replies.refusals)
        return cls(replies.protocol, *about, replies.no_joint if joins else None)

    # --- what it is -------------------------------------------------------------------------

    @property
    def centers(self) -> tuple[str, ...]:
        """The centers that are in it."""
        return tuple(self._pages)

    @property
    def missing(self) -> tuple[str, ...]:
        """The centers that were asked and are not in it."""
        there = {*self._pages, *self.members}
        return tuple(center for center in self.asked if center not in there)

    @property
    def refusals(self) -> tuple[CenterRefusal, ...]:
        """Why they are not."""
        return center_refusals(
            (center, refusal) for center, refusal in self._refused if center in self.missing
        )

    @property
    def releases(self) -> Releases:
        """The very bytes that left the centers."""
        question = ProtocolQuestion(protocol=self.protocol, joint=self._joint)
        return Releases(
            tuple(Received(page.center, question, page.payload) for page in self._pages.values())
        )

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The public keys that signed each answer: one of a center, three of a joint one's keepers.

        A center's is in the first line of its ledger (`unpooled ledger show`).
        """
        return {
            page.center: tuple(signature.key for signature in page.signatures)
            for page in self._pages.values()
        }

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that it can describe; times of outcomes are in `survival` alone."""
        times = self._times
        return tuple(name for name in self.protocol.variables if name not in times)

    @property
    def _times(self) -> frozenset[str]:
        return frozenset(outcome.time for outcome in self.protocol.survival)

    @cached_property
    def codebook(self) -> dict[str, Variable]:
        """What the protocol says of variables, for tables and charts."""
        return {
            name: Variable(
                unit=declared.unit,
                resolution=declared.resolution,
                lower=declared.lower,
                upper=declared.upper,
            )
            for name, declared in self.protocol.variables.items()
        }

    def merged_with(self, other: "Book") -> "Book":
        """Both together: the centers of another book of the same protocol come into this one."""
        if other.protocol != self.protocol:
            raise InputError(
                "the books are of different protocols, "
                f"{self.protocol.title!r} and {other.protocol.title!r}: each stays by itself"
            )
        twice = [
            center
            for center, page in other._pages.items()
            if center in self._pages and self._pages[center].payload != page.payload
        ]
        if twice:
            keys = any(self.keys[center] != other.keys[center] for center in twice)
            signed = ", signed by another key" if keys else ""
            raise InputError(
                f"both books have {', '.join(twice)}, and say something else of it{signed}: "
                "each stays by itself"
            )
        received = {r.center: r for r in (*self.releases, *other.releases)}.values()
        asked = tuple(dict.fromkeys((*self.asked, *other.asked)))
        members = tuple(dict.fromkeys((*self.members, *other.members)))
        refused = [*self._refused, *other._refused]
        return Book(self.protocol, received, refused, asked, members, other.no_joint)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"Book of {self.protocol.title!r}: {len(self._pages)} centers"]
        for page in self._pages.values():
            parts = list(page.parts())
            answered = sum(answer.aggregate is not None for _, answer in parts)
            people = self._people(page)
            shown = "" if people is None else f", {people:,} people"
            lines.append(f"  {page.center}: {answered} of {len(parts)} parts{shown}, K = {page.k}")
            keys = ", ".join(f"{one.key[:16]}..." for one in page.signatures)
            lines.append(f"    signed, key {keys}")
        if self.members:
            lines.append(f"  in the joint center: {', '.join(self.members)}")
        lines += [f"  {center}: not in the book" for center in self.missing]
        lines += [f"no joint center: {self.no_joint}"] if self.no_joint else []
        names = [grouping.name for grouping in self.protocol.groups]
        lines.append(f"variables: {', '.join(self.variables) or 'none'}")
        lines.append(f"by, where, strata: {', '.join(names) or 'no groupings'}")
        lines += [f"survival: {o.time}, event={o.event!r}" for o in self.protocol.survival]
        return "\n".join(lines)

    def _people(self, page: Page) -> int | None:
        """Everybody of a center, as its first family of blocks counts them."""
        for question, answer in page.parts():
            if isinstance(question, SizesQuestion) and isinstance(answer.aggregate, Sizes):
                return sum(size.n for size in answer.aggregate.sizes)
        return None

    # --- the file ---------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the book to one file, which `Book.open` verifies.

        It holds nothing that did not leave the centers, so it can be published.
        """
        file = Path(path)
        content = _Content(
            format=FORMAT,
            version=version("unpooled"),
            protocol=self.protocol,
            asked=self.asked,
            members=self.members,
            joint=self._joint,
            pages=tuple(
                _PageFile(
                    center=page.center,
                    k=page.k,
                    sha256=hashlib.sha256(page.payload).hexdigest(),
                    payload=page.payload.decode("utf-8"),
                )
                for page in self._pages.values()
            ),
            refused=tuple((center, refusal) for center, refusal in self._refused),
        )
        body = msgspec.json.encode(content)
        digest = hashlib.sha256(body).hexdigest()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body + b"\n" + digest.encode() + b"\n")
        except OSError as error:
            raise InputError(f"book {str(path)!r} cannot be written: {error.strerror}") from error
        return file

    @classmethod
    def open(cls, path: str | Path) -> "Book":
        """The book of a file; an InputError says what in it is damaged."""
        name = f"book {str(path)!r}"
        try:
            raw = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"{name} cannot be read: {error.strerror}") from error
        body, _, digest = raw.rstrip(b"\n").rpartition(b"\n")
        if not body.startswith(b'{"format":"unpooled book '):
            raise InputError(f"{name} is no book of unpooled, or its beginning is damaged")
        try:
            content = msgspec.json.decode(body, type=_Content)
        except msgspec.MsgspecError as error:
            raise InputError(f"{name} is damaged: {error}") from error
        except InputError as error:
            raise InputError(f"{name} is damaged: {error}") from error
        _check_signatures(name, content)
        for page in content.pages:
            if hashlib.sha256(page.payload.encode()).hexdigest() != page.sha256:
                raise InputError(f"{name} is damaged: what {page.center} said was changed")
        if hashlib.sha256(body).hexdigest().encode() != digest:
            raise InputError(f"{name} is damaged: it was changed after it was written")
        question = ProtocolQuestion(protocol=content.protocol, joint=content.joint)
        received = [Received(p.center, question, p.payload.encode()) for p in content.pages]
        book = cls(content.protocol, received, content.refused, content.asked, content.members)
        unread = [page.center for page in content.pages if page.center not in book.centers]
        if unread:
            raise InputError(
                f"{name} was written by unpooled {content.version}: what {', '.join(unread)} said "
                f"cannot be read by {version('unpooled')}"
            )
        return book

    # --- what is in it ----------------------------------------------------------------------

    def _grouping(self, name: str) -> Grouping | None:
        return next((g for g in self.protocol.groups if g.name == name), None)

    def _declared(self, variable: str) -> ProtocolVariable:
        """A variable of the protocol; an InputError names the nearest."""
        times = self._times
        if variable in self.protocol.variables and variable not in times:
            return self.protocol.variables[variable]
        if variable in times:
            raise InputError(
                f"{variable!r} is the time of an outcome, which has a status. "
                f"Hint: book.survival({variable!r}, ...)"
            )
        names = [*self.protocol.variables, *(g.name for g in self.protocol.groups), *times]
        raise InputError(f"the protocol has {unknown('variable', variable, names)[9:]}")

    def _chapter(
        self,
        kind: type[Q],
        expected: type[A],
        about: Callable[[Q], bool],
        people: Callable[[A], Mapping[str, int]],
        selection: Selection,
        merged: Callable[[A], Mapping[str, int]] | None = None,
    ) -> Chapter:
        """Of each center the blocks that leave out the fewest people of an analysis.

        Of blocks that leave out as many, those of which the fewest are in cells of merged levels.
        """
        parts: list[Told] = []
        refusals: list[tuple[str, Refusal]] = []
        asked = False
        for page in self._pages.values():
            best: Told | None = None
            least = (0, 0)
            refused: list[tuple[str, Refusal]] = []
            for question, answer in page.parts():
                if not isinstance(question, kind) or not about(question):
                    continue
                groupings = question.blocks or ()
                if not selection.every_name <= {grouping.name for grouping in groupings}:
                    continue
                asked = True
                if not isinstance(answer.aggregate, expected):
                    refused += [(page.center, _in_words(r)) for r in answer.refusals]
                    continue
                try:
                    blocks = people(answer.aggregate)
                    meant = meaning(page.center, selection, groupings, blocks)
                except MessageError:
                    refused.append((page.center, Refusal(reason=Reason.UNREADABLE_ANSWER)))
                    continue
                unclear = {} if merged is None else merged(answer.aggregate)
                here = (meant.lost, sum(unclear.get(block, 0) for block in meant.places))
                if best is None or here < least:
                    least = here
                    best = Told(page.center, page.k, groupings, answer.aggregate, meant)
                    refused = [(page.center, _in_words(r)) for r in answer.refusals]
            if best is not None:
                parts.append(best)
            refusals += refused
        if not asked:
            self._not_crossed(selection)
        return Chapter(parts, refusals, selection)

    def _not_crossed(self, selection: Selection) -> None:
        """Raise: no family of blocks has all of these groupings."""
        names = ", ".join(sorted(selection.every_name))
        families = [[g.name for g in family] for family in self.protocol.families()]
        if self._pages and not any(selection.every_name <= set(family) for family in families):
            crossed = "; ".join(" x ".join(family) for family in families)
            raise InputError(
                f"by, where and strata look at {names}, which the protocol does not cross with "
                f"each other. It crosses: {crossed}"
            )
        if not self._pages:
            refuse(self._refused)

    def _moments(self, variable: str, selection: Selection) -> Chapter:
        return self._chapter(
            MomentsQuestion,
            Moments,
            lambda question: question.variable == variable,
            lambda answer: {
                group.group: group.n + (group.missing or 0) for group in answer.moments
            },
            selection,
        )

    def _lattices(self, variable: str, selection: Selection) -> tuple[Chapter, Tables]:
        """The tables of a number, block by block, as those of the groups."""
        chapter = self._tables_of(variable, selection)
        groups: dict[str, dict[str, list[LatticeTable]]] = {}
        strata: dict[str, dict[str, list[str | None]]] = {}
        shelves = [self._shelf(variable, one.groupings) for one in chapter.parts]
        for one, shelf in zip(chapter.parts, shelves, strict=True):
            for block, (group, stratum) in one.meaning.places.items():
                table = shelf.tables.get((one.center, block))
                if table is not None:
                    groups.setdefault(group, {}).setdefault(one.center, []).append(table)
                    strata.setdefault(group, {}).setdefault(one.center, []).append(stratum)
        if not groups:
            refuse(chapter.refusals)
        names = chapter.groups
        return chapter, Tables(
            lattice=shelves[0].lattice,
            groups={group: groups.get(group, {}) for group in names},
            few={group: _few_values(chapter, shelves, group) for group in names},
            hidden={group: {} for group in names},
            unplaced={group: {} for group in names},
            refusals=tuple(chapter.refusals),
            rounds=0,
            strata=strata,
        )

    def _tables_of(self, variable: str, selection: Selection) -> Chapter:
        """What centers said of a number by cells; tables of few cells are completed."""
        self._check_number(variable)
        chapter = self._chapter(
            LatticeQuestion,
            LatticeTables,
            lambda question: question.variable == variable,
            lambda answer: {group.group: sum(group.table.counts) for group in answer.groups},
            selection,
        )
        for one in chapter.parts:
            shelf = self._shelf(variable, one.groupings)
            few = sum(
                people
                for block, people in shelf.few.get(one.center, {}).items()
                if block in one.meaning.places
            )
            if few:
                chapter.notes.append(FewCells(one.center, few))
        return chapter

    def _shelf(self, variable: str, groupings: tuple[Grouping, ...]) -> "Shelf":
        """A number in one family of blocks, at all centers; made when it is first needed."""
        key = variable, tuple(grouping.name for grouping in groupings)
        if key not in self._shelves:
            answers: dict[str, LatticeTables] = {}
            moments: dict[str, Moments] = {}
            for page in self._pages.values():
                for question, answer in page.parts():
                    if question.variable != variable or question.blocks != groupings:
                        continue
                    if isinstance(answer.aggregate, LatticeTables):
                        answers[page.center] = answer.aggregate
                    elif isinstance(answer.aggregate, Moments):
                        moments[page.center] = answer.aggregate
            declared = self.codebook.get(variable, Variable())
            self._shelves[key] = Shelf.of(variable, groupings, answers, moments, declared)
        return self._shelves[key]

    def _check_number(self, variable: str) -> None:
        if self._grouping(variable) is not None and variable not in self.protocol.variables:
            raise InputError(
                f"{variable!r} is a grouping of the protocol. "
                f"Hint: book.crosstab({variable!r}, ...)"
            )
        self._declared(variable)
        if self._is_category(variable):
            raise InputError(
                f"{variable!r} is a category in this book. Hint: book.crosstab({variable!r}, ...)"
            )

    def _is_category(self, variable: str) -> bool:
        """Whether centers released it by levels; they find out where the protocol does not say."""
        declared = self.protocol.variables.get(variable)
        if declared is None or declared.kind is not None:
            return declared is None or declared.kind == "category"
        return any(
            isinstance(question, CategoryQuestion) and question.variable == variable
            for page in self._pages.values()
            for question, _ in page.parts()
        )

    def _record(self, chapters: Sequence[Chapter]) -> Record:
        notes: dict[Note, None] = {}
        for chapter in chapters:
            for one in chapter.parts:
                notes |= dict.fromkeys(one.meaning.notes(chapter.selection))
            notes |= dict.fromkeys(chapter.notes)
        return Record(
            centers=self.asked,
            releases=self.releases,
            variables=self.codebook,
            merged=tuple(notes),
            without=self.missing,
        )

    def _select(
        self,
        by: Names,
        groups: Sequence[object] | None = None,
        where: Where = None,
        strata: Names = None,
    ) -> Selection:
        return Selection.of(self.protocol, by, groups, where, strata)

    # --- the analyses -----------------------------------------------------------------------

    def describe(
        self,
        variable: str,
        by: Names = None,
        *,
        groups: Sequence[object] | None = None,
        where: Where = None,
    ) -> DescribeResult:
        """n, missing, mean and SD per group; Welch's t-test where there are two groups.

        Parameters
        ----------
        variable
            A number of the protocol.
        by, groups
            One grouping of the protocol, or several crossed; which groups (all), in this order.
        where
            Which people: levels by grouping, {"sex": "F"}, or a condition over groupings,
            "age >= 65 and sex == 'F'".
        """
        return self._described(variable, self._select(by, groups, where))

    def _described(self, variable: str, selection: Selection) -> DescribeResult:
        self._check_number(variable)
        chapter = self._moments(variable, selection)
        moments = [
            (
                one.center,
                one.meaning.places[group.group][0],
                self._with_moments(variable, one, group),
            )
            for one in chapter.parts
            for group in one.aggregate.moments
            if group.group in one.meaning.places
        ]
        estimated = {
            one.center: sum(
                group.n
                for group in one.aggregate.moments
                if group.group in one.meaning.places and group.sd is None
            )
            for one in chapter.parts
        }
        chapter.notes += [Estimated(center, n) for center, n in estimated.items() if n]
        refusals = center_refusals(chapter.refusals)
        request = chapter.request(variable)
        described = combine_description(request, chapter.groups, moments, refusals, rounds=0)
        return replace(described, record=self._record([chapter]))

    def _with_moments(self, variable: str, one: Told, group_moments: GroupMoments) -> GroupMoments:
        """A block whose mean or SD was withheld, with that of its people as cells place them."""
        if group_moments.sd is not None:
            return group_moments
        placed = self._shelf(variable, one.groupings).placed.get((one.center, group_moments.group))
        if placed is None:
            return group_moments
        mean = float(placed.weights @ placed.values / placed.weights.sum())
        square = float(placed.weights @ (placed.values - mean) ** 2)
        sd = sqrt(square / max(placed.people - 1, 1))
        return msgspec.structs.replace(
            group_moments, mean=mean if group_moments.mean is None else group_moments.mean, sd=sd
        )

    def table(
        self,
        variable: str,
        by: Names = None,
        *,
        groups: Sequence[object] | None = None,
        where: Where = None,
        max_bins: int | None = None,
    ) -> DistributionResult:
        """The smooth distribution of a number, with bands.

        The parameters are those of `describe`.
        """
        chapter, tables = self._lattices(variable, self._select(by, groups, where))
        result = combine_distribution(chapter.request(variable), tables, max_bins=max_bins)
        return replace(result, record=self._record([chapter]))

    def quantiles(
        self,
        variable: str | list[str] | tuple[str, ...],
        p: Sequence[float] | float = DEFAULT_P,
        by: Names = None,
        *,
        groups: Sequence[object] | None = None,
        where: Where = None,
        method: str | Sequence[str] = "parallel",
    ) -> QuantilesResult | QuantileSummary | ManyQuantiles:
        """Quantiles of a number (or several) with 95 % intervals.

        `method` is "parallel", "yj-likelihood" or "yj-grid", or several; the other parameters are
        those of `describe`.
        """
        try:
            wanted = check_probabilities(p)
        except ValueError as error:
            raise InputError(str(error)) from error
        methods = _methods(method, tuple(CELL_METHODS))
        selection = self._select(by, groups, where)

        def run(name: str) -> QuantileSummary:
            chapter, tables = self._lattices(name, selection)
            request = chapter.request(name)
            results = [combine_quantiles(request, tables, wanted, method) for method in methods]
            return QuantileSummary(tuple(results)).recorded(self._record([chapter]))

        if isinstance(variable, list | tuple):
            return ManyQuantiles(each(variable, run))
        summary = run(variable)
        return summary.results[0] if len(summary.results) == 1 else summary

    @overload
    def compare(
        self, variable: str, by: Names, **options: Unpack[_CompareOptions]
    ) -> CompareResult: ...

    @overload
    def compare(
        self,
        variable: list[str] | tuple[str, ...],
        by: Names,
        **options: Unpack[_CompareOptions],
    ) -> ManyComparisons: ...

    def compare(
        self,
        variable: str | list[str] | tuple[str, ...],
        by: Names,
        *,
        groups: Sequence[object] | None = None,
        ordered: bool = False,
        where: Where = None,
        strata: Names = None,
        alternative: Alternative = "two-sided",
        method: str | Sequence[str] = "weighted",
    ) -> CompareResult | ManyComparisons:
        """Does a number differ between groups? Rank tests within centers, and within strata.

        Parameters
        ----------
        variable, by, groups, where
            As for `describe`; several variables have one row each.
        ordered
            Whether the groups rise: in the order of `groups`, or of the protocol.
        strata
            Groupings within which people are compared, as they are within centers.
        alternative
            "two-sided"; "greater": the second, or later, group is larger; "less".
        method
            "weighted" (recommended), "sum", "fisher", "parallel" (two groups, as if pooled),
            several of them, or "all".
        """
        methods = _methods(method, COMPARE_METHODS)
        selection = self._select(by, groups, where, strata)

        def run(name: str) -> CompareResult:
            chapter, tables = self._lattices(name, selection)
            compared = self._compared(chapter, tables, name, ordered, alternative, methods)
            return compared.recorded(self._record([chapter]))

        if isinstance(variable, list | tuple):
            return ManyComparisons(each(variable, run))
        return run(variable)

    def _compared(
        self,
        chapter: Chapter,
        tables: Tables,
        variable: str,
        ordered: bool,
        alternative: Alternative,
        methods: tuple[str, ...],
    ) -> CompareResult:
        request = chapter.request(variable)
        if len(chapter.groups) < 2:
            raise InputError(
                f"compare needs two groups of {request.by!r}, got only {', '.join(chapter.groups)}"
            )
        two = len(chapter.groups) == 2 and not ordered
        if alternative != "two-sided" and not (ordered or two):
            raise InputError(
                f"alternative must be two-sided for {len(chapter.groups)} groups, got "
                f"{alternative!r}. Hint: ordered=True asks whether they rise in their order"
            )
        if not two:
            methods = tuple(name for name in methods if name in KRUSKAL)
            if not methods:
                raise InputError("method='parallel' compares two groups, without an order")
        pooled = None
        if "parallel" in methods:
            pooled = combine_pooled(request, tables, {}, alternative)
        people = self._people_by_unit(variable, chapter)
        about = ordered, alternative, methods, pooled
        return self._by_rank(chapter, variable, people, tables.refusals, *about)

    def _people_by_unit(self, variable: str, chapter: Chapter) -> dict[Unit, list[Placed | None]]:
        """The pseudo-people of each group, within each center and stratum of it."""
        parts: dict[Unit, list[list[Placed]]] = {}
        for one in chapter.parts:
            placed = self._shelf(variable, one.groupings).placed
            for block, (group, stratum) in one.meaning.places.items():
                people_here = placed.get((one.center, block))
                if people_here is not None and group in chapter.groups:
                    unit = parts.setdefault(Unit(one.center, stratum), [[] for _ in chapter.groups])
                    unit[chapter.groups.index(group)].append(people_here)
        return {
            unit: [_together(some) if some else None for some in groups]
            for unit, groups in parts.items()
        }

    def survival(
        self,
        time: str,
        event: str | None = None,
        by: Names = None,
        *,
        groups: Sequence[object] | None = None,
        where: Where = None,
        strata: Names = None,
        covariates: Names = None,
        at: Sequence[float] | None = None,
    ) -> SurvivalResult:
        """Survival curves, log-rank and hazard ratios of an outcome of the protocol.

        `strata` are groupings within which log-rank and hazard ratio compare; `covariates` are
        groupings that the hazard ratio is adjusted for. The other parameters are those of
        `describe`; `event` need not be named where the protocol has one outcome of this time.
        """
        outcomes = [o for o in self.protocol.survival if o.time == time]
        if event is not None:
            outcomes = [outcome for outcome in outcomes if outcome.event == event]
        if not outcomes:
            truth = [f"{o.time} with event={o.event!r}" for o in self.protocol.survival]
            raise InputError(
                f"the protocol has no outcome {time!r}"
                + (f" with event={event!r}" if event else "")
                + f". There are: {', '.join(truth) or 'none'}"
            )
        outcome = outcomes[0]
        listed = _names(covariates)
        self._check_covariates(listed, _names(strata), _names(by))
        selection = self._select(by, groups, where, (*_names(strata), *listed) or None)
        chapter = self._chapter(
            SurvivalQuestion,
            SurvivalTables,
            lambda q: q.variable == time and q.event == outcome.event,
            lambda answer: {arm.group: arm.people for arm in answer.groups},
            selection,
        )
        levels = as_levels(selection)
        if len(selection.by) > 1 or levels is None:
            raise InputError(
                "survival: by is one grouping, and where is levels of groupings, such as "
                "{'sex': 'F'}"
            )
        view = BlockView(
            by=selection.by_name,
            groups=None if groups is None else tuple(map(group_label, groups)),
            where=levels,
            strata=_names(strata),
            covariates=listed,
        )
        families = dict.fromkeys(one.groupings for one in chapter.parts)
        groupings = next(iter(families))
        question = SurvivalQuestion(
            variable=time,
            event=outcome.event,
            event_is=outcome.event_is,
            horizon=outcome.horizon,
            blocks=groupings,
        )
        answers = [
            BlockAnswer(one.center, one.k, one.aggregate)
            for one in chapter.parts
            if one.groupings == groupings
        ]
        declared = self.codebook.get(time, Variable())
        tables = outcome_of_blocks(question, answers, view, declared, chapter.refusals)
        times = checked_times(at, outcome.horizon) if at is not None else ()
        record = replace(self._record([]), merged=())
        return replace(combine_survival(tables, times), record=record)

    def _check_covariates(
        self, covariates: tuple[str, ...], strata: tuple[str, ...], by: tuple[str, ...]
    ) -> None:
        names = [one.name for family in self.protocol.families() for one in family]
        for name in covariates:
            if name not in names:
                raise InputError(f"covariates: {unknown('grouping', name, names)}")
            for role, others in (("strata", strata), ("by", by)):
                if name in others:
                    raise InputError(f"covariates and {role} must differ, got {name!r} in both")
        if len(set(covariates)) < len(covariates):
            raise InputError(f"covariates must differ, got {', '.join(covariates)}")

    def crosstab(
        self,
        variable: str,
        by: Names,
        *,
        groups: Sequence[object] | None = None,
        where: Where = None,
        strata: Names = None,
        ordered: bool | None = None,
    ) -> CrosstabResult:
        """Two categories: counts with bounds, percentages, and whether they go together.

        `variable` is a category of the protocol or one of its groupings; `strata` are groupings
        within which Cochran, Mantel and Haenszel's tests compare, as within centers. `ordered` is
        what the protocol says, unless it is given.
        """
        selection = self._select(by, groups, where, strata)
        chapter, tables, rises = self._levels(variable, selection)
        result = combine_crosstab(
            chapter.request(variable),
            tables,
            chapter.refusals,
            rises if ordered is None else ordered,
            tuple(grouping.name for grouping in selection.strata),
        )
        return replace(result, record=self._record([chapter]))

    def table1(
        self,
        by: Names = None,
        variables: Sequence[str] | None = None,
        *,
        groups: Sequence[object] | None = None,
        where: Where = None,
        layout: Layout = "full",
    ) -> Table1Result:
        """Table 1: who the people are, with a column for everybody and one for each group.

        Parameters
        ----------
        by, groups, where
            As for `describe`; without `by` there is one column, of everybody.
        variables
            Which variables and groupings, in this order; all others of the protocol, if None.
        layout
            "full" (mean and median), or as "gtsummary" or "tableone" lay it out.
        """
        selection = self._select(by, groups, where)
        if variables is None:
            groupings = [grouping.name for grouping in self.protocol.groups]
            taken = {grouping.column for grouping in selection.by}
            names = dict.fromkeys((*self.variables, *groupings))
            variables = [
                name for name in names if name not in taken and name not in selection.needed
            ]
        rows = partial(self._table1_row, selection=selection)
        return table_of(variables, rows, selection.by_name, selection.words, layout)

    def _table1_row(self, variable: str, selection: Selection) -> VariableRow:
        """One variable of Table 1; quartiles are those of its people as cells place them."""
        declared = self.protocol.variables.get(variable, ProtocolVariable())
        shown = Shown(variable, declared.label or variable, declared.unit)
        grouping = self._grouping(variable)
        if self._is_category(variable) or (grouping is not None and not declared.kind):
            chapter, tables, rises = self._levels(variable, selection)
            crosstab = combine_crosstab(chapter.request(variable), tables, chapter.refusals, rises)
            return category_row(shown, replace(crosstab, record=self._record([chapter])))
        chapter = self._tables_of(variable, selection)
        units = self._people_by_unit(variable, chapter)
        described = self._described(variable, selection)
        compared = None
        if len(chapter.groups) > 1:
            with suppress(InputError, RefusedError):
                compared = self._by_rank(chapter, variable, units, chapter.refusals)
                compared = compared.recorded(self._record([chapter]))

        def quartiles(group: str | None) -> Quartiles:
            places = range(len(chapter.groups)) if group is None else [chapter.groups.index(group)]
            parts = [
                placed for unit in units.values() for i in places if (placed := unit[i]) is not None
            ]
            return _quartiles(_together(parts)) if parts else (None, None, None)

        noticed = self._noticed(variable, chapter)
        return number_row(shown, described, quartiles, compared, noticed)

    def _noticed(self, variable: str, chapter: Chapter) -> list[str]:
        """Zeros, codes and heaps of whole centers, of tables that are not completed."""
        shared, edges, at_tens = {}, [], False
        for one in chapter.parts:
            shelf = self._shelf(variable, one.groupings)
            few = shelf.few.get(one.center, {})
            blocks = [(one.center, block) for block in one.meaning.places if block not in few]
            tables = [shelf.tables[key] for key in blocks if key in shelf.tables]
            people = [shelf.placed[key] for key in blocks if key in shelf.placed]
            if people:
                resolution = shelf.lattice.resolution
                shared[one.center] = heaps(shared_in(tables), _together(people), resolution)
            edges += [table.edges for table in tables]
            at_tens = are_at_tens(np.concatenate(edges), shelf.lattice) if edges else False
        return heap_notes(shared, at_tens=at_tens)

    def _by_rank(
        self,
        chapter: Chapter,
        variable: str,
        people: Mapping[Unit, list[Placed | None]],
        refusals: Sequence[tuple[str, Refusal]],
        ordered: bool = False,
        alternative: Alternative = "two-sided",
        methods: tuple[str, ...] = ("weighted",),
        pooled: PooledComparison | None = None,
    ) -> CompareResult:
        """The rank tests of people as cells place them, within each center and stratum."""
        request = chapter.request(variable)
        names = tuple(grouping.name for grouping in chapter.selection.strata)
        if len(chapter.groups) == 2 and not ordered:
            pairs = {
                unit: placed_ranks(x, y)
                for unit, (x, y) in people.items()
                if x is not None and y is not None
            }
            parts = Comparing(pairs, list(refusals), pooled, rounds=0, strata=names)
            return combine_comparison(request, alternative, methods, parts)
        units = {
            unit: UnitRanks(placed_group_ranks(pair), _pairs(chapter.groups, pair))
            for unit, pair in people.items()
            if sum(one is not None for one in pair) > 1
        }
        tests = GroupTests(ordered, alternative)
        return combine_groups(request, tests, methods, units, None, list(refusals), 0, names)

    def _levels(self, variable: str, selection: Selection) -> tuple[Chapter, LevelTables, bool]:
        """The levels of a category, or of a grouping, block by block."""
        grouping = self._grouping(variable)
        if grouping is not None and (
            variable not in self.protocol.variables or self._is_crossed(grouping, selection)
        ):
            return self._levels_of_grouping(grouping, selection)
        declared = self._declared(variable)
        if not self._is_category(variable):
            if grouping is not None:
                return self._levels_of_grouping(grouping, selection)
            raise InputError(
                f'{variable!r} is a number in this book. Hint: kind = "category" in the '
                "protocol, or a grouping of it with cuts"
            )
        chapter = self._chapter(
            CategoryQuestion,
            Categories,
            lambda question: question.variable == variable,
            lambda answer: {part.group: part.n + (part.missing or 0) for part in answer.groups},
            selection,
            merged=_in_merged_cells,
        )
        cells = [
            LevelCells(Unit(one.center, stratum), group, part.cells, part.missing)
            for one in chapter.parts
            for part in one.aggregate.groups
            if part.group in one.meaning.places
            for group, stratum in [one.meaning.places[part.group]]
        ]
        return chapter, LevelTables.of(cells, chapter.groups, declared.levels), declared.ordered

    def _is_crossed(self, grouping: Grouping, selection: Selection) -> bool:
        """Whether blocks tell the levels of a grouping, which are whole, in an analysis."""
        names = {*selection.every_name, grouping.name}
        plain = grouping.column == grouping.name and grouping.cuts is None
        families = ({g.name for g in family} for family in self.protocol.families())
        together = any(names <= family for family in families)
        return plain and grouping not in selection.by and together

    def _levels_of_grouping(
        self, grouping: Grouping, selection: Selection
    ) -> tuple[Chapter, LevelTables, bool]:
        """A grouping as a category: blocks themselves say how many people have its levels."""
        if grouping in selection.by:
            raise InputError(f"by and variable must differ, got {grouping.name!r} for both")
        crossed = replace(selection, strata=(*selection.strata, grouping))
        chapter = self._chapter(
            SizesQuestion,
            Sizes,
            lambda question: True,
            lambda answer: {size.group: size.n for size in answer.sizes},
            crossed,
        )
        cells = []
        for one in chapter.parts:
            strata = meaning(
                one.center,
                selection,
                one.groupings,
                {size.group: size.n for size in one.aggregate.sizes},
            ).places
            for size in one.aggregate.sizes:
                if size.group in strata:
                    group, stratum = strata[size.group]
                    levels = levels_by_grouping(size.group, one.groupings)[grouping.name]
                    cell = LevelCount(levels=levels, count=size.n)
                    cells.append(LevelCells(Unit(one.center, stratum), group, (cell,), None))
        return (
            chapter,
            LevelTables.of(cells, chapter.groups, grouping.names or None),
            grouping.rises,
        )


@dataclass(frozen=True, slots=True)
class Shelf:
    """A number in one family of blocks: every block's table, and its people as they are placed.

    Tables of one or two open cells say too little alone. They are completed by the mean and SD of
    their block and the distribution of everybody (`few_cells`). Of blocks that are bands of the
    number itself the limits are known.
    """

    lattice: Lattice
    tables: Mapping[tuple[str, str], LatticeTable]  # of a center and its block
    placed: Mapping[tuple[str, str], Placed]
    few: Mapping[str, Mapping[str, int]]  # center → block → people of tables that are completed

    @classmethod
    def of(
        cls,
        variable: str,
        groupings: tuple[Grouping, ...],
        answers: Mapping[str, LatticeTables],
        moments: Mapping[str, Moments],
        declared: Variable,
    ) -> "Shelf":
        """From what all centers said; whoever cannot be read is left as they are."""
        tables, lattices = _read_all(answers)
        for (center, block), table in tables.items():
            half = (answers[center].resolution or 0.0) / 2  # values stand between the edges
            limits = _band_limits(block, variable, groupings, half)
            tables[center, block] = _within(table, limits, lattices[center])
        few = {key for key, table in tables.items() if _says_little(table, lattices[key[0]])}
        plain = {key: table for key, table in tables.items() if key not in few}
        everybody: dict[tuple[str, ...], tuple[FloatArray, FloatArray]] = {}
        if plain and few:
            lattice = common_lattice(list(answers.values()), declared, list(plain.values()))
            parts = _by_first_grouping(plain)
            for level, one in ((), plain), *parts.items():
                whole = place(list(one.values()), lattice)
                everybody[level] = nodes_of(whole.values, whole.weights)
        done: dict[str, dict[str, int]] = {}
        tilted: dict[tuple[str, str], Completed] = {}
        for center, block in sorted(few):
            people = _mean_sd(moments.get(center), block)
            levels = block_levels(block)
            nodes = everybody.get(levels[0] if levels else (), everybody.get(()))
            if nodes is None and people is not None:
                nodes = normal_nodes(people, lattices[center])
            if nodes is None:
                del tables[center, block]
                continue
            completion = completed(tables[center, block], people, *nodes, lattices[center])
            tables[center, block] = completion.table
            done.setdefault(center, {})[block] = completion.table.people
            tilted[center, block] = completion
        tables = {
            (center, block): _on_values(table, answers[center])
            for (center, block), table in tables.items()
        }
        lattice = common_lattice(list(answers.values()), declared, list(tables.values()))
        placed: dict[tuple[str, str], Placed] = {}
        if tables:
            for part in _by_first_grouping(tables).values():
                whole = place(list(part.values()), lattice)
                placed |= dict(zip(part, whole.by_center(len(part)), strict=True))
            for (center, block), as_cells_place in placed.items():
                if (center, block) not in tilted:
                    block_moments = _mean_sd(moments.get(center), block)
                    table = tables[center, block]
                    placed[center, block] = matched(as_cells_place, table, block_moments)
            placed |= {key: completion.placed for key, completion in tilted.items()}
            if lattice.resolution is not None:
                placed = {
                    key: people_there.on_grid(lattice.resolution)
                    for key, people_there in placed.items()
                }
        return cls(lattice, tables, placed, done)


def _by_first_grouping(
    tables: Mapping[tuple[str, str], LatticeTable],
) -> dict[tuple[str, ...], dict[tuple[str, str], LatticeTable]]:
    """The blocks of each level of the most important grouping, which have a shape of their own."""
    result: dict[tuple[str, ...], dict[tuple[str, str], LatticeTable]] = {}
    for (center, block), table in tables.items():
        levels = block_levels(block)
        result.setdefault(levels[0] if levels else (), {})[center, block] = table
    return result


def _says_little(table: LatticeTable, lattice: Lattice) -> bool:
    """One or two cells of which some tells no mean."""
    if len(table.counts) > 2:
        return False
    return bool(np.isnan(table.means).any()) or not can_place(table, lattice)


def _few_values(chapter: Chapter, shelves: Sequence[Shelf], group: str) -> tuple[bool, bool]:
    """Whether most of a group's lowest, and of its highest, people are in cells without means."""
    outer = [
        (table.counts[end], np.isnan(table.means[end]))
        for end in (0, -1)
        for one, shelf in zip(chapter.parts, shelves, strict=True)
        for block, (label, _) in one.meaning.places.items()
        if label == group and (table := shelf.tables.get((one.center, block))) is not None
    ]
    half = len(outer) // 2

    def most(cells: Sequence[tuple[int, bool]]) -> bool:
        return 2 * sum(n for n, blind in cells if blind) > sum(n for n, _ in cells)

    return most(outer[:half]), most(outer[half:])


def _band_limits(
    block: str, variable: str, groupings: Sequence[Grouping], half: float
) -> tuple[float, float]:
    """Between which numbers the people of a block are: it may be a band of the number itself."""
    low, high = -inf, inf
    for grouping, levels in zip(groupings, block_levels(block), strict=True):
        if grouping.column != variable or grouping.cuts is None:
            continue
        bands = [grouping.names.index(level) for level in levels if level in grouping.names]
        if len(bands) == len(levels):  # nobody else is among them
            ends = (-inf, *grouping.cuts, inf)
            low = max(low, ends[min(bands)] - half)
            high = min(high, ends[max(bands) + 1] - half)
    return low, high


def _within(table: LatticeTable, limits: tuple[float, float], lattice: Lattice) -> LatticeTable:
    """The table between these limits; what its outer cells say is put on the number's own scale.

    Within a few widths of its neighbour the scale of an open cell is nearly straight.
    """
    low, high = max(limits[0], lattice.lower), min(limits[1], lattice.upper)
    edges = table.edges
    if (low, high) == (lattice.lower, lattice.upper):
        return table
    if len(edges) and not low < edges[0] <= edges[-1] < high:
        return table  # values on a limit that stand next to an edge
    scale = table.scale or lattice.open_scale(edges)
    closed = np.isfinite(np.concatenate(([low], edges, [high])))
    raw = ~np.isnan(scale.unit) & (table.sds != 0) & closed[:-1] & closed[1:]
    ends = np.concatenate(([low], edges, [high]))
    at_mean = scale.back(table.means)
    means = np.where(raw, np.clip(at_mean, ends[:-1], ends[1:]), table.means)
    sds = np.where(raw & (table.sds > 0), table.sds / scale.slope(at_mean), table.sds)
    sds = np.where(raw & (sds >= (ends[1:] - ends[:-1]) / 2), np.nan, sds)
    return replace(
        table,
        means=means,
        sds=sds,
        scale=OpenScale(np.where(raw, np.nan, scale.limit), np.where(raw, np.nan, scale.unit)),
        limits=(low, high),
    )


def _read_all(
    answers: Mapping[str, LatticeTables],
) -> tuple[dict[tuple[str, str], LatticeTable], dict[str, Lattice]]:
    """Every block's table, and each center's lattice."""
    tables: dict[tuple[str, str], LatticeTable] = {}
    lattices: dict[str, Lattice] = {}
    for center, answer in answers.items():
        with suppress(ValueError):
            lattice = public_lattice(answer.scale, answer.resolution, answer.lower, answer.upper)
            by_block = {group.group: read_table(group.table, lattice) for group in answer.groups}
            tables |= {(center, block): table for block, table in by_block.items()}
            lattices[center] = lattice
    return tables, lattices


def _on_values(table: LatticeTable, answer: LatticeTables) -> LatticeTable:
    return table if answer.resolution is None else table.between_values(answer.resolution)


def _mean_sd(moments: Moments | None, block: str) -> MeanSD | None:
    """Mean and SD of a block, where both are released."""
    for group in () if moments is None else moments.moments:
        if group.group == block and group.mean is not None and group.sd is not None:
            return MeanSD(group.n, group.mean, group.sd)
    return None


# --- parts of it --------------------------------------------------------------------------------


class _PageFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A center's answer in a book's file."""

    center: str
    k: int
    sha256: str
    payload: str  # the very text that left


class _Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A book's file, but for its last line, the SHA-256 of it."""

    format: str
    version: str
    protocol: Protocol
    asked: tuple[str, ...]
    members: tuple[str, ...]
    joint: bool
    pages: tuple[_PageFile, ...]
    refused: tuple[tuple[str, Refusal], ...]


def _check_signatures(name: str, content: _Content) -> None:
    """Raise where an answer is not as its center signed it; answers to be read by others pass."""
    for page in content.pages:
        with suppress(MessageError):
            if not Page(page.center, page.payload.encode()).is_signed(content.protocol):
                raise InputError(
                    f"{name} is damaged: what {page.center} said, or the protocol, was changed "
                    "after it was signed"
                )


def _in_merged_cells(answer: Categories) -> dict[str, int]:
    """How many people of each block are in a cell of several levels."""
    return {
        part.group: sum(cell.count for cell in part.cells if len(cell.levels) > 1)
        for part in answer.groups
    }


def _in_words(refusal: Refusal) -> Refusal:
    """A refusal of a block names its levels as people read them."""
    if refusal.name is None or not refusal.name.startswith("["):
        return refusal
    try:
        levels = block_levels(refusal.name)
    except MessageError:
        return refusal
    name = ", ".join(" or ".join(some) for some in levels) or EVERYBODY
    return msgspec.structs.replace(refusal, name=name)


def _methods(method: str | Sequence[str], every: tuple[str, ...]) -> tuple[str, ...]:
    named = [method] if isinstance(method, str) else list(method)
    for name in named:
        if name not in (*every, "all"):
            raise InputError(f"method: {unknown('method', name, (*every, 'all'))} in a book")
    if not named:
        raise InputError("method must name at least one method, got none")
    return select_methods(named, every)


def _names(names: Names) -> tuple[str, ...]:
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)


def _quartiles(people: Placed) -> Quartiles:
    """The quartiles of pseudo-people: of numbers on a grid those that somebody has."""
    reached = np.cumsum(people.weights) - people.weights / 2
    at = np.array([0.25, 0.5, 0.75]) * people.weights.sum()
    if people.shared.all():
        ends = np.cumsum(people.weights)
        values = people.values[np.minimum(np.searchsorted(ends, at), len(ends) - 1)]
    else:
        values = np.interp(at, reached, people.values)
    q1, median, q3 = values.tolist()
    return q1, median, q3


def _together(parts: Sequence[Placed]) -> Placed:
    """Several blocks of one group as one, ascending."""
    if len(parts) == 1:
        return parts[0]
    values = np.concatenate([part.values for part in parts])
    order = np.argsort(values, kind="stable")
    weights = np.concatenate([part.weights for part in parts])[order]
    shared = np.concatenate([part.shared for part in parts])[order]
    return Placed(values[order], weights, np.zeros(len(order), dtype=np.int64), shared)


def _pairs(
    groups: Sequence[str], people: Sequence[Placed | None]
) -> dict[tuple[str, str], RankStatistics]:
    ranks = {}
    for (x, of_x), (y, of_y) in combinations(zip(groups, people, strict=True), 2):
        if of_x is not None and of_y is not None:
            ranks[x, y] = placed_ranks(of_x, of_y)
    return ranks
