"""Real centers answer as centers in one process do: the same bytes, through the same gate."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.network.networks import PATIENT, Network, run
from unpooled import Federation, Variable
from unpooled.center.records.ledger import verify
from unpooled.errors import InputError

pytest.importorskip("nvflare", reason="nvflare is not installed")

Pair = tuple[Network, Federation]

ANALYSES: dict[str, Callable[[Federation], Any]] = {
    "table": lambda fed: fed.table("los", by="arm"),
    "describe": lambda fed: fed.describe("los", by="arm", where="age >= 40"),
    "describe all": lambda fed: fed.describe("los"),
    "table of a subset": lambda fed: fed.table("los", where="age < 60", max_bins=8),
    "compare": lambda fed: fed.compare("los", by="arm", groups=("a", "b"), method="all"),
    "compare, ordered": lambda fed: fed.compare(
        "los", by="arm", groups=("a", "b"), ordered=True, method="all"
    ),
    "compare, one-sided": lambda fed: fed.compare("los", by="arm", alternative="greater"),
    "compare several": lambda fed: fed.compare(["los", "age"], by="arm"),
    "quantiles": lambda fed: fed.quantiles("los", by="arm", method="all"),
    "survival": lambda fed: fed.survival("months", "died", by="arm"),
    "quantiles by powers": lambda fed: fed.quantiles("los", [0.5], method="paper-grid"),
}


@pytest.fixture(scope="module")
def connected(mixed: Pair) -> Iterator[Federation]:
    with Federation.connect(mixed[0].toml, timeout=120) as fed:
        yield fed


def test_one_job_stays_open_for_many_questions(mixed: Pair) -> None:
    with Federation.connect(mixed[0].toml, timeout=PATIENT) as fed:
        assert fed.describe("los").to_dict()["groups"][0]["n"] == 479
        mixed[1].describe("los")  # a center remembers what it was asked: ask both the same
        job = fed._coordinator.link._job  # type: ignore[attr-defined]
        for _ in range(5):
            fed.describe("los")
        assert fed._coordinator.link._job == job  # type: ignore[attr-defined]


@pytest.mark.parametrize("analysis", ANALYSES)
def test_every_analysis_is_the_local_one_byte_for_byte(
    analysis: str, mixed: Pair, connected: Federation
) -> None:
    _, twin = mixed
    before = len(connected.releases.received), len(twin.releases.received)
    over_network, in_process = ANALYSES[analysis](connected), ANALYSES[analysis](twin)
    assert over_network.to_dict() == in_process.to_dict()
    left = connected.releases.received[before[0] :]
    expected = twin.releases.received[before[1] :]
    assert [(r.center, r.payload) for r in left] == [(r.center, r.payload) for r in expected]


def test_a_program_that_forgets_to_close_ends_all_the_same(mixed: Pair) -> None:
    program = (
        "import sys; from unpooled import Federation; "
        "fed = Federation.connect(sys.argv[1]); print(len(fed.describe('los').groups))"
    )
    command = [sys.executable, "-c", program, str(mixed[0].toml)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_the_command_line_asks_real_centers(mixed: Pair) -> None:
    network, twin = mixed
    answer = run("describe", "los", "--by", "arm", "--federation", network.toml, "--json")
    assert json.loads(answer) == twin.describe("los", by="arm").to_dict()


@pytest.mark.parametrize("k", ["60", "5", "2"])
def test_the_command_line_says_nothing_of_k_over_the_network(mixed: Pair, k: str) -> None:
    asked = ("describe", "los", "--by", "arm", "--federation", mixed[0].toml, "--k", k)
    assert "are each center's own" in run(*asked, wanted=2)


def test_a_variable_that_a_codebook_misspells_is_named(mixed: Pair, tmp_path: Path) -> None:
    book = tmp_path / "book.toml"
    book.write_text("[lso]\nlower = 0\n")
    asked = ("table", "los", "--federation", mixed[0].toml, "--codebook", book)
    assert "there is no variable 'lso'. Hint: did you mean 'los'?" in run(*asked, wanted=2)
    declared = {"lso": Variable(lower=0)}
    with Federation.connect(mixed[0].toml, variables=declared) as fed:
        for _ in range(2):  # nor is it passed over the second time
            with pytest.raises(InputError, match="did you mean 'los'"):
                fed.describe("los")


def test_status_names_the_centers_that_are_connected(mixed: Pair) -> None:
    answer = run("federation", "status", mixed[0].toml)
    assert answer.count(": connected") == 4
    assert "FLARE" not in answer


def test_a_steward_reads_what_is_fine_and_what_left(mixed: Pair, connected: Federation) -> None:
    network, _ = mixed
    connected.describe("los")
    kit = network.kit("Gent")
    assert verify(kit / "Gent.ledger").ok
    answer = run("center", "check", kit)
    assert "34 rows" in answer
    assert "WRONG" not in answer
