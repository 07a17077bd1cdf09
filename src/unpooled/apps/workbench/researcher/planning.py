"""Planning: power and precision of a study, by the command `unpooled plan` in a process of its own.

The command belongs to another distribution (`unpooled[study]`); its options are the form's fields.
"""

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from shlex import join

from unpooled.analyses.specification import Argument, Command
from unpooled.apps.workbench.researcher.forms import Typed

_LONGEST = 900.0  # seconds
_FIRST = ("sizes", "effect", "hazard_ratio", "proportions", "power")
_LEFT_OUT = ("jobs",)  # of the machine, not of the study


@dataclass(slots=True)
class Planned:
    """A plan that was asked for, and what came of it."""

    command: str
    typed: Typed
    future: "Future[tuple[int, str]]"

    @property
    def running(self) -> bool:
        """Whether it is still simulated."""
        return not self.future.done()

    @property
    def problem(self) -> str:
        """Why there is none."""
        code, text = self.future.result(timeout=0)
        return text.removeprefix("unpooled: ") if code else ""

    @property
    def text(self) -> str:
        """What the command says."""
        return self.future.result(timeout=0)[1]


@dataclass(slots=True)
class Planning:
    """Plans one after the other, so that pages stay quick."""

    worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "plans"))

    def plan(self, typed: Typed) -> Planned:
        """Begin to simulate."""
        arguments = arguments_of(typed)
        return Planned(join(["unpooled", *arguments]), typed, self.worker.submit(_run, arguments))


def _run(arguments: Sequence[str]) -> tuple[int, str]:
    """The exit code, and what was printed."""
    command = [sys.executable, "-m", "unpooled", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST)
    except subprocess.TimeoutExpired:
        return 1, f"it took more than {_LONGEST / 60:g} minutes. Hint: fewer simulations"
    return done.returncode, done.stdout.strip() if done.returncode == 0 else done.stderr.strip()


def arguments_of(typed: Typed) -> list[str]:
    """What the command line would have; every value stands behind its own option.

    Examples
    --------
    >>> arguments_of({"sizes": ["300 200"], "effect": ["0.2"], "--out": ["x"]})
    ['plan', '--sizes=300,200', '--effect=0.2']
    """
    arguments = ["plan"]
    for one in fields():
        given = " ".join(typed.get(one.name, ())).strip()
        if given:
            value = ",".join(given.replace(",", " ").split())
            arguments.append(f"{one.option}={value}")
    return arguments


def fields() -> tuple[Argument, ...]:
    """What can be asked, no file among it; nothing where the distribution is not installed."""
    commands = [e for e in entry_points(group="unpooled.commands") if e.name == "plan"]
    if not commands:
        return ()
    declared: Command = commands[0].load()
    return tuple(one for one in declared.analysis.arguments if one.name not in _LEFT_OUT)


def is_first(field: Argument) -> bool:
    """Whether a field is always shown."""
    return field.name in _FIRST
