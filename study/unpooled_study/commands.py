"""The commands `study` and `plan`: each calls the library and prints."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from unpooled.analyses.specification import Analysis, Argument, Command
from unpooled_study.progress import silent

if TYPE_CHECKING:
    from unpooled_study.own import StudyResult
    from unpooled_study.planning import PlanResult

study_app = typer.Typer(help="Simulation studies: the paper's, and your own.", no_args_is_help=True)

Sims = Annotated[int, typer.Option(help="Simulations of each setting.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]
Jobs = Annotated[
    int | None, typer.Option(help="Processes; all cores, if not given.", show_default=False)
]
ConfigFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A TOML file that says what to simulate.")
]
Out = Annotated[
    Path | None,
    typer.Option(help="A folder that keeps the simulations, so that a second run goes on."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print exact numbers as JSON.")]


@study_app.command()
def paper(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("unpooled-study"),
    sims: Sims = 2000,
    only: Annotated[
        str | None,
        typer.Option(help="Parts of it, such as S1,fig2: S1-S5, null, power, figS1, fig1-fig5."),
    ] = None,
    jobs: Jobs = None,
    seed: Seed = 1,
) -> None:
    """The paper's simulation study: every table and figure, next to the published figures.

    Simulations are kept in the folder: after an interruption the same command goes on.
    """
    from unpooled_study.paper.paper import PaperStudy, run_paper

    study = PaperStudy.of(only, sims, seed)
    out.mkdir(parents=True, exist_ok=True)
    try:
        written = run_paper(study, out, jobs_of(jobs))
    except KeyboardInterrupt:
        stopped(goes_on=True)
    typer.echo(f"wrote {len(written)} files, the page is {written[-1]}")


@study_app.command()
def parallel(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("parallel-study"),
    runs: Annotated[int, typer.Option(help="Simulations of each setting.")] = 1000,
    jobs: Jobs = None,
    seed: Seed = 1,
) -> None:
    """The parallel method against the full data: what is asked of it, and what is found.

    Simulations are kept in the folder: after an interruption the same command goes on.
    """
    from unpooled_study.parallel.study import ParallelStudy, run_parallel

    study = ParallelStudy(runs, seed)
    out.mkdir(parents=True, exist_ok=True)
    try:
        written = run_parallel(study, out, jobs_of(jobs))
    except KeyboardInterrupt:
        stopped(goes_on=True)
    typer.echo(f"wrote {written}")


def jobs_of(jobs: int | None) -> int:
    """How many processes: as asked, or as many as this process may use."""
    from unpooled.errors import InputError

    if jobs is not None and jobs < 1:
        raise InputError(f"jobs must be at least 1, got {jobs}")
    return jobs or os.cpu_count() or 1


def stopped(goes_on: bool) -> NoReturn:
    """Say how to go on after Ctrl-C, and end as a process does that was interrupted."""
    after = "the same command goes on from here" if goes_on else "nothing was kept"
    typer.echo(f"stopped; {after}", err=True)
    raise typer.Exit(130)


@study_app.command("tests")
def study_tests(
    config: ConfigFile, out: Out = None, jobs: Jobs = None, as_json: AsJson = False
) -> None:
    """Your own study of the tests: how often each rejects."""
    from unpooled_study.own import read_test_config, run_tests

    read = read_test_config(config)
    with _kept(out) as folder, silent(as_json):
        _show(run_tests(read, jobs_of(jobs), folder), as_json)


@study_app.command("quantiles")
def study_quantiles(
    config: ConfigFile, out: Out = None, jobs: Jobs = None, as_json: AsJson = False
) -> None:
    """Your own study of the quantile estimators: bias, SD and mean squared error."""
    from unpooled_study.own import read_quantile_config, run_quantiles

    read = read_quantile_config(config)
    with _kept(out) as folder, silent(as_json):
        _show(run_quantiles(read, jobs_of(jobs), folder), as_json)


PLAN = Analysis(
    "plan",
    "Power and precision of a planned federation, against pooled data.",
    "power by people",
    (
        Argument(
            "sizes",
            "numbers",
            "People of group x per center: 300,200,100.",
            required=True,
            hint="--sizes 300 200 100",
        ),
        Argument("effect", "number", "How much larger group y is, of a number."),
        Argument(
            "hazard_ratio", "number", "Of times to an event: the hazard of group y to that of x."
        ),
        Argument(
            "proportions",
            "numbers",
            "The share of group x, and of y: .2,.3.",
            hint="--proportions .2 .3",
        ),
        Argument(
            "sizes_y", "numbers", "People of group y, if not as many.", hint="--sizes-y 300 200"
        ),
        Argument("median", "number", "With --hazard-ratio: the median of group x."),
        Argument("follow_up", "number", "With --hazard-ratio: when follow-up ends."),
        Argument("dropout", "number", "With --hazard-ratio: the share lost before, evenly."),
        Argument("center_sd", "number", "SD of the centers' levels, log hazards or log odds.", 0.0),
        Argument(
            "effect_sd",
            "number",
            "SD of the centers' effects, log hazard or log odds ratios.",
            0.0,
        ),
        Argument(
            "family",
            "text",
            "With --effect: such as normal (the default), t:df=3 or gamma:shape=4,scale=2.",
        ),
        Argument("k", "whole", "Every number describes at least K people.", 10, rule="at least 1"),
        Argument(
            "alternative",
            "choice",
            "With --effect: two-sided (the default), greater or less.",
            choices=("two-sided", "greater", "less"),
        ),
        Argument("level", "number", "The level of the tests.", 0.05),
        Argument("power", "number", "Also find the people needed for this power."),
        Argument(
            "p",
            "numbers",
            "With --effect: also the standard error of these quantiles: .5,.98.",
            rule="numbers in (0, 1)",
            hint="--p .5 .98",
        ),
        Argument(
            "sims",
            "whole",
            "Simulations: 1000, with --hazard-ratio 200, if not given.",
            rule="at least 20",
        ),
        Argument("seed", "whole", "The same seed gives the same numbers.", 1),
        Argument("jobs", "whole", "Processes; all cores, if not given.", rule="at least 1"),
    ),
    "For a number (--effect), times to an event (--hazard-ratio, --median, --follow-up) or a\n"
    "proportion (--proportions).",
)


def run_plan(quiet: bool, **typed: Any) -> "PlanResult":
    """Simulate a planned federation, as it is declared."""
    from unpooled_study.planning import make_plan, read_plan

    PLAN.check(typed)
    sims, seed, jobs = (typed.pop(name, default) for name, default in _SIMULATION.items())
    planned = read_plan(**typed)
    usual = SIMS if typed.get("hazard_ratio") is None else SURVIVAL_SIMS
    with _kept(None) as folder, silent(quiet):
        return make_plan(planned, sims or usual, seed, jobs_of(jobs), folder)


_SIMULATION = {"sims": None, "seed": 1, "jobs": None}
SIMS, SURVIVAL_SIMS = 1000, 200  # a run of survival takes a tenth of a second and more

plan = Command(PLAN, run_plan)


def _show(result: "StudyResult", as_json: bool) -> None:
    text = json.dumps(result.to_dict(), ensure_ascii=False) if as_json else str(result)
    typer.echo(text)


@contextmanager
def _kept(out: Path | None) -> Iterator[Path]:
    """Where simulations are kept: in the folder asked for, or nowhere for long."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as short:
        try:
            yield Path(short) if out is None else out
        except KeyboardInterrupt:
            stopped(goes_on=out is not None)
