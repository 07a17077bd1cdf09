"""What a steward should know of a center's data, policy, ledger and memory before it goes live."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np

from unpooled.center.cohort.people import NUMBERS, RefusedQuestion, check_column
from unpooled.center.config import CenterFile, CenterVariable, open_data, policy_problems
from unpooled.center.data.sources import ROW, Source
from unpooled.center.data.sql import MISSING_WORDS, quote, words_sql
from unpooled.center.policy import Policy
from unpooled.center.questions import RULES
from unpooled.center.records.keys import CenterKey
from unpooled.center.records.ledger import Ledger, verify
from unpooled.center.records.line_file import open_lines
from unpooled.center.rule.fingerprint import people_changed, people_fingerprint
from unpooled.center.rule.memory import MemoryFile, memory_path
from unpooled.errors import LedgerError, UnpooledError

_LEVELS = 30  # of a grouping; with more there is nearly one for each person
_LONGEST = 40  # characters of a cell that are shown


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    topic: str
    good: bool
    words: str
    note: bool = False  # good, and yet worth a look

    def __str__(self) -> str:
        mark = "WRONG" if not self.good else "note " if self.note else "ok   "
        return f"{mark}  {self.topic}: {self.words}"


def center_findings(center: CenterFile, folder: Path) -> Iterator[Finding]:
    """Look at all that is next to the data; nothing is changed, nothing leaves."""
    source: Source | None = None
    try:
        source = open_data(center, folder)
    except UnpooledError as error:
        yield Finding("data", False, str(error))
    if source is not None:
        yield from _data(center, source)
    yield Finding("policy", True, f"every number describes at least {center.policy.k} people")
    asks = center.approval == "ask"
    words = "the steward sees every payload first" if asks else "what the policy allows leaves"
    yield Finding("approval", True, f"{center.approval}: {words}")
    ledger = folder / center.ledger
    yield from _ledger(center, ledger, folder)
    if source is not None:
        yield from people_findings(memory_path(ledger), source, center.policy)


def _data(center: CenterFile, source: Source) -> Iterator[Finding]:
    policy = center.policy
    few = "" if source.size >= policy.k else f"; with fewer than {policy.k} nothing can be answered"
    yield Finding("data", not few, f"{source.size} rows, {len(source.kinds)} columns{few}")
    asked = [name for name in source.kinds if policy.allows(name) and name != policy.person]
    yield from _cells(source, asked)
    problems = list(policy_problems(policy, source))
    for problem in problems:
        yield Finding("policy", False, problem)
    if not problems:
        yield from _declared(source, asked, center)
        yield from _groupings(source, policy)


def _groupings(source: Source, policy: Policy) -> Iterator[Finding]:
    """By what people may be chosen, and whether that chooses nearly any people."""
    if policy.ad_hoc == "free":
        yield Finding("groupings", True, "any condition chooses people", note=True)
        return
    if policy.ad_hoc == "none":
        yield Finding("groupings", True, "single questions are refused")
        return
    groupings = policy.grouped_by()
    listed = ", ".join(_cut(name, cuts) for name, cuts in groupings.items())
    none = "none is declared, so single questions are about everybody. Hint: groupings in [policy]"
    yield Finding("groupings", True, listed or none, note=not listed)
    for name, cuts in groupings.items():
        counted = f"SELECT count(DISTINCT {quote(name)}), count({quote(name)})"
        levels, people = (0, 0) if cuts else source.rows(f"{counted} FROM {source.relation}")[0]
        if levels > _LEVELS or (levels > 2 and people < policy.k * levels):
            words = (
                f"{name} has {levels} levels of {people / levels:.3g} rows each, so conditions on "
                "it choose nearly any people. Hint: leave it out of groupings in [policy]"
            )
            yield Finding("groupings", True, words, note=True)


def _cut(name: str, cuts: tuple[float, ...] | None) -> str:
    return f"{name} cut at {', '.join(f'{cut:g}' for cut in cuts)}" if cuts else name


def _cells(source: Source, columns: Sequence[str]) -> Iterator[Finding]:
    missing = missing_cells(source, columns)
    listed = ", ".join(f"{column} {cells}" for column, cells in missing.items())
    yield Finding("data", True, f"missing cells: {listed or 'none'}")
    almost = list(almost_numbers(source, columns))
    for column in almost:
        yield Finding("data", True, str(column), note=True)
    words = [
        column for column in columns if column not in {almost_one.column for almost_one in almost}
    ]
    for kept in kept_words(source, words):
        yield Finding("data", True, str(kept), note=True)
    for one, other in twins(source, columns):
        hint = "Hint: let variables in [policy] have one of them"
        yield Finding("data", True, f"{one} and {other} say the same of people. {hint}", note=True)


def twins(source: Source, columns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Columns of numbers of which one is a function of the other that rises, or that falls.

    Each is judged by itself, so cells of the one lie between those of the other.

    Examples
    --------
    >>> from unpooled.center.data.sources import open_source
    >>> import polars
    >>> rows = polars.DataFrame({"crp": [4.0, 9.0, 5.0], "log": [1.4, 2.2, 1.6], "age": [9, 9, 3]})
    >>> list(twins(open_source(rows), rows.columns))
    [('crp', 'log')]
    """
    first: dict[bytes, str] = {}
    for column in columns:
        if source.kinds[column] not in ("integer", "float"):
            continue
        values = source.values(column)
        some = np.isnan(values)
        levels, place = np.unique(values[~some], return_inverse=True)
        if len(levels) < 3:  # two columns of yes and no may agree by chance
            continue
        order = np.zeros(len(values), dtype=np.int64)
        order[~some] = place + 1
        fallen = np.where(some, 0, len(levels) + 1 - order)
        mark = min(sha256(ranks.tobytes()).digest() for ranks in (order, fallen))
        if mark in first:
            yield first[mark], column
        first.setdefault(mark, column)


def _declared(source: Source, columns: Sequence[str], center: CenterFile) -> Iterator[Finding]:
    """The columns about which no question could be answered, since they are not as declared."""
    for column in columns:
        if source.kinds[column] in NUMBERS:
            variable = center.variables.get(column, CenterVariable()).declared
            try:
                check_column(source, column, variable, center.policy)
            except RefusedQuestion as refused:
                yield Finding("data", False, f"{column}: {RULES[refused.refusal.reason]}")


def _ledger(center: CenterFile, path: Path, folder: Path) -> Iterator[Finding]:
    if not path.exists():
        yield Finding("ledger", True, f"a new one will be made: {path}")
        return
    file = path.with_suffix(".key") if center.key is None else folder / center.key
    if not file.exists():
        yield Finding("ledger", False, f"its key is missing: {file}; without it it cannot go on")
        return
    try:
        key = CenterKey.load_or_create(file)
        verdict = verify(path, key.public)
    except UnpooledError as error:
        yield Finding("ledger", False, str(error))
        return
    yield Finding("ledger", verdict.ok, str(verdict))
    if verdict.ok:
        yield from memory_findings(center.name, path, key)


def memory_findings(center: str, ledger: Path, key: CenterKey) -> Iterator[Finding]:
    """Whether a center could start with this ledger and the memory next to it.

    What reads them is what reads them at the start. It locks its files and makes a missing one, so
    it gets copies: nothing is changed, and a center that runs is not disturbed.
    """
    memory = memory_path(ledger)
    with TemporaryDirectory(prefix="unpooled-") as draft:  # for the owner alone
        try:
            copies = [Path(draft) / path.name for path in (ledger, memory)]
            shutil.copyfile(ledger, copies[0])
            if memory.exists():
                shutil.copyfile(memory, copies[1])
            with Ledger(center, key, copies[0]) as opened:
                MemoryFile(center, copies[1], opened).close()
        except OSError as error:
            yield Finding("memory", False, f"{memory} cannot be read: {error.strerror}")
        except LedgerError as error:
            yield Finding("memory", False, str(error).replace(draft, str(ledger.parent)))
        else:
            words = "knows every answer of the ledger"
            yield Finding("memory", True, words if memory.exists() else "a new one will be made")


def people_findings(memory: Path, source: Source, policy: Policy) -> Iterator[Finding]:
    """Whether the people are those that the center's answers described."""
    try:
        before = _people_of(memory)
        if before is None:
            return
        changed = people_changed(before, people_fingerprint(source, policy, before))
    except UnpooledError as error:
        yield Finding("people", False, str(error))
        return
    if changed is None:
        yield Finding("people", True, "the same as in its earlier answers")
    else:
        words = (
            f"{changed}, since the center first answered, so it refuses every question "
            "(data-changed). Hint: let center.toml name the data of then, such as a freeze; or "
            "begin a new ledger and memory (docs/steward.md says what that gives up)"
        )
        yield Finding("people", False, words)


class _Remembered(msgspec.Struct):
    """Of a line of the memory, what says whose it is; the last such line counts."""

    people: str | None = None


def _people_of(memory: Path) -> str | None:
    if not memory.exists():
        return None
    people = None
    with open_lines(memory) as lines:
        for line in lines:
            with suppress(msgspec.MsgspecError):  # damage is found elsewhere
                people = msgspec.json.decode(line, type=_Remembered).people or people
    return people


def missing_cells(source: Source, columns: Iterable[str]) -> dict[str, int]:
    """How many cells of each column are missing; columns without such are left out.

    Examples
    --------
    >>> from unpooled.center.data.sources import open_source
    >>> import polars
    >>> rows = open_source(polars.DataFrame({"crp": [4.0, None, float("nan")], "age": [1, 2, 3]}))
    >>> missing_cells(rows, rows.kinds)
    {'crp': 2}
    """
    missing = {}
    for column in columns:
        numbers = source.kinds[column] in ("integer", "float")
        cells = source.filled(column) if numbers else _count(source, column)
        if cells < source.size:
            missing[column] = source.size - cells
    return missing


def _count(source: Source, column: str) -> int:
    return int(source.rows(f"SELECT count({quote(column)}) FROM {source.relation}")[0][0])


@dataclass(frozen=True, slots=True)
class KeptWord:
    """A word in a column of text that elsewhere means that there is no value. It quotes data."""

    column: str
    word: str
    cells: int

    def __str__(self) -> str:
        cells = "1 cell" if self.cells == 1 else f"{self.cells} cells"
        return (
            f"{self.column} is text, so {self.word!r} in {cells} is taken for a group's name. "
            f'Hint: if it means missing, say missing = ["{self.word}"] in [variables.{self.column}]'
        )


def kept_words(source: Source, columns: Iterable[str]) -> Iterator[KeptWord]:
    """The words of text columns that may have been meant for missing ones.

    Examples
    --------
    >>> from unpooled.center.data.sources import open_source
    >>> import polars
    >>> rows = open_source(polars.DataFrame({"sex": ["F", "NA", "M", "NA"]}))
    >>> [(kept.word, kept.cells) for kept in kept_words(rows, rows.kinds)]
    [('NA', 2)]
    """
    for column in columns:
        if source.kinds[column] == "text":
            word = f"trim(CAST({quote(column)} AS VARCHAR))"
            counted = source.rows(
                f"SELECT {word} AS w, count(*) AS n FROM {source.relation} "
                f"WHERE {word} IN {words_sql(MISSING_WORDS)} GROUP BY w ORDER BY n DESC, w"
            )
            yield from (KeptWord(column, word, cells) for word, cells in counted)


@dataclass(frozen=True, slots=True)
class AlmostNumbers:
    """A column of text, and the first of its cells that is no number. It quotes data."""

    column: str
    cell: str
    row: int  # from 1, without the header
    decimal_comma: bool  # whether the cell is a number once its comma is a point

    def __str__(self) -> str:
        shown = self.cell if len(self.cell) <= _LONGEST else f"{self.cell[:_LONGEST]}..."
        if self.decimal_comma:
            hint = f"decimals have a point: {self.cell.replace(',', '.')}"
        else:
            declared = f"missing = [...] in [variables.{self.column}]"
            hint = f"a cell holds a number, or nothing; {declared} names other words for nothing"
        return f"{self.column} is read as text, for row {self.row} has {shown!r}. Hint: {hint}"


def almost_numbers(source: Source, columns: Iterable[str]) -> Iterator[AlmostNumbers]:
    """The columns of text of which more than half are numbers, with points or commas.

    Examples
    --------
    >>> from unpooled.center.data.sources import open_source
    >>> import polars
    >>> rows = open_source(polars.DataFrame({"crp": ["4", "12,5", "3"], "sex": ["F", "M", "F"]}))
    >>> print(*almost_numbers(rows, rows.kinds))
    crp is read as text, for row 2 has '12,5'. Hint: decimals have a point: 12.5
    """
    for column in columns:
        if source.kinds[column] == "text":
            yield from _look_at(source, column)


def _look_at(source: Source, column: str) -> Iterator[AlmostNumbers]:
    cells = f"SELECT nullif(trim(CAST({quote(column)} AS VARCHAR)), '') AS v, {ROW} AS r"
    numbered = f"({cells} FROM {source.numbered})"
    pointed = "TRY_CAST(replace(v, ',', '.') AS DOUBLE)"
    ((filled, most),) = source.rows(f"SELECT count(v), count({pointed}) FROM {numbered}")
    if 2 * most <= filled:
        return
    strays = source.rows(  # words for nothing last: they are not why a CSV column is text
        f"SELECT v, r, {pointed} IS NOT NULL FROM {numbered} WHERE v IS NOT NULL "
        f"AND TRY_CAST(v AS DOUBLE) IS NULL ORDER BY v IN {words_sql(MISSING_WORDS)}, r LIMIT 1"
    )
    for cell, row, comma in strays:
        yield AlmostNumbers(column, cell, row + 1, comma)
