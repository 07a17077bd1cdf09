"""The study of the paper: simulate, then write tables, figures and a page of verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unpooled.errors import InputError
from unpooled_study.paper import figures, tables
from unpooled_study.paper.tables import Results, StudyTable, make_table
from unpooled_study.progress import progress
from unpooled_study.simulations.runs import run
from unpooled_study.simulations.settings import (
    ALLOCATIONS,
    NULL_TIMES,
    PLAIN_NULL,
    AnySetting,
    paper_test,
)

PARTS = (*tables.TITLES, *figures.FIGURES)
KEPT = "simulations"


@dataclass(frozen=True, slots=True)
class PaperStudy:
    """What was asked for: which parts of the paper, how many simulations, and the seed."""

    parts: tuple[str, ...]
    sims: int
    seed: int

    @classmethod
    def of(cls, only: str | None, sims: int, seed: int) -> "PaperStudy":
        """Read what was asked for; `only` names parts, separated by commas.

        Examples
        --------
        >>> PaperStudy.of("s1, fig2", 50, 1).parts
        ('S1', 'fig2')
        """
        if sims < 20:
            raise InputError(f"sims must be at least 20, got {sims}")
        if seed < 0:
            raise InputError(f"seed must not be negative, got {seed}")
        if only is None:
            return cls(PARTS, sims, seed)
        by_name = {part.lower(): part for part in PARTS}
        asked = [name.strip().lower() for name in only.split(",")]
        for name in asked:
            if name not in by_name:
                raise InputError(f"only must name parts of {', '.join(PARTS)}, got {name!r}")
        return cls(tuple(part for part in PARTS if part.lower() in asked), sims, seed)

    def settings(self) -> list[AnySetting]:
        """The settings that the parts need, each once."""
        settings: dict[AnySetting, None] = {}
        for part in self.parts:
            module = tables if part in tables.TITLES else figures
            settings.update(dict.fromkeys(module.settings_of(part)))
        return list(settings)

    def simulations(self) -> dict[AnySetting, int]:
        """How many simulations each setting gets: the plain null several times as many.

        Examples
        --------
        >>> sorted(set(PaperStudy.of("null", 2000, 1).simulations().values()))
        [10000]
        """
        null = [paper_test(centers, PLAIN_NULL) for centers in ALLOCATIONS]
        return {s: self.sims * (NULL_TIMES if s in null else 1) for s in self.settings()}


def run_paper(study: PaperStudy, out: Path, jobs: int) -> list[Path]:
    """Run what is not yet kept in `out`, then write everything there; gives the files."""
    simulations = study.simulations()
    results = run(list(simulations), simulations, study.seed, jobs, out / KEPT)
    made = [make_table(part, results) for part in study.parts if part in tables.TITLES]
    written = [path for table in made for path in _write_table(table, out)]
    drawn = [part for part in study.parts if part in figures.FIGURES]
    written += _write_figures(drawn, results, out)
    return [*written, _write_page(study, results, made, drawn, out)]


def _write_table(table: StudyTable, out: Path) -> list[Path]:
    paths = [out / f"{table.name}.csv", out / f"{table.name}.md"]
    for path, text in zip(paths, (table.to_csv(), table.to_markdown()), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def _write_figures(names: Sequence[str], results: Results, out: Path) -> list[Path]:
    from unpooled.results.charts.charts import save

    written = []
    with progress("drawing", len(names)) as advance:
        for name in names:
            chart = figures.make_figure(name, results)
            for kind in ("svg", "png"):
                save(chart, out / f"{name}.{kind}")
                written.append(out / f"{name}.{kind}")
            advance(1)
    return written


def _write_page(
    study: PaperStudy,
    results: Results,
    made: Sequence[StudyTable],
    drawn: Sequence[str],
    out: Path,
) -> Path:
    from unpooled.results.report.page import write
    from unpooled_study.paper.page import study_page

    return write(out / "study.html", study_page(study.sims, study.seed, results, made, drawn))
