"""The study's page: verdicts, tables and figures in one HTML file that needs no network."""

from collections.abc import Sequence

import numpy as np

from unpooled.results.report.page import Figure, Section, page
from unpooled.results.report.parts import Grid, Part, Remarks, Sentences
from unpooled_study.paper.claims import CLAIMS
from unpooled_study.paper.figures import FIGURES, make_figure
from unpooled_study.paper.tables import PAPER_NAMES, Results, StudyTable
from unpooled_study.simulations.monte_carlo import PUBLISHED_SIMS
from unpooled_study.simulations.settings import NULL_TIMES, QuantileSetting

FAR = 2.5
NOTES = {
    "null": "The paper draws them (Figure S1) but does not print them. Under the first claim above "
    "stands what is asked of them.",
    "power": "The paper refers to this table but does not print it, so there is nothing to "
    "compare ours with.",
}
PAPERS_TEST = (
    "Federated is the paper's test, which takes the counts of the chain for people. "
    "unpooled compare does not give it, since it rejects too often where groups are small or "
    "unequal: its table shares people out like everybody at their center. unpooled study tests "
    "knows both, as paper-table and table."
)
WIDE = 500  # fewer simulations than these have wide errors


def study_page(
    sims: int, seed: int, results: Results, made: Sequence[StudyTable], drawn: Sequence[str]
) -> str:
    """The whole page."""
    sections = [_claims(results), _agreement(made), *(_table(table) for table in made)]
    sections += [_figure(name, results) for name in drawn]
    under = f"{sims} simulations of each setting, {NULL_TIMES * sims} where the groups are alike "
    under += f"at every center (δ = σ_β = 0), seed {seed}"
    if sims < WIDE:
        ratio = (PUBLISHED_SIMS / sims) ** 0.5
        under += (
            f". The errors are wide: {sims} simulations are few, and every standard error is "
            f"{ratio:.1f} times that of the paper's {PUBLISHED_SIMS}. Do not read verdicts from "
            "this page; run at least 2000 simulations for that."
        )
    return page("The paper's simulation study, run again", under, sections)


def _claims(results: Results) -> Section:
    rows, reasons, open_ = [], [], 0
    for claim in sorted(CLAIMS, key=lambda c: isinstance(c.settings[0], QuantileSetting)):
        if not all(setting in results for setting in claim.settings):
            open_ += 1
            continue
        verdict = claim.judge(results)
        verdict_text = "reproduced" if verdict.reproduced else "not reproduced"
        rows.append([claim.words, verdict_text, verdict.numbers])
        if not verdict.reproduced and verdict.why:
            reasons.append(f"{claim.words} {verdict.why}")
    good = sum(row[1] == "reproduced" for row in rows)
    parts: list[Part] = [Sentences([f"{good} of {len(rows)} claims are reproduced."])]
    if rows:
        parts.append(Grid(["claim", "verdict", "numbers"], rows))
    parts += [Remarks.listed("Why not", reasons), Sentences([PAPERS_TEST])]
    if open_:
        parts.append(Sentences([f"{open_} claims need simulations that were not asked for."]))
    return Section("What the paper claims", parts)


def _agreement(made: Sequence[StudyTable]) -> Section:
    words = (
        "z is our figure minus the published one, over the standard error of their difference: "
        "both Monte Carlo errors (the published one is ours at 2000 simulations) and what rounding "
        "to the printed digits hides."
    )
    parts: list[Part] = [Sentences([words])]
    rows = [
        [
            f"Table {table.name}",
            str(len(z)),
            f"{100 * np.mean(np.abs(z) < FAR):.1f} %",
            f"{100 * np.mean(np.abs(z) < 2):.1f} %",
            f"{np.max(np.abs(z)):.2f}",
        ]
        for table in made
        for z in [table.scores]
        if len(z)
    ]
    if rows:
        header = ["table", "entries", f"|z| < {FAR}", "|z| < 2", "largest |z|"]
        parts.append(Grid(header, rows))
    return Section("Agreement with the published figures", parts)


def _table(table: StudyTable) -> Section:
    header, rows = table.rows()
    shown = [[PAPER_NAMES.get(cell, cell) for cell in row] for row in rows]
    words = " ".join([f"{table.title}.", *([NOTES[table.name]] if table.name in NOTES else [])])
    far = [
        f"{', '.join(PAPER_NAMES.get(cell, cell) for cell in entry.of)}: published "
        f"{entry.published.value:g}, ours {entry.ours.value:.3g}, z {entry.z:+.2f}. "
        f"{_reason(table, entry.of)}"
        for entry in table.entries
        if entry.published is not None and entry.z is not None and abs(entry.z) >= FAR
    ]
    entries = Remarks.listed(f"Entries with |z| ≥ {FAR}", far)
    return Section(f"Table {table.name}", [Sentences([words]), Grid(header, shown), entries])


def _reason(table: StudyTable, of: tuple[str, ...]) -> str:
    """Why an entry may lie far from the published one: methods in a setting share their people."""
    column = table.keys.index("method")
    others = [
        entry.z
        for entry in table.entries
        if entry.z is not None
        and entry.of[column] != of[column]
        and entry.of[:column] + entry.of[column + 1 :] == of[:column] + of[column + 1 :]
    ]
    away = float(np.mean(others))
    chance = (
        "The paper's runs shared random numbers between processes, so its errors are larger "
        "than those of 2000 independent runs, and z is too large."
    )
    if abs(away) >= 1:
        return (
            f"The other methods on the same people are off in the same way (mean z {away:+.2f}): "
            f"chance in the people drawn, not the method. {chance}"
        )
    if of[column] in ("paper-table", "yj-table"):
        return (
            "The other methods are not off, so the table itself differs: ours takes the smallest "
            "legal boundary where the paper's code took a larger one or merged what remained, and "
            "undoes splits that would give small counts away."
        )
    return f"The other methods are not off (mean z {away:+.2f}). {chance}"


def _figure(name: str, results: Results) -> Section:
    number = name.removeprefix("fig")
    return Section(f"Figure {number}", [], [Figure(make_figure(name, results), FIGURES[name])])
