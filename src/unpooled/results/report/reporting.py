"""The report of results: the answer first, then tables, how, what left, and the policy last."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from unpooled.results.provenance.record import Record
from unpooled.results.provenance.refusals import CenterRefusal
from unpooled.results.provenance.releases import Releases, question_sentence
from unpooled.results.report.folding import Fold, fold_notes, fold_refusals
from unpooled.results.report.page import Section, write_sections
from unpooled.results.report.parts import Answer, Folded, Grid, Part, Remarks, Sentences

PROMISE = (
    "Every number that left a center describes at least K of its people. Each center decided "
    "for itself; everything that left is listed below. Curves are estimated from that."
)


@dataclass(frozen=True, slots=True)
class Chapter:
    """What a report says of one result."""

    title: str
    answer: str
    sections: Sequence[Section]
    record: Record
    refusals: Sequence[CenterRefusal]


def write_report(path: str | Path, title: str, chapters: Sequence[Chapter]) -> Path:
    """One file with everything about some results: a page, or a Word document."""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    under = f"unpooled {version('unpooled')}, {made}"
    return write_sections(path, title, under, report_sections(chapters))


def report_sections(chapters: Sequence[Chapter]) -> list[Section]:
    """What a report shows, in the order in which people read."""
    several = len(chapters) > 1
    whole = [section for chapter in chapters for section in _chapter(chapter, several)]
    record = _together([chapter.record for chapter in chapters])
    return [*whole, _method(record), _left(record.releases), _made_with(record), _policy(record)]


def _chapter(chapter: Chapter, several: bool) -> list[Section]:
    """The answer with the first picture, then all else that the result shows, then what to know."""
    first, *others = chapter.sections
    heading = chapter.title if several else ""
    answer = Section(heading, [Answer(chapter.answer)], first.figures[:1])
    rest = replace(first, figures=first.figures[1:])
    sections = [answer, rest, *others, _to_know(chapter)]
    return [
        section if number == 0 else replace(section, below=several)
        for number, section in enumerate(sections)
        if section.parts or section.figures
    ]


def _to_know(chapter: Chapter) -> Section:
    """Who refused, and what is unusual: by kind, each below."""
    refused = fold_refusals(chapter.refusals, chapter.record.centers)
    folds = [*refused, *fold_notes(chapter.record.notes)]
    return Section("What to know", fold_parts(folds))


def fold_parts(folds: Sequence[Fold]) -> list[Part]:
    """What is folded by kind, as parts: single things in a list, several below their number."""
    single = Remarks.listed("", [fold.summary for fold in folds if not fold.items])
    several = [Folded(fold.summary, "\n".join(fold.items)) for fold in folds if fold.items]
    return [*([single] if single.items else []), *several]


def _together(records: Sequence[Record]) -> Record:
    """The circumstances of several results."""
    releases = Releases.each_once(record.releases for record in records)
    centers = dict.fromkeys(center for record in records for center in record.centers)
    return replace(records[0], releases=releases, centers=tuple(centers))


def _method(record: Record) -> Section:
    questions = dict.fromkeys(question_sentence(release.question) for release in record.releases)
    parts: list[Part] = [
        Sentences([PROMISE]),
        Remarks.listed("Centers, and the K in force there", _centers_by_k(record)),
        Remarks.listed("Questions", questions),
    ]
    return Section("What was asked, and who was asked", parts)


def _policy(record: Record) -> Section:
    settings = {} if record.policy is None else msgspec.structs.asdict(record.policy)
    lines = [f"{name}: {_plain(setting)}" for name, setting in settings.items()]
    lines = lines or ["Each center has its own, and tells only its K."]
    return Section("Their policy", [Remarks.listed("", lines)])


def _plain(value: object) -> str:
    """A setting as a person would write it."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple | frozenset) else str(value)


def _centers_by_k(record: Record) -> list[str]:
    by_center = record.k
    lines = [
        f"K = {k}: {', '.join(c for c in record.centers if by_center.get(c) == k)}"
        for k in sorted(set(by_center.values()))
    ]
    silent = [center for center in record.centers if center not in by_center]
    return [*lines, *([f"not asked: {', '.join(silent)}"] if silent else [])]


def _left(releases: Releases) -> Section:
    parts: list[Part] = [releases.grid()]
    for center, payloads in releases.by_center().items():
        parts.append(Folded(f"{center}: the very bytes", "\n\n".join(payloads)))
    return Section("Everything that left the centers", parts)


def _made_with(record: Record) -> Section:
    names = ("unpooled", "numpy", "scipy", "duckdb", "altair", "vl-convert-python", "msgspec")
    rows = [["Python", platform.python_version()], *([name, version(name)] for name in names)]
    seed = "none: each center's own secret" if record.seed is None else str(record.seed)
    rows.append(["seed of the boundaries", seed])
    return Section("Versions", [Grid(["what", "version"], rows)])
