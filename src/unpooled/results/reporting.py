"""The report of a result: what was asked, of whom, what came of it, and all that left."""

import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from unpooled.results.record import Record
from unpooled.results.refusals import CenterRefusal, refusal_sentence
from unpooled.results.releases import Releases, question_sentence
from unpooled.results.report.page import Section, page, write
from unpooled.results.report.parts import Folded, Grid, Part, Remarks, Sentences


def write_report(
    path: str | Path,
    title: str,
    sections: Sequence[Section],
    record: Record,
    refusals: Iterable[CenterRefusal],
) -> Path:
    """One HTML file with everything about a result."""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    under = f"unpooled {version('unpooled')}, {made}"
    whole = [_question(record, refusals), *sections, _left(record.releases), _made_with(record)]
    return write(path, page(title, under, whole))


def _question(record: Record, refusals: Iterable[CenterRefusal]) -> Section:
    questions = dict.fromkeys(question_sentence(release.question) for release in record.releases)
    promise = (
        "Every number that left a center describes at least K of its people. Each center decided "
        "for itself; everything that left is listed below. Curves are estimated from that."
    )
    parts: list[Part] = [
        Sentences([promise]),
        Remarks.listed("Centers, and the K in force there", _centers_by_k(record)),
        Remarks.listed("Their policy", _policy(record)),
        Remarks.listed("Questions", questions),
        Remarks.listed("Refused", map(refusal_sentence, refusals)),
        Remarks.notes(record.notes),
    ]
    return Section("What was asked, of whom, under which policy", parts)


def _policy(record: Record) -> list[str]:
    settings = {} if record.policy is None else msgspec.structs.asdict(record.policy)
    return [f"{name}: {_plain(setting)}" for name, setting in settings.items()]


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
