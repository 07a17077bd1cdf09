"""Runs a center or the coordinator, from a kit, until it is stopped."""

import logging
import logging.handlers
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path

from unpooled.center.config import open_center, read_center
from unpooled.errors import InputError, LinkError
from unpooled.kits import Kit, read_kit
from unpooled.links.flare.certificates import check_valid
from unpooled.links.flare.desk import DESK, Desk
from unpooled.links.flare.engine_process import REGISTERED, STARTED, EngineProcess
from unpooled.links.flare.lockdown import center_files, coordinator_files, write_files

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
        raise InputError(f"{str(path)!r} is of {written.name!r}, the kit is of {kit.name!r}")
    _keep_log(kit_folder / "center.log")
    center = open_center(written, path.parent)
    write_files(kit_folder / "local", center_files())
    desk = Desk(center, center.steward, say, written.tick)
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
        center.close()


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
