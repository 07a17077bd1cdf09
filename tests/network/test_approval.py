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
from unpooled import Federation
from unpooled.center.questions import (
    CatalogueQuestion,
    Grouping,
    LatticeQuestion,
    Moments,
    MomentsQuestion,
    Protocol,
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
def test_a_study_of_the_workbench_is_approved_once_at_the_desk_in_a_second_browser(
    kit: Path, desk: str, workbench: str
) -> None:
    before, soon = len(entries(kit)), PATIENT * 1000
    with chromium() as browser:
        analyst, steward = Tab(browser), Tab(browser)
        page = analyst.page
        page.goto(workbench, timeout=soon)
        page.get_by_text("waits for its steward").wait_for(timeout=soon)  # the catalogue, too
        steward.page.goto(desk)
        approve(steward.page, "Which variables are there", soon)
        page.goto(f"{workbench.split('/enter')[0]}/protocol", timeout=soon)
        page.fill("#title", "Stays <in> three hospitals", timeout=soon)
        page.fill("#purpose", "Whether arm a stays shorter")
        page.select_option("#group-1", "arm")
        page.wait_for_selector("#group-2")
        page.fill("#levels-1", "a, b")
        page.check("label:has-text('los')")
        page.wait_for_selector("#look .words")
        page.click("text=Ask the centers once")
        shown = approve(steward.page, "Stays <in> three hospitals", soon)
        assert "Whether arm a stays shorter" in shown
        assert "How many people are there, for each combination of arm?" in shown
        page.wait_for_selector("#run:not([data-poll])", timeout=soon)
        assert page.locator(".state.answered").count() == 3
        assert analyst.sound
        assert steward.sound
    after = entries(kit)[before:]
    kinds = [type(decode_question(entry.question.encode())) for entry in after]
    parts = [SizesQuestion, MomentsQuestion, LatticeQuestion]
    assert kinds[0] is CatalogueQuestion  # asked again until the steward has decided
    others = [kind for kind in kinds if kind is not CatalogueQuestion]
    assert others == [*parts, ProtocolQuestion]
    assert {entry.asker for entry in after} == {"analyst"}


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
            careful.describe("los", where="age > 50")
        assert [r.reason for r in caught.value.refusals] == [Reason.WAITING_FOR_STEWARD]

    link.timeout = 8
    eventually(ask_and_wait)
    restart(trio)
    answer = run("center", "pending", kit)
    assert "age > 50" in answer
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
            careful.describe("los", where="age > 50")
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
