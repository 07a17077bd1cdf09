"""Runs a center or the coordinator, from a kit, until it is stopped."""

import logging
import logging.handlers
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

from unpooled.center import Center
from unpooled.center.config import open_center, read_center
from unpooled.center.records.keys import CenterKey
from unpooled.errors import InputError, LinkError
from unpooled.federation.joint.keepers.keeping import Keeping
from unpooled.federation.joint.record import JointRecord
from unpooled.federation.network import connect
from unpooled.federation.network.desk import DESK, Desk
from unpooled.federation.network.engine.engine_process import REGISTERED, STARTED, EngineProcess
from unpooled.federation.network.setup.certificates import (
    check_valid,
    is_signed_by_center,
    share_signer,
)
from unpooled.federation.network.setup.kits import KEEPER_KEY, Kit, read_federation, read_kit
from unpooled.federation.network.setup.lockdown import center_files, coordinator_files, write_files

Say = Callable[[str], None]

_PAUSE = 5.0  # seconds before the engine is started again
_COMMON = ("secure_train=true", "org=unpooled", "config_folder=config")


def run_coordinator(folder: Path, say: Say) -> None:
    """Run the coordinator; says "started" when centers can connect, not before."""
    kit_folder = folder.absolute()
    kit = read_kit(kit_folder, "coordinator")
    check_valid(kit_folder, "coordinator")
    if _answers(kit.port):
        raise LinkError(f"port {kit.port} is in use: is the coordinator started already?")
    write_files(kit_folder / "local", coordinator_files(kit_folder / "storage"))
    environment = {
        "NVFLARE_CLIENT_OUTCOME_WAIT_TIMEOUT": "5",  # else a job waits long for a dead center
        "NVFLARE_DEAD_CLIENT_GRACE_PERIOD": "1",
    }
    engine = EngineProcess(kit_folder, "coordinator", _COMMON, environment)
    try:
        if not (engine.wait_ready(STARTED, 60.0) and _listens(kit.port, 20.0)):
            raise LinkError(f"the coordinator did not start in time; see {engine.log}")
        say(f"the coordinator of {kit.federation} is started, at {kit.address}:{kit.port}")
        engine.wait()
        raise LinkError(f"the network engine ended by itself; see {engine.log}")
    finally:
        engine.stop()


def _answers(port: int) -> bool:
    """Whether somebody on this computer listens at a port."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def _listens(port: int, seconds: float) -> bool:
    """Wait until somebody listens: the engine says that it has started a little before."""
    end = time.monotonic() + seconds
    while not _answers(port):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def run_center(folder: Path, config: Path | None, say: Say) -> None:
    """Run a center; says "connected" when the coordinator knows it, not before."""
    kit_folder = folder.absolute()
    kit = read_kit(kit_folder, "center")
    check_valid(kit_folder, "center")
    path = kit_folder / "center.toml" if config is None else config.absolute()
    written = read_center(path)
    if written.name != kit.name:
        raise InputError(f"{str(path)!r} belongs to {written.name!r}, the kit to {kit.name!r}")
    _keep_log(kit_folder / "center.log")
    publics = {keeper.name: keeper.public for keeper in kit.keepers}
    center = open_center(written, path.parent, publics, share_signer(kit_folder))
    keeping = _keeping(kit_folder, kit, center)
    write_files(kit_folder / "local", center_files())
    desk = Desk(center, center.steward, say, written.tick, keeping)
    say(f"{kit.name} has opened its data and its ledger ({len(center.ledger)} entries)")
    options = (*_COMMON, f"uid={kit.name}", "heart_beat_interval=2")
    try:
        while True:
            engine = EngineProcess(kit_folder, "center", options, {DESK: desk.address})
            _stay_connected(engine, kit, say)
            say(f"the network engine ended by itself, see {engine.log}; it is started again")
            time.sleep(_PAUSE)
    finally:
        desk.close()
        if keeping is not None:
            keeping.close()
        center.close()


def _keeping(folder: Path, kit: Kit, center: Center) -> Keeping | None:
    """What a keeper of joint centers does; None at all others."""
    if kit.name not in [keeper.name for keeper in kit.keepers]:
        return None
    private = (folder / KEEPER_KEY).read_bytes()
    key = CenterKey.load_or_create(folder / "joint center.key")
    record = JointRecord(key, folder / "joint center.ledger")
    is_signed = is_signed_by_center(folder)
    return Keeping(kit.name, private, kit.keepers, center, record, is_signed)


def _keep_log(path: Path) -> None:
    """Write down at the center what went wrong; it may quote data, so only its owner reads it."""
    os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=10**7, backupCount=3)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("unpooled")
    log.addHandler(handler)
    log.setLevel(logging.INFO)


def _stay_connected(engine: EngineProcess, kit: Kit, say: Say) -> None:
    """Wait for the coordinator, then for the end of the engine."""
    place = f"the coordinator at {kit.address}:{kit.port}"
    try:
        if not engine.wait_ready(REGISTERED, 15.0):
            say(f"{kit.name} waits for {place}")
            engine.wait_ready(REGISTERED, inf)
        say(f"{kit.name} is connected to {place}")
        engine.wait()
    except LinkError:
        return
    finally:
        engine.stop()


@dataclass(frozen=True, slots=True)
class Status:
    """Who is there and who is not."""

    federation: str
    address: str
    connected: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every center is connected."""
        return not self.missing

    def __str__(self) -> str:
        lines = [f"{self.federation}: the coordinator answers at {self.address}"]
        lines += [f"  {name}: connected" for name in self.connected]
        lines += [f"  {name}: not connected" for name in self.missing]
        return "\n".join(lines)


def federation_status(path: Path) -> Status:
    """Ask the coordinator which centers are connected."""
    federation = read_federation(path)
    link = connect(path, timeout=10.0)
    try:
        heard = link.connected()
    finally:
        link.close()
    connected = tuple(name for name in federation.centers if name in heard)
    missing = tuple(name for name in federation.centers if name not in heard)
    where = federation.coordinator
    return Status(federation.name, f"{where.address}:{where.port}", connected, missing)
