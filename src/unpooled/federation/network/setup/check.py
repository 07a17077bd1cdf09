"""What a steward should know before a center goes live: its kit, certificate and coordinator."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

from unpooled.center.check import Finding, center_findings
from unpooled.center.config import read_center
from unpooled.errors import UnpooledError
from unpooled.federation.network.setup.certificates import client_context, read_certificate
from unpooled.federation.network.setup.kits import Kit, read_kit
from unpooled.federation.network.setup.lockdown import center_files, loosened

_SOON = 30  # days
_DATES = {  # what OpenSSL says of a certificate of this federation's authority → in words
    9: "shows a certificate that is not valid yet: the clocks of the two computers differ",
    10: "shows a certificate that has expired: the coordinator needs a new kit",
}


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
    good = center.name == kit.name
    words = "fits" if good else f"it belongs to {center.name!r}"
    findings.append(Finding("center.toml", good, words))
    return [*findings, *center_findings(center, path.absolute().parent)]


def _certificate(folder: Path, kit: Kit) -> Iterator[Finding]:
    try:
        certificate = read_certificate(folder, "center")
    except UnpooledError as error:
        yield Finding("certificate", False, str(error))
        return
    until, days = f"{certificate.until:%d %B %Y}", certificate.days
    if certificate.name != kit.name:
        words = f"it belongs to {certificate.name!r}, not to {kit.name!r}"
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
