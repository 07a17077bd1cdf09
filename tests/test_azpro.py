"""Real data: 17 hospitals, one of them with one person in a group."""

import numpy as np
import pytest
from scipy import stats

from tests.azpro import azpro
from unpooled import Federation


def test_the_table_conserves_everybody_but_the_refused() -> None:
    rows = azpro()
    result = Federation.split(rows, center="hospital").table("los", by="procedure")
    assert [(r.center, r.group, r.reason) for r in result.refusals] == [
        ("H01", "PTCA", "too-small")
    ]
    sizes = rows.groupby(["hospital", "procedure"]).size()
    for (hospital, procedure), size in sizes.items():
        if (hospital, procedure) != ("H01", "PTCA"):
            assert result.people[hospital][procedure] == size
    assert len(result.people) == 17
    assert result.counts.sum() == pytest.approx(len(rows) - 1)
    assert result.counts.sum(axis=1) == pytest.approx(
        [(rows["procedure"] == "CABG").sum(), (rows["procedure"] == "PTCA").sum() - 1]
    )


def test_the_comparison_is_close_to_the_pooled_one_and_does_not_underflow() -> None:
    rows = azpro()
    fed = Federation.split(rows, center="hospital", seed=1)
    result = fed.compare("los", by="procedure", groups=("PTCA", "CABG"), method="all")
    x, y = (rows.loc[rows["procedure"] == g, "los"] for g in ("PTCA", "CABG"))
    assert stats.mannwhitneyu(y, x).pvalue == 0.0  # SciPy's p-value underflows
    assert all(np.isfinite(test.log10_p) and test.log10_p < -150 for test in result.methods)
    assert result.test.log10_p < -300
    pooled = stats.mannwhitneyu(y, x).statistic / (len(x) * len(y))
    assert result.effect is not None
    assert result.effect.low < pooled < result.effect.high
    assert len(result.centers) == 16
