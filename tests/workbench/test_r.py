"""docs/r.md is run as it stands, and R reads what the library says."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workbench.browser import Browser
from unpooled import Federation
from unpooled.apps.demo import write_hospitals
from unpooled.apps.workbench.foundation.server import Address, Server
from unpooled.apps.workbench.researcher.cards.code import Opening
from unpooled.apps.workbench.researcher.opening import make_server
from unpooled.apps.workbench.researcher.work import Source

PAGE = (Path(__file__).parents[2] / "docs" / "r.md").read_text()
LINES = "\n".join(re.findall(r"```r\n(.*?)```", PAGE, flags=re.S))
SAY = """
said <- list(asked = answer$result$effect, centers = study$centers, book = crp$result$effect,
             means = means$result$groups, counts = sexes$result$counts,
             medians = months$result$medians, left = unpooled("releases"))
writeLines(jsonlite::toJSON(said, auto_unbox = TRUE, digits = NA), "said.json")
wrong <- tryCatch(unpooled("compare", list(variable = "crp", by = "nothing")), error = identity)
writeLines(conditionMessage(wrong), "wrong.txt")
"""


def has_r() -> bool:
    """Whether R and the two packages are there."""
    if shutil.which("Rscript") is None:
        return False
    look = ["Rscript", "-e", "library(httr2); library(jsonlite)"]
    return subprocess.run(look, capture_output=True, timeout=60).returncode == 0


class Program:
    """Another program with the same key, so with the same book."""

    def __init__(self, server: Server, key: str) -> None:
        self.browser = Browser(server.url)
        self.bearer = {"Authorization": f"Bearer {key}"}

    def look(self, analysis: str, **arguments: Any) -> dict[str, Any]:
        body = json.dumps(arguments).encode()
        reply = self.browser.send("POST", f"/api/book/{analysis}", body, self.bearer)
        result: dict[str, Any] = json.loads(reply.body)["result"]
        return result


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    fed = Federation.local(write_hospitals(tmp_path / "hospitals"), seed=1)
    source = Source("test", Opening.of_federation("f.toml"), fed)
    with make_server(source, Address()) as running:
        yield running
    source.close()


def test_what_the_page_says_runs_in_r(server: Server, tmp_path: Path) -> None:
    if not has_r():
        pytest.skip("needs R: apt-get install r-base-core r-cran-httr2 r-cran-jsonlite")
    key = server.sessions.key("R")
    (tmp_path / "key.txt").write_text(f"{key}\n")
    (tmp_path / "page.R").write_text(LINES + SAY)
    done = subprocess.run(
        ["Rscript", "--vanilla", "page.R"],
        cwd=tmp_path,
        env={**os.environ, "UNPOOLED_URL": server.url},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads((tmp_path / "said.json").read_text())
    with Federation.local(write_hospitals(tmp_path / "again"), seed=1) as fed:
        assert answer["asked"] == pytest.approx(fed.compare("crp", by="arm").to_dict()["effect"])
    states = {center["state"] for center in answer["centers"]}
    assert states <= {"answered", "partly", "refused"}  # these centers were asked before
    assert states & {"answered", "partly"}
    assert len(answer["centers"]) == len(answer["left"]) == 5
    python = Program(server, key)
    assert answer["book"] == pytest.approx(
        python.look("compare", variable="crp", by="arm")["effect"]
    )
    counts = python.look("crosstab", variable="sex", by="arm")["counts"]
    assert answer["counts"] == [["NA" if n is None else n for n in row] for row in counts]
    medians = python.look("survival", time="months", event="died", by="arm")["medians"]
    assert [m.get("estimate") for m in answer["medians"]] == [m["estimate"] for m in medians]
    means = python.look("describe", variable="crp", by="age_band")["groups"]
    for group, mean in zip(means, answer["means"], strict=True):
        assert group["mean"] == pytest.approx(mean["mean"], rel=1e-12)
    assert "no center has a variable 'nothing'" in (tmp_path / "wrong.txt").read_text()
