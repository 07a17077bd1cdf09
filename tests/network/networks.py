"""A federation of real processes on loopback, with TLS, for tests."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
import polars as pl

from unpooled import Federation
from unpooled.center.policy import Policy
from unpooled.errors import UnpooledError

T = TypeVar("T")

PATIENT = 120  # seconds: more than any answer takes on a busy machine
SLACK = 60  # seconds: what ends on time, ends so on a busy machine
UNPOOLED = [sys.executable, "-m", "unpooled"]


def hospital(seed: int, n: int, m: int) -> pl.DataFrame:
    """People of two arms; a third variable to select on, and how long they were followed up."""
    random = np.random.default_rng(seed)
    los = np.concatenate([random.gamma(4, 1, n), random.gamma(5, 1, m)])
    return pl.DataFrame(
        {
            "los": los.round(6),
            "arm": ["a"] * n + ["b"] * m,
            "age": random.integers(20, 90, n + m),
            "months": random.exponential(30, n + m).round(4),
            "died": random.integers(0, 2, n + m),
        }
    )


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def run(*arguments: str | Path, wanted: int = 0, seconds: float = 300) -> str:
    """Run a command as a person does; what it printed."""
    done = subprocess.run(
        [*UNPOOLED, *map(str, arguments)], capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == wanted, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def eventually(act: Callable[[], T], seconds: float = 240) -> T:
    """Try until it is so, within a generous time; the last failure where it never is."""
    end = time.monotonic() + seconds
    while True:
        try:
            return act()
        except (AssertionError, UnpooledError):
            if time.monotonic() > end:
                raise
        time.sleep(0.3)


def people(fed: Federation) -> int:
    """How many people the centers speak for."""
    groups = fed.describe("los").to_dict()["groups"]
    return sum(int(group["n"]) for group in groups)


def everybody_answers(fed: Federation) -> None:
    """All three centers are there."""
    assert people(fed) == 445


@dataclass
class Running:
    """A process in a session of its own, and what it printed."""

    process: "subprocess.Popen[bytes]"
    output: Path

    def wait_for(self, words: str, seconds: float = 300) -> None:
        """Wait until it has said something."""
        end = time.monotonic() + seconds
        while words not in self.output.read_text():
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < end, f"{words!r} was not said:\n{self.output.read_text()}"
            time.sleep(0.1)

    def end(self, sign: signal.Signals = signal.SIGTERM) -> None:
        """End it with its whole process group."""
        if self.process.poll() is not None:
            return  # its number may be another process's by now
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)


@dataclass
class Network:
    """One coordinator and its centers, each with a kit and a process."""

    folder: Path
    centers: tuple[str, ...]
    running: dict[str, Running] = field(default_factory=dict)
    files: list[IO[bytes]] = field(default_factory=list)

    @property
    def toml(self) -> Path:
        """The file that an analyst opens."""
        return self.folder / "federation.toml"

    def kit(self, name: str) -> Path:
        """A participant's kit."""
        return self.folder / "kits" / name

    def make(self) -> None:
        """Write the federation down and make its kits."""
        self.folder.mkdir(parents=True, exist_ok=True)
        names = ", ".join(f'"{name}"' for name in self.centers)
        self.toml.write_text(
            f'name = "trial"\ncenters = [{names}]\n\n'
            f'[coordinator]\naddress = "localhost"\nport = {free_port()}\n'
        )
        run("federation", "init", self.toml)

    def write_center(self, name: str, where: str, more: str = "") -> None:
        """Say where a center's data are."""
        text = f'name = "{name}"\nledger = "{name}.ledger"\n{where}\n{more}'
        (self.kit(name) / "center.toml").write_text(text)

    def start(self, name: str, *, wait: bool = True) -> Running:
        """Start a participant and wait until it says that it is there."""
        part = "federation" if name == "coordinator" else "center"
        running = self.spawn(name, part, "start", self.kit(name))
        if wait:
            running.wait_for("is started" if part == "federation" else "is connected")
        return running

    def spawn(self, name: str, *arguments: str | Path) -> Running:
        """Start a command of unpooled in a session of its own."""
        return self._spawn(name, [*UNPOOLED, *map(str, arguments)])

    def spawn_python(self, name: str, *arguments: str | Path) -> Running:
        """Start a script in the place of a participant."""
        return self._spawn(name, [sys.executable, *map(str, arguments)])

    def _spawn(self, name: str, command: list[str]) -> Running:
        output = self.folder / f"{name}.out"
        answer = output.open("wb")
        self.files.append(answer)
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=answer,
            stderr=answer,
            start_new_session=True,
        )
        self.running[name] = Running(process, output)
        return self.running[name]

    def start_all(self) -> None:
        """Start the coordinator, then all centers at once."""
        self.start("coordinator")
        for name in self.centers:
            self.start(name, wait=False)
        for name in self.centers:
            self.running[name].wait_for("is connected")

    def end_all(self) -> None:
        """End every process that was started here."""
        for running in self.running.values():
            running.end()
        for each in self.files:
            each.close()


def network_of_files(folder: Path, frames: Mapping[str, pl.DataFrame], more: str = "") -> Network:
    """A network whose centers have CSV files; not started yet."""
    network = Network(folder, tuple(frames))
    network.make()
    for name, frame in frames.items():
        frame.write_csv(network.kit(name) / "data.csv")
        network.write_center(name, 'data = "data.csv"', more)
    return network


def local_twin(
    network: Network, data: Mapping[str, object], folder: Path, policy: Policy
) -> Federation:
    """The same centers in this process, with the same keys."""
    folder.mkdir(parents=True, exist_ok=True)
    twin = Federation.local(dict(data), policy=policy, ledger=folder)
    for name in network.centers:
        shutil.copy(folder / f"{name}.key", network.kit(name) / f"{name}.key")
    return twin
