"""A center whose steward wants to be asked: nothing leaves before he has seen it."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.network.conftest import FRAMES
from tests.network.networks import PATIENT, Network, eventually, run
from tests.workbench.chromium import Tab, chromium
from tests.workbench.newcomer import build, whole_way
from unpooled import Federation
from unpooled.center.questions import (
    CatalogueQuestion,
    Grouping,
    LatticeQuestion,
    Moments,
    MomentsQuestion,
    Protocol,
    ProtocolCheckQuestion,
    ProtocolQuestion,
    ProtocolVariable,
    Reason,
    Sizes,
    SizesQuestion,
    decode_answer,
    decode_question,
)
from unpooled.center.records.ledger import Entry, read, verify
from unpooled.errors import MissingError
from unpooled.federation.progress import Progress

pytest.importorskip("nvflare", reason="nvflare is not installed")


@pytest.fixture(scope="module")
def kit(trio: Network) -> Iterator[Path]:
    """Porto's kit; its steward wants to be asked."""
    toml = trio.kit("Porto") / "center.toml"
    auto = toml.read_text()
    toml.write_text(f'approval = "ask"\n{auto}')
    restart(trio)
    yield trio.kit("Porto")
    toml.write_text(auto)
    restart(trio)


def restart(trio: Network) -> None:
    trio.running["Porto"].end()
    trio.start("Porto")


@pytest.fixture
def progress_lines() -> list[Progress]:
    return []


@pytest.fixture
def careful(trio: Network, kit: Path, progress_lines: list[Progress]) -> Iterator[Federation]:
    """An analyst who goes on without nobody, and sees what is waited for."""
    with Federation.connect(trio.toml, timeout=PATIENT, progress=progress_lines.append) as fed:
        yield fed


@pytest.fixture
def analyst() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as analyst:
        yield analyst


def entries(kit: Path) -> list[Entry]:
    assert verify(kit / "Porto.ledger").ok
    return read(kit / "Porto.ledger")[1]


def wait_for_pending(kit: Path, words: str, asked: Future[Any]) -> str:
    """What `pending` shows, once it shows what is expected."""

    def look() -> str:
        if asked.done():
            pytest.fail(f"nobody waited: {asked.exception() or asked.result()}")
        answer = run("center", "pending", kit)
        assert words in answer
        return answer

    return eventually(look)


def test_the_steward_sees_the_exact_payload_before_it_leaves(
    trio: Network,
    kit: Path,
    careful: Federation,
    analyst: ThreadPoolExecutor,
    progress_lines: list[Progress],
) -> None:
    before = entries(kit)
    asked = analyst.submit(careful.describe, "los")
    answer = wait_for_pending(kit, "sizes of los", asked)
    assert "the analyst waits" in answer
    assert "by:           analyst" in answer  # the name in the certificate
    assert f"{answer.split()[0]} waits for the steward" in trio.running["Porto"].output.read_text()
    shown = [answer.split("exact bytes:  ")[1].strip()]
    assert entries(kit) == before
    assert "leaves now" in run("center", "approve", kit, answer.split()[0])
    answer = wait_for_pending(kit, "moments of los", asked)
    shown.append(answer.split("exact bytes:  ")[1].strip())
    assert len(entries(kit)) == len(before) + 1
    run("center", "approve", kit, answer.split()[0])
    result = asked.result(PATIENT)
    assert sum(group.n for group in result.groups) == 445
    left = [r.payload.decode() for r in careful.releases if r.center == "Porto"]
    assert left == shown == [entry.answer for entry in entries(kit)[len(before) :]]
    assert {entry.asker for entry in entries(kit)[len(before) :]} == {"analyst"}
    assert {p.waits for p in progress_lines} == {(), ("Porto",)}
    assert str(progress_lines[-1]) == "3 of 3 centers answered"
    assert run("center", "pending", kit) == "nothing waits for the steward\n"
    assert careful.describe("los").to_dict() == result.to_dict()  # approved: the same bytes again


def test_what_the_steward_refuses_is_named_and_recorded_once(
    kit: Path, careful: Federation, analyst: ThreadPoolExecutor
) -> None:
    before = len(entries(kit))
    asked = analyst.submit(careful.describe, "los", where="age > 40")
    wait_for_pending(kit, "age > 40", asked)
    assert "does not leave" in run("center", "refuse", kit)
    with pytest.raises(MissingError, match="Porto: the center's steward refused it") as caught:
        asked.result(PATIENT)
    assert [r.reason for r in caught.value.refusals] == [Reason.REFUSED_BY_STEWARD]
    (refusal,) = entries(kit)[before:]
    assert refusal.kind == "refusal"
    assert "sizes" not in refusal.answer
    assert "nothing waits" in run("center", "approve", kit, wanted=2)


def test_a_study_is_approved_once_and_its_book_arrives(
    kit: Path, careful: Federation, analyst: ThreadPoolExecutor
) -> None:
    study = Protocol(
        title="Length of stay",
        purpose="Whether arm a stays shorter",
        groups=(Grouping(name="arm"), Grouping(name="band", of="age", cuts=(50.0,))),
        variables={"los": ProtocolVariable(kind="number")},
    )
    before = len(entries(kit))
    asked = analyst.submit(careful.run, study)
    words = wait_for_pending(kit, "protocol Length of stay", asked)
    assert "purpose:      Whether arm a stays shorter" in words
    assert "grouped by:   band of age (under 50, 50 and over)" in words
    assert "lattice of los by arm x band:" in words
    assert len(entries(kit)) == before
    run("center", "approve", kit, words.split()[0])
    book = asked.result(PATIENT)
    after = entries(kit)[before:]
    kinds = [type(decode_question(entry.question.encode())) for entry in after]
    assert kinds == [SizesQuestion, MomentsQuestion, LatticeQuestion, ProtocolQuestion]
    assert {entry.asker for entry in after} == {"analyst"}
    assert not book.missing
    compared = book.compare("los", by="arm")
    assert [one.center for one in compared.centers] == ["Haifa", "Bern", "Porto"]
    assert run("center", "pending", kit) == "nothing waits for the steward\n"


@pytest.fixture
def desk(trio: Network, kit: Path) -> Iterator[str]:
    """The link that opens the steward's desk."""
    running = trio.spawn("desk", "center", "desk", kit, "--no-browser")
    running.wait_for("open: ")
    yield running.output.read_text().split("open: ")[1].split()[0]
    running.end()


@pytest.mark.browser
def test_a_steward_approves_in_the_browser_what_is_asked_on_the_command_line(
    trio: Network, kit: Path, desk: str
) -> None:
    before = len(entries(kit))
    asked = ["describe", "los", "--where", "age > 30", "--json", "--timeout", str(PATIENT)]
    analyst = trio.spawn("analyst", *asked, "--federation", trio.toml)
    with chromium() as browser:
        page = browser.new_page()
        page.goto(desk)
        for words in ("How many people have a value of los", "and what are its mean"):
            page.get_by_role("heading", name=re.compile(words)).wait_for(timeout=PATIENT * 1000)
            assert "Asked by analyst" in page.locator("article").inner_text()
            page.locator("article h2 a").click()
            assert "The analyst is waiting." in page.locator("main").inner_text()
            page.get_by_role("button", name="Approve: let these bytes leave").click()
            assert "Approved." in page.locator("#state").inner_text()
            page.goto(desk.split("/enter")[0])
        assert analyst.process.wait(PATIENT) == 0
        page.get_by_role("link", name="Ledger").click()
        assert "Nothing was changed" in page.locator("#verdict").inner_text()
    answer = json.loads(analyst.output.read_text().splitlines()[-1])
    older = sum(int((FRAMES[name]["age"] > 30).sum()) for name in trio.centers)
    assert sum(group["n"] for group in answer["groups"]) == older
    left = [decode_answer(entry.answer.encode()).aggregate for entry in entries(kit)[before:]]
    assert [type(aggregate) for aggregate in left] == [Sizes, Moments]


@pytest.fixture
def workbench(trio: Network) -> Iterator[str]:
    """The link that opens an analyst's workbench."""
    waits = ["--timeout", str(PATIENT), "--no-browser"]
    running = trio.spawn("workbench", "workbench", "--federation", trio.toml, *waits)
    running.wait_for("open: ")
    yield running.output.read_text().split("open: ")[1].split()[0]
    running.end()


@pytest.mark.browser
def test_a_newcomers_whole_way_over_the_network_with_a_steward_in_a_second_browser(
    trio: Network, kit: Path, desk: str, workbench: str, tmp_path: Path
) -> None:
    """From the catalogue to Word; the dry run and the study are approved at the desk, once each."""
    before, soon, title = len(entries(kit)), PATIENT * 1000, "Stays <in> three hospitals"
    with chromium() as browser:
        analyst, steward = Tab(browser, accept_downloads=True), Tab(browser)
        page = analyst.page
        page.goto(workbench, timeout=soon)
        page.get_by_text("waits for its steward").wait_for(timeout=soon)  # the catalogue, too
        steward.page.goto(desk)
        approve(steward.page, "Which variables are there", soon)
        page.locator("#told:not([data-poll])").wait_for(timeout=soon)
        decided: list[str] = []
        asked = iter(["Which parts of the study", title])
        whole_way(
            page,
            tmp_path,
            trio.centers,
            title,
            [("arm", "a, b")],
            ["los"],
            soon,
            lambda: decided.append(approve(steward.page, next(asked), soon)),
        )
        assert "This is a look ahead" in decided[0]
        assert "How many people are there, for each combination of arm?" in decided[1]
        assert analyst.sound
        assert steward.sound
    after = entries(kit)[before:]
    kinds = [type(decode_question(entry.question.encode())) for entry in after]
    parts = [SizesQuestion, MomentsQuestion, LatticeQuestion]
    assert kinds == [CatalogueQuestion, ProtocolCheckQuestion, *parts, ProtocolQuestion]
    assert {entry.asker for entry in after} == {"analyst"}


@pytest.mark.browser
def test_a_study_is_stopped_and_gone_on_with_while_a_center_is_down_and_another_waits(
    trio: Network, kit: Path, desk: str, workbench: str
) -> None:
    soon = PATIENT * 1000
    with chromium() as browser:
        analyst, steward = Tab(browser), Tab(browser)
        page = analyst.page
        page.goto(workbench, timeout=soon)
        page.locator("#variables").wait_for(timeout=soon)
        build(page, "Ages", [("arm", "a, b")], ["age"])
        trio.running["Bern"].end()
        page.click("text=Ask the centers once")
        state = page.locator("#run tbody tr")
        for center, words in STATES_NOW.items():
            state.filter(has_text=center).get_by_text(words).wait_for(timeout=soon)
        assert "since" in state.filter(has_text="Porto").inner_text()
        page.click("text=Stop asking")
        page.wait_for_selector("#run:not([data-poll])", timeout=soon)
        assert "What the others said is kept" in page.inner_text("#run")
        page.click("text=Look at what came back")
        assert "In the book: Haifa" in page.inner_text("main")
        trio.start("Bern")
        steward.page.goto(desk)
        approve(steward.page, "Ages", soon)  # while nobody waits for it
        page.click("nav >> text=Study")
        for _ in range(5):  # a center that came back may need a moment until it is reached
            page.click("text=Ask the missing centers")
            page.wait_for_selector("#run:not([data-poll])", timeout=soon)
            if page.locator(".state.answered, .state.partly").count() == len(trio.centers):
                break
        assert page.locator(".state.answered, .state.partly").count() == len(trio.centers)
        page.click("text=Look at what came back")
        assert "In the book: Haifa, Bern, Porto" in page.inner_text("main")
        assert analyst.sound
    asked = [entry for entry in entries(kit) if '"Ages"' in entry.question]
    assert len(asked) == 1  # however often it was asked


STATES_NOW = {
    "Haifa": "answered",
    "Bern": "did not answer",
    "Porto": "waits for its steward",
}


def approve(page: Any, words: str, soon: int) -> str:
    """What the desk shows of the answer that waits, which is then approved."""
    page.goto(page.url.split("/held")[0])
    page.get_by_role("heading", name=re.compile(re.escape(words))).wait_for(timeout=soon)
    page.locator("article h2 a").click()
    text = str(page.locator("main").inner_text())
    page.get_by_role("button", name="Approve: let these bytes leave").click()
    assert "Approved." in page.locator("#state").inner_text()
    page.goto(page.url.split("/held")[0])
    return text


def test_what_waits_outlasts_the_analysts_patience_and_a_restart(
    trio: Network, kit: Path, careful: Federation
) -> None:
    before = len(entries(kit))
    link: Any = careful._coordinator.link

    def ask_and_wait() -> None:
        with pytest.raises(MissingError, match="did not decide within 8 seconds") as caught:
            careful.describe("los", where="arm == 'b'")
        assert [r.reason for r in caught.value.refusals] == [Reason.WAITING_FOR_STEWARD]

    link.timeout = 8
    eventually(ask_and_wait)
    restart(trio)
    answer = run("center", "pending", kit)
    assert "arm == 'b'" in answer
    eventually(lambda: nobody_waits(kit))
    assert len(entries(kit)) == before
    assert "is asked again" in run("center", "approve", kit, answer.split()[0])
    assert len(entries(kit)) == before  # approval alone lets nothing out

    eventually(ask_and_wait)
    after = entries(kit)[before:]  # the first question is through, the second waits
    assert {(entry.kind, "sizes" in entry.answer) for entry in after} == {("release", True)}
    run("center", "refuse", kit)

    def recorded() -> None:
        assert [entry.kind for entry in entries(kit)[before + len(after) :]] == ["refusal"]

    eventually(recorded)  # though nobody waits for it

    def refused_at_once() -> None:
        with pytest.raises(MissingError) as caught:
            careful.describe("los", where="arm == 'b'")
        assert [r.reason for r in caught.value.refusals] == [Reason.REFUSED_BY_STEWARD]

    eventually(refused_at_once, 30)
    assert "nothing waits" in run("center", "pending", kit)
    answer = run("center", "decided", kit)
    refused = [line.split()[0] for line in answer.splitlines() if line.endswith("  refused")][-1]
    assert "is held again" in run("center", "withdraw", kit, refused)
    assert f"{refused}  refused" not in run("center", "decided", kit)
    eventually(ask_and_wait)
    assert refused in run("center", "pending", kit)


def nobody_waits(kit: Path) -> None:
    assert "nobody waits for it now" in run("center", "pending", kit)
