"""Makes docs/picture.png from the demo's hospitals: python docs/make_picture.py."""

from pathlib import Path
from tempfile import TemporaryDirectory

import altair

from unpooled import Federation
from unpooled.apps.demo import VARIABLES, write_hospitals
from unpooled.results.charts.charts import save


def main() -> None:
    """The federated distribution above, the forest plot below."""
    with TemporaryDirectory() as folder:
        files = write_hospitals(Path(folder))
        fed = Federation.local(files, k=10, variables=VARIABLES, seed=1)
        groups = ("control", "patient")
        table = fed.table("crp", by="arm", groups=groups, limits="natural", max_bins=16)
        comparison = fed.compare("crp", by="arm", groups=groups)
    above = table.chart().properties(title="The distribution over all hospitals")
    below = comparison.forest().properties(title="The effect at each hospital and over all")
    save(altair.vconcat(above, below), Path(__file__).with_name("picture.png"))


if __name__ == "__main__":
    main()
