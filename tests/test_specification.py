"""An analysis is declared once: Python, the command line and the declaration agree."""

import inspect
from typing import Any

import pytest
import typer.main

from unpooled import Federation
from unpooled.analyses.numbers import compare, quantiles
from unpooled.analyses.specification import ANALYSES, COMPARE, QUANTILES, Analysis
from unpooled.apps.cli import app
from unpooled.errors import InputError
from unpooled.results.numbers.quantiles import DEFAULT_P

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
_OTHERS = {"catalogue", "for_another", "draft_protocol", "ask_protocol", "check", "run"}
every = pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)


def parameters(analysis: Analysis) -> list[inspect.Parameter]:
    _, *others = inspect.signature(getattr(Federation, analysis.name)).parameters.values()
    return others


@every
def test_python_has_the_declared_arguments_and_defaults(analysis: Analysis) -> None:
    named = {parameter.name: parameter for parameter in parameters(analysis)}
    assert named.keys() == analysis.by_name.keys()
    for name, argument in analysis.by_name.items():
        if not argument.required:
            assert named[name].default == argument.default, name
    first = [p.name for p in named.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert first == [argument.name for argument in analysis.arguments][: len(first)]


@every
def test_the_command_has_an_option_for_every_argument(analysis: Analysis) -> None:
    first, *others = analysis.arguments
    command = COMMANDS[analysis.name]
    by_option = {option: p for p in command.params for option in p.opts}
    assert command.help.startswith(analysis.help)
    assert by_option[first.name].param_type_name == "argument"
    for argument in others:
        if argument.python_only:
            assert argument.option not in by_option
            continue
        option = by_option[argument.option]
        assert argument.help in option.help
        assert option.required == argument.required
        assert option.default in (argument.default, None)


@every
def test_every_command_has_the_options_that_all_share(analysis: Analysis) -> None:
    options = {option for p in COMMANDS[analysis.name].params for option in p.opts}
    shared = {"--centers", "--federation", "--k", "--codebook", "--json", "--report", "--chart"}
    assert shared <= options


def test_every_public_question_of_a_federation_is_declared() -> None:
    asked = {
        name
        for name, method in vars(Federation).items()
        if not name.startswith("_") and inspect.isfunction(method) and name != "close"
    }
    assert asked - _OTHERS == {analysis.name for analysis in ANALYSES}


def test_the_declared_methods_are_those_that_there_are() -> None:
    assert COMPARE.by_name["method"].choices == compare.METHODS
    assert set(compare.RANK_METHODS) < set(COMPARE.by_name["method"].choices)
    assert QUANTILES.by_name["method"].choices == quantiles.METHODS
    assert QUANTILES.by_name["p"].default == DEFAULT_P


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("variable", {"variable": 3}, "variable must be the name of a variable, or a list of"),
        ("variables", {"variable": ["v", 3]}, "variable must be the name of a variable, or a"),
        ("by", {"by": 3}, "by must be the name of a variable, got 3"),
        ("none", {"by": None}, "compare needs by: the variable that says who is in which group"),
        ("groups", {"groups": "ab"}, "groups must be a list of names, got 'ab'"),
        ("flag", {"ordered": 1}, "ordered must be True or False, got 1"),
        ("word", {"alternative": "up"}, "alternative must be two-sided, greater or less, got 'up'"),
        ("words", {"method": ["sum", "t"]}, "method must be one of .* or all, got 't'"),
        ("nothing", {"method": []}, "method must be one of .* or all, got none"),
        ("no word", {"method": 3}, "method must be one of .* or all, got 3"),
        ("whole", {"max_bins": True}, "max_bins must be a whole number of at least 1, got True"),
        ("cuts", {"cuts": "65"}, r"cuts must be numbers, such as cuts=\(65,\), got '65'"),
    ],
)
def test_what_is_not_as_declared_is_an_error(name: str, given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        COMPARE.check({"variable": "v", "by": "g", **given})


def test_reading_what_is_declared_needs_no_numpy() -> None:
    import subprocess
    import sys

    script = "import sys, unpooled.apps.cli; print('numpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout.strip() == "False", result.stderr
