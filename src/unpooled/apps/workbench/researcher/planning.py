"""Planning: power and precision of a study, by the command `unpooled plan` in a process of its own.

The command belongs to another distribution (`unpooled[study]`); its options are the form's fields.
"""

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from inspect import signature
from shlex import join
from typing import Any

from unpooled.apps.workbench.researcher.forms import Typed

_LONGEST = 900.0  # seconds
_FIRST = ("sizes", "effect", "hazard_ratio", "proportions", "power")
_LEFT_OUT = ("jobs", "as_json")  # of the machine, not of the study


@dataclass(frozen=True, slots=True)
class PlanField:
    """An option of the command as a field."""

    name: str
    option: str
    help: str
    required: bool
    flag: bool
    default: str = ""

    @property
    def first(self) -> bool:
        """Whether it is always shown."""
        return self.required or self.name in _FIRST


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
            arguments.append(one.option if one.flag else f"{one.option}={value}")
    return arguments


@cache
def fields() -> tuple[PlanField, ...]:
    """The options of the command; none where the distribution is not installed."""
    import typer

    commands = [e for e in entry_points(group="unpooled.commands") if e.name == "plan"]
    if not commands:
        return ()
    plan = commands[0].load()
    app = typer.Typer()
    app.command()(plan)
    typed = signature(plan).parameters
    command: Any = typer.main.get_command(app)
    return tuple(
        PlanField(
            parameter.name,
            max(parameter.opts, key=len),
            parameter.help or "",
            parameter.required,
            bool(parameter.is_flag),
            "" if parameter.default in (None, False) else f"{parameter.default}",
        )
        for parameter in command.params
        if parameter.name not in _LEFT_OUT
        and parameter.name in typed
        and not _names_a_file(typed[parameter.name].annotation)
    )


def _names_a_file(annotation: object) -> bool:
    """Nothing that a form says may name a file."""
    return "Path" in str(annotation)
