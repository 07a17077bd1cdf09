"""What a steward should know before a center goes live, in plain words."""

import socket
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from unpooled.center.cohort import NUMBERS, RefusedQuestion, check_column
from unpooled.center.config import (
    CenterFile,
    CenterVariable,
    open_data,
    read_center,
    unknown_columns,
)
from unpooled.center.keys import CenterKey
from unpooled.center.ledger import verify
from unpooled.data.almost_numbers import almost_numbers
from unpooled.data.missing_cells import kept_words, missing_cells
from unpooled.data.sources import Source
from unpooled.errors import UnpooledError
from unpooled.kits import Kit, read_kit
from unpooled.links.flare.certificates import client_context, read_certificate
from unpooled.links.flare.lockdown import center_files, loosened
from unpooled.questions import RULES

_SOON = 30  # days


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
    except (ssl.SSLError, ConnectionResetError):
        words = f"whoever answers at {place} is not the coordinator of this federation"
        yield Finding("coordinator", False, words)
    except OSError:
        words = f"nobody answers at {place}; is it started, does a firewall stand between?"
        yield Finding("coordinator", False, words)
    else:
        yield Finding("coordinator", True, f"answers at {place}")


def _center(kit: Kit, center: CenterFile, folder: Path) -> Iterator[Finding]:
    good = center.name == kit.name
    yield Finding("center.toml", good, "fits" if good else f"it is of {center.name!r}")
    yield from _data(center, folder)
    yield Finding("policy", True, f"every number speaks for at least {center.policy.k} people")
    asks = center.approval == "ask"
    words = "the steward sees every payload first" if asks else "what the policy allows leaves"
    yield Finding("approval", True, f"{center.approval}: {words}")
    yield from _ledger(center, folder)


def _data(center: CenterFile, folder: Path) -> Iterator[Finding]:
    try:
        source = open_data(center, folder)
        people = source.rows(f"SELECT count(*) FROM {source.relation}")[0][0]
    except UnpooledError as error:
        yield Finding("data", False, str(error))
        return
    policy = center.policy
    few = "" if people >= policy.k else f"; with fewer than {policy.k} nothing can be answered"
    yield Finding("data", not few, f"{people} rows, {len(source.kinds)} columns{few}")
    asked = [name for name in source.kinds if policy.allows(name) and name != policy.person]
    yield from _cells(source, asked)
    problems = list(unknown_columns(policy, source))
    for problem in problems:
        yield Finding("policy", False, problem)
    if not problems:
        yield from _declared(source, asked, center)


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


def _ledger(center: CenterFile, folder: Path) -> Iterator[Finding]:
    path = folder / center.ledger
    if not path.exists():
        yield Finding("ledger", True, f"a new one will be made: {path}")
        return
    key = path.with_suffix(".key") if center.key is None else folder / center.key
    if not key.exists():
        yield Finding("ledger", False, f"its key is missing: {key}; without it it cannot go on")
        return
    try:
        verdict = verify(path, CenterKey.load_or_create(key).public)
    except UnpooledError as error:
        yield Finding("ledger", False, str(error))
        return
    yield Finding("ledger", verdict.ok, str(verdict))
