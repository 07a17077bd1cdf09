"""What a steward should know before a center goes live, in plain words."""

import shutil
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from unpooled.center.config import (
    CenterFile,
    CenterVariable,
    open_data,
    policy_problems,
    read_center,
)
from unpooled.center.data.almost_numbers import almost_numbers
from unpooled.center.data.missing_cells import kept_words, missing_cells
from unpooled.center.data.sources import Source
from unpooled.center.data.sql import quote
from unpooled.center.fingerprint import people_changed, people_fingerprint
from unpooled.center.keys import CenterKey
from unpooled.center.ledger import Ledger, verify
from unpooled.center.line_file import open_lines
from unpooled.center.memory import MemoryFile, memory_path
from unpooled.center.people import NUMBERS, RefusedQuestion, check_column
from unpooled.center.policy import Policy
from unpooled.center.questions import RULES
from unpooled.errors import LedgerError, UnpooledError
from unpooled.federation.network.certificates import client_context, read_certificate
from unpooled.federation.network.kits import Kit, read_kit
from unpooled.federation.network.lockdown import center_files, loosened

_SOON = 30  # days
_LEVELS = 30  # of a grouping; with more there is nearly one for each person
_DATES = {  # what OpenSSL says of a certificate of this federation's authority → in words
    9: "shows a certificate that is not valid yet: the clocks of the two computers differ",
    10: "shows a certificate that has expired: the coordinator needs a new kit",
}


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


def check_center(folder: Path, config: Path | None = None) -> list[Finding]:
    """Look at everything that a center needs; nothing is started, nothing leaves."""
    try:
        kit = read_kit(folder, "center")
    except UnpooledError as error:
        return [Finding("kit", False, str(error))]
    findings = [Finding("kit", True, f"of the center {kit.name} in {kit.federation}")]
    findings += _certificate(folder, kit)
    findings += _settings(folder)
    findings += _address(folder, kit)
    path = folder / "center.toml" if config is None else config
    try:
        center = read_center(path)
    except UnpooledError as error:
        return [*findings, Finding("center.toml", False, str(error))]
    return [*findings, *_center(kit, center, path.absolute().parent)]


def _certificate(folder: Path, kit: Kit) -> Iterator[Finding]:
    try:
        certificate = read_certificate(folder, "center")
    except UnpooledError as error:
        yield Finding("certificate", False, str(error))
        return
    until, days = f"{certificate.until:%d %B %Y}", certificate.days
    if certificate.name != kit.name:
        words = f"it is of {certificate.name!r}, not of {kit.name!r}"
        yield Finding("certificate", False, words)
    elif certificate.early is not None:
        yield Finding("certificate", False, certificate.early)
    elif days < 0:
        yield Finding("certificate", False, f"it expired on {until}; ask for a new kit")
    else:
        hint = f", in {days} days; ask for a new kit now" if days < _SOON else ""
        yield Finding("certificate", True, f"valid until {until}{hint}")


def _settings(folder: Path) -> Iterator[Finding]:
    changed = loosened(folder / "local", center_files())
    if changed:
        words = f"{', '.join(changed)} differ from the safe ones; `center start` restores them"
        yield Finding("engine settings", False, words)
    else:
        yield Finding("engine settings", True, "no code, no shell, no files, no logs")


def _address(folder: Path, kit: Kit) -> Iterator[Finding]:
    place = f"{kit.address}:{kit.port}"
    try:
        with socket.create_connection((kit.address, kit.port), timeout=5) as plain:
            client_context(folder).wrap_socket(plain).close()
    except socket.gaierror:
        yield Finding("coordinator", False, f"there is no computer called {kit.address!r}")
    except (ssl.SSLError, ConnectionResetError) as error:
        why = _DATES.get(
            getattr(error, "verify_code", 0), "is not the coordinator of this federation"
        )
        yield Finding("coordinator", False, f"whoever answers at {place} {why}")
    except OSError:
        words = f"nobody answers at {place}; is it started, does a firewall stand between?"
        yield Finding("coordinator", False, words)
    else:
        yield Finding("coordinator", True, f"answers at {place}")


def _center(kit: Kit, center: CenterFile, folder: Path) -> Iterator[Finding]:
    good = center.name == kit.name
    yield Finding("center.toml", good, "fits" if good else f"it is of {center.name!r}")
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
    groupings = {n: c for n, c in policy.grouped_by(source.kinds).items() if policy.allows(n)}
    told = ", ".join(_cut(name, cuts) for name, cuts in groupings.items())
    yield Finding("groupings", True, told or "none: questions are about everybody")
    for name, cuts in groupings.items():
        counted = f"SELECT count(DISTINCT {quote(name)}) FROM {source.relation}"
        levels = 0 if cuts else int(source.rows(counted)[0][0])
        if levels > _LEVELS:
            words = (
                f"{name} has {levels} levels, so conditions on it choose nearly any people. "
                "Hint: leave it out of groupings in [policy], which names those that you mean"
            )
            yield Finding("groupings", True, words, note=True)


def _cut(name: str, cuts: tuple[float, ...] | None) -> str:
    return f"{name} cut at {', '.join(f'{cut:g}' for cut in cuts)}" if cuts else name


def _cells(source: Source, columns: Sequence[str]) -> Iterator[Finding]:
    missing = missing_cells(source, columns)
    told = ", ".join(f"{column} {cells}" for column, cells in missing.items())
    yield Finding("data", True, f"missing cells: {told or 'none'}")
    almost = list(almost_numbers(source, columns))
    for column in almost:
        yield Finding("data", True, str(column), note=True)
    words = [column for column in columns if column not in {found.column for found in almost}]
    for kept in kept_words(source, words):
        yield Finding("data", True, str(kept), note=True)


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
    """Whether a center could start with this ledger and the memory beside it.

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
    """Whether the people are those of whom the center has spoken."""
    try:
        before = _people_of(memory)
        if before is None:
            return
        changed = people_changed(before, people_fingerprint(source, policy, before))
    except UnpooledError as error:
        yield Finding("people", False, str(error))
        return
    if changed is None:
        yield Finding("people", True, "those of whom the center has answered before")
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
    found = None
    with open_lines(memory) as lines:
        for line in lines:
            with suppress(msgspec.MsgspecError):  # damage is found elsewhere
                found = msgspec.json.decode(line, type=_Remembered).people or found
    return found
