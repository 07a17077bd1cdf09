"""Over the network a center's policy says by what people may be chosen, and by what not."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.network.networks import PATIENT, Network, hospital, network_of_files, run
from unpooled import Federation
from unpooled.center.questions import Reason
from unpooled.center.records.ledger import Entry, read, verify
from unpooled.errors import RefusedError

pytest.importorskip("nvflare", reason="nvflare is not installed")

POLICY = """
[policy]
ad_hoc = "groupings"
groupings = { arm = [], age = [40, 65] }
refusals_a_day = 10
"""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    frames = {"Haifa": hospital(1, 120, 100), "Bern": hospital(2, 90, 80)}
    network = network_of_files(tmp_path_factory.mktemp("groupings"), frames, POLICY)
    try:
        network.start_all()
        yield network
    finally:
        network.end_all()


@pytest.fixture
def fed(network: Network) -> Iterator[Federation]:
    with Federation.connect(network.toml, timeout=PATIENT) as fed:
        yield fed


def entries(network: Network, name: str) -> list[Entry]:
    ledger = network.kit(name) / f"{name}.ledger"
    assert verify(ledger).ok
    return read(ledger)[1]


def kit_says(network: Network, name: str) -> str:
    return run("center", "check", network.kit(name))


def test_a_condition_that_singles_out_is_refused_recorded_and_counted(
    network: Network, fed: Federation
) -> None:
    for by in ("arm", None):
        assert fed.describe("los", by=by).refusals == ()
    assert fed.describe("los", where="age >= 65 and arm == 'a'").refusals == ()
    before = {name: len(entries(network, name)) for name in network.centers}
    wrong = (
        {"by": "died"},  # another column
        {"by": "age"},  # each year of age
        {"by": "age", "cuts": (40, 66)},  # another cut point
        {"where": "months > 12"},
        {"where": "age >= 66"},
        {"where": "age == 65"},
        {"where": "arm == 'a' and not age < 40"},
        {"where": "age < 40 or age >= 65"},
        {"where": "arm != 'a'"},
        {"where": "arm is missing"},
    )
    for words in wrong:
        with pytest.raises(RefusedError, match="declared groupings only") as caught:
            fed.describe("los", **words)
        refused = [(r.center, r.reason) for r in caught.value.refusals]
        assert refused == [(name, Reason.ONLY_GROUPINGS) for name in network.centers]
    for name in network.centers:
        recorded = entries(network, name)[before[name] :]
        assert [entry.kind for entry in recorded] == ["refusal"] * len(wrong)
        assert all("only-groupings" in entry.answer for entry in recorded)
        assert all(json.loads(entry.answer)["aggregate"] is None for entry in recorded)
    with pytest.raises(RefusedError, match="refused 10 questions today") as caught:
        fed.describe("los", by="arm")
    assert {r.reason for r in caught.value.refusals} == {Reason.BUDGET}


def test_the_budget_is_spent_also_after_a_restart(network: Network, fed: Federation) -> None:
    network.running["Bern"].end()
    network.start("Bern")
    with pytest.raises(RefusedError) as caught:
        fed.describe("los", by="arm")
    refused = {(r.center, r.reason) for r in caught.value.refusals}
    assert refused == {(name, Reason.BUDGET) for name in network.centers}


def test_check_says_by_what_people_are_chosen(network: Network) -> None:
    assert "ok     groupings: arm, age cut at 40, 65\n" in kit_says(network, "Haifa")
    toml = network.kit("Haifa") / "center.toml"
    declared = toml.read_text()
    changed = {
        'ad_hoc = "free"': "note   groupings: any condition chooses people",
        'ad_hoc = "none"': "ok     groupings: single questions are refused",
    }
    for setting, each in changed.items():
        toml.write_text(declared.replace('ad_hoc = "groupings"', setting))
        assert each in kit_says(network, "Haifa")
    toml.write_text(declared.replace("groupings = {", "# groupings = {"))
    assert "note   groupings: none is declared, so single questions are about everybody" in (
        kit_says(network, "Haifa")
    )
    toml.write_text(declared.replace("arm = []", "months = []"))
    assert (
        "note   groupings: months has 220 levels of 1 rows each, so conditions on it choose nearly"
        in (kit_says(network, "Haifa"))
    )
    toml.write_text(declared)


@pytest.mark.parametrize(
    ("groupings", "problem"),
    [
        ("agee = [65]", "WRONG  policy: there is no column 'agee'. Hint: did you mean 'age'?"),
        ("arm = [65]", "WRONG  policy: the column 'arm' has no numbers, so its grouping has no"),
        ("age = [65, 40]", "groupings: the cut points of age must ascend, got [65.0, 40.0]"),
    ],
)
def test_check_says_what_is_wrong_with_groupings(
    network: Network, tmp_path: Path, groupings: str, problem: str
) -> None:
    part = network.kit("Haifa") / "center.toml"
    config = part.with_name("other.toml")
    config.write_text(part.read_text().replace("arm = [], age = [40, 65]", groupings))
    answer = run("center", "check", network.kit("Haifa"), "--config", config, wanted=1)
    assert problem in answer
    assert "Traceback" not in answer
