"""Five synthetic hospitals and a tour of what unpooled does with them."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

from unpooled.center.data.variables import Variable
from unpooled.center.records.ledger import verify
from unpooled.federation import Federation

SEED = 20260214
FOLLOWED = 60.0  # months that the hospitals' study lasts
VARIABLES = {
    "crp": Variable(unit="mg/L", lower=0),
    "months": Variable(lower=0, upper=FOLLOWED),
}

PROTOCOL = """title = "CRP and survival after sepsis"
purpose = "Is C-reactive protein higher in patients, in women and men, and how long do they live?"

[[groups]]                     # the most important first
name = "arm"
levels = ["control", "patient"]

[[groups]]
name = "sex"
levels = ["F", "M"]

[[groups]]
name = "age_band"
of = "age"
cuts = [65]
labels = ["under 65", "65 and over"]

[variables.crp]
label = "C-reactive protein"
unit = "mg/L"
lower = 0

[variables.age]
label = "Age"
unit = "years"

[[survival]]
time = "months"
event = "died"
horizon = 60
"""

# patients, controls, whether the laboratory rounds, and how many have no value
HOSPITALS = {
    "Haifa": (330, 290, False, 0),
    "Lausanne": (190, 220, False, 0),
    "Milan": (150, 110, False, 42),
    "Oslo": (64, 56, True, 3),
    "Porto": (24, 7, False, 0),
}


def write_hospitals(folder: Path, seed: int = SEED) -> dict[str, Path]:
    """Write a CSV for each hospital: C-reactive protein, arm, age, sex, and months to death."""
    folder.mkdir(parents=True, exist_ok=True)
    random, fate = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    files = {}
    for name, (patients, controls, rounds, missing) in HOSPITALS.items():
        arm = np.repeat(["patient", "control"], [patients, controls])
        level = np.where(arm == "patient", 1.9, 1.5) + random.normal(0, 0.08)
        crp = np.exp(random.normal(level, 0.75))
        shown = [f"{v:.0f}" if rounds else f"{v:.2f}" for v in crp]
        for row in random.choice(len(shown), missing, replace=False):
            shown[row] = ""
        age = random.integers(35, 88, len(shown))
        sex = random.choice(["F", "M"], len(shown))
        months, died = _follow_up(fate, arm == "patient")
        files[name] = folder / f"{name}.csv"
        with files[name].open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["crp", "arm", "age", "sex", "months", "died"])
            writer.writerows(zip(shown, arm, age, sex, months, died, strict=True))
    return files


def _follow_up(
    random: np.random.Generator, patient: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> tuple[list[str], list[int]]:
    """Months until death or the end of follow-up, and who died."""
    lives = random.weibull(1.3, len(patient)) * np.where(patient, 42.0, 75.0)
    ends = np.minimum(random.uniform(12, 90, len(patient)), FOLLOWED)
    months = [f"{months:.1f}" for months in np.minimum(lives, ends)]
    return months, [int(dead) for dead in lives <= ends]


def _run_protocol(files: dict[str, Path], folder: Path, say: Callable[[str], None]) -> None:
    """A study's protocol, asked once: Table 1 and two questions from its book."""
    plan = folder / "protocol.toml"
    plan.write_text(PROTOCOL, encoding="utf-8")
    say(f"Five hospitals in {folder / 'hospitals'}, K = 10. No number below describes fewer.\n")
    with Federation.local(files, k=10, variables=VARIABLES, seed=SEED) as fed:
        book = fed.run(plan)
    saved = book.save(folder / "protocol.book")

    say("─── A study's protocol, asked once: Table 1 ───\n")
    table = book.table1(by="arm")
    say(f"{table}\n")
    page = table.write(folder / "table1.html")

    say("─── From the same book, with no further question: within sex and age ───\n")
    say(f"{book.compare('crp', by='arm', strata=['sex', 'age_band'])}\n")
    say(f"{book.compare('crp', by='arm', where={'sex': 'F'}).answer}")
    say(f"{book.survival('months', by='arm', strata='sex').answer}\n")
    say(f"Open the table:   {page}")
    say(f"Ask the book:     unpooled compare crp --by arm --book {saved}\n")


def run_demo(folder: Path, say: Callable[[str], None]) -> None:
    """Write the hospitals, ask them, and show what each of them let out."""
    files = write_hospitals(folder / "hospitals")
    _run_protocol(files, folder, say)
    ledgers = folder / "ledgers"
    fed = Federation.local(files, k=10, variables=VARIABLES, ledger=ledgers)
    groups = ("control", "patient")

    say("─── The same hospitals, asked question by question. Who is there? ───\n")
    say(f"{fed.describe('crp', by='arm', groups=groups)}\n")

    say("─── Is C-reactive protein higher in patients than in controls? ───\n")
    comparison = fed.compare("crp", by="arm", groups=groups, method="all")
    say(f"{comparison}\n")

    say("─── What are its median and its 98th percentile? ───\n")
    methods = ["parallel", "yj-table", "yj-likelihood"]
    say(f"{fed.quantiles('crp', by='arm', groups=groups, method=methods)}\n")

    say("─── How is it distributed? ───\n")
    table = fed.table("crp", by="arm", groups=groups, method="parallel", max_bins=12)
    say(f"{table}\n")

    say("─── How long do they live? ───\n")
    survival = fed.survival("months", "died", by="arm", groups=groups)
    say(f"{survival}\n")

    say("─── Everything that left the hospitals for the comparison ───\n")
    say(f"{comparison.record.releases}\n")

    say("─── Each hospital keeps a signed record of it ───\n")
    for name in fed.centers:
        say(str(verify(ledgers / f"{name}.ledger")))
    report = comparison.report(folder / "report.html")
    say(f"\nRead a record:    unpooled ledger show {ledgers / 'Porto.ledger'}")
    say(f"Open the report:  {report}")
    say(f"Survival curves:  {survival.report(folder / 'survival.html')}")
