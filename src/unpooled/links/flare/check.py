"""What a steward should know before a center goes live, in plain words."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from unpooled.center_config import CenterFile, open_data, read_center
from unpooled.errors import UnpooledError
from unpooled.keys import CenterKey
from unpooled.kits import Kit, read_kit
from unpooled.ledger import verify
from unpooled.links.flare.lockdown import center_files, loosened

_SOON = 30  # days


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    topic: str
    good: bool
    words: str

    def __str__(self) -> str:
        return f"{'ok   ' if self.good else 'WRONG'}  {self.topic}: {self.words}"


def check_center(folder: Path, config: Path | None = None) -> list[Finding]:
    """Look at everything that a center needs; nothing is started, nothing leaves."""
    try:
        kit = read_kit(folder, "center")
    except UnpooledError as error:
        return [Finding("kit", False, str(error))]
    findings = [Finding("kit", True, f"of the center {kit.name} in {kit.federation}")]
    findings += _certificate(folder, kit)
    findings += _settings(folder)
    findings += _address(kit)
    path = folder / "center.toml" if config is None else config
    try:
        center = read_center(path)
    except UnpooledError as error:
        return [*findings, Finding("center.toml", False, str(error))]
    return [*findings, *_center(kit, center, path.absolute().parent)]


def _certificate(folder: Path, kit: Kit) -> Iterator[Finding]:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.x509.oid import NameOID

    try:
        own = x509.load_pem_x509_certificate((folder / "startup" / "client.crt").read_bytes())
        root = x509.load_pem_x509_certificate((folder / "startup" / "rootCA.pem").read_bytes())
        own.verify_directly_issued_by(root)
    except (OSError, ValueError, TypeError, InvalidSignature):
        words = "it is missing, damaged or of another federation; ask the coordinator for a new kit"
        yield Finding("certificate", False, words)
        return
    name = own.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    if name != kit.name:
        yield Finding("certificate", False, f"it is of {name!r}, not of {kit.name!r}")
        return
    days = (own.not_valid_after_utc - datetime.now(UTC)).days
    until = f"{own.not_valid_after_utc:%d %B %Y}"
    if days < 0:
        yield Finding("certificate", False, f"it expired on {until}; ask for a new kit")
    else:
        hint = "; ask for a new kit soon" if days < _SOON else ""
        yield Finding("certificate", True, f"valid until {until}{hint}")


def _settings(folder: Path) -> Iterator[Finding]:
    changed = loosened(folder / "local", center_files())
    if changed:
        words = f"{', '.join(changed)} differ from the safe ones; `center start` restores them"
        yield Finding("engine settings", False, words)
    else:
        yield Finding("engine settings", True, "no code, no shell, no files, no logs")


def _address(kit: Kit) -> Iterator[Finding]:
    place = f"{kit.address}:{kit.port}"
    try:
        socket.create_connection((kit.address, kit.port), timeout=5).close()
    except socket.gaierror:
        yield Finding("coordinator", False, f"there is no computer called {kit.address!r}")
    except OSError:
        words = f"nobody answers at {place}; is it started, does a firewall stand between?"
        yield Finding("coordinator", False, words)
    else:
        yield Finding("coordinator", True, f"answers at {place}")


def _center(kit: Kit, center: CenterFile, folder: Path) -> Iterator[Finding]:
    good = center.name == kit.name
    yield Finding("center.toml", good, "fits" if good else f"it is of {center.name!r}")
    yield from _data(center, folder)
    policy = center.policy
    yield Finding("policy", True, f"every number speaks for at least {policy.k} people")
    yield from _ledger(center, folder)


def _data(center: CenterFile, folder: Path) -> Iterator[Finding]:
    try:
        source = open_data(center, folder)
        people = source.rows(f"SELECT count(*) FROM {source.relation}")[0][0]
    except UnpooledError as error:
        yield Finding("data", False, str(error))
        return
    policy = center.policy
    yield Finding("data", bool(people), f"{people} rows, {len(source.kinds)} columns")
    wanted = {*(policy.variables or ()), *(() if policy.person is None else (policy.person,))}
    unknown = sorted(wanted - set(source.kinds))
    if unknown:
        yield Finding("policy", False, f"it names columns that are not there: {', '.join(unknown)}")


def _ledger(center: CenterFile, folder: Path) -> Iterator[Finding]:
    path = folder / center.ledger
    if not path.exists():
        yield Finding("ledger", True, f"a new one will be made: {path}")
        return
    try:
        key = path.with_suffix(".key") if center.key is None else folder / center.key
        verdict = verify(path, CenterKey.load_or_create(key).public)
    except UnpooledError as error:
        yield Finding("ledger", False, str(error))
        return
    yield Finding("ledger", verdict.ok, str(verdict))
