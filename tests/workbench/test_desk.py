"""The steward's desk in a real browser: what waits, what would leave, and the decision."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.workbench.browser import Browser
from tests.workbench.chromium import Tab, barriers, chromium
from tests.workbench.held import (
    QUESTIONS,
    decide_now,
    hold,
    open_haifa,
    people,
    put,
    write_center,
)
from unpooled.apps.workbench.desk import desk_server
from unpooled.apps.workbench.foundation import sessions
from unpooled.apps.workbench.foundation.server import Address, Server
from unpooled.apps.workbench.in_words.words import read_texts
from unpooled.center import Center
from unpooled.center.approval.reviewers import make_reviewer, with_reviewer
from unpooled.center.approval.steward import HeldPayload, decide, decided, pending, read_reviews
from unpooled.center.questions import (
    Answer,
    CatalogueQuestion,
    JointQuestion,
    JointShares,
    LatticeQuestion,
    MomentsQuestion,
    Pair,
    Protocol,
    ProtocolAnswer,
    ProtocolCheckQuestion,
    ProtocolOutcome,
    ProtocolPart,
    ProtocolQuestion,
    ProtocolVariable,
    Reason,
    Refusal,
    Size,
    Sizes,
    SizesQuestion,
    block_label,
    block_levels,
    decode_answer,
    encode,
    expand,
)
from unpooled.center.questions.joint import JointPlan, Keeper
from unpooled.center.questions.message import Grouping

SIZES = SizesQuestion(variable="crp", by="arm")
WORKBENCH = Path(__file__).parents[2] / "src/unpooled/apps/workbench"
TEMPLATES = WORKBENCH / "desk/templates"


class Haifa:
    """A center that runs, the desk beside it, and its steward's browser."""

    def __init__(self, folder: Path, chrome: Any) -> None:
        self.folder = folder
        self.center: Center = open_haifa(folder)
        self.server: Server = desk_server(folder, None, Address())
        self.chrome = chrome
        self.contexts: list[Any] = []

    @property
    def waiting(self) -> Path:
        return self.folder / "Haifa.pending"

    def held(self, *questions: Any) -> list[HeldPayload]:
        hold(self.center, *questions)
        texts = [encode(question).decode() for question in questions]
        return sorted(pending(self.waiting), key=lambda h: texts.index(h.question))

    def enter(self, **options: Any) -> Any:
        """A page of a browser of its own, at the inbox."""
        context = self.chrome.new_context(**options)
        self.contexts.append(context)
        page = context.new_page()
        page.goto(self.server.link("steward"))
        return page

    def tab(self, page: Any) -> Any:
        """Another tab of the same browser."""
        return page.context.new_page()

    def look(self, page: Any, held: HeldPayload) -> Any:
        page.goto(f"{self.server.url}/held/{held.name}")
        return page

    def close(self) -> None:
        for context in self.contexts:
            context.close()
        self.server.stop()
        self.center.close()


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def haifa(tmp_path: Path, chrome: Any) -> Iterator[Haifa]:
    opened = Haifa(write_center(tmp_path / "Haifa"), chrome)
    opened.server.start()
    yield opened
    opened.close()


# --- reading and deciding -------------------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.parametrize("script", [True, False])
def test_a_steward_reads_and_approves_with_and_without_script(haifa: Haifa, script: bool) -> None:
    (held,) = haifa.held(SIZES)
    page = haifa.enter(java_script_enabled=script)
    assert page.locator("h1").inner_text() == "1 answer waits for you"
    page.get_by_role("link", name=re.compile("Look at it")).click()
    text = page.locator("main").inner_text()
    assert "How many people have a value of crp, for each level of arm?" in text
    assert "Asked by\nmaria" in text.replace("\n\n", "\n")
    assert "No purpose is stated" in text
    assert "The smallest number of people behind a number here is 70: control" in text
    assert "Nothing about crp has left this center before" in text
    page.locator("summary", has_text="The exact bytes").click()
    assert page.locator("#bytes").inner_text() == held.answer
    page.get_by_role("button", name="Approve: let these bytes leave").click()
    assert "Approved. It leaves now" in page.locator("#state").inner_text()
    assert haifa.center.answer(encode(SIZES)).payload == held.answer.encode()
    page.reload()
    assert "It left as entry 1" in page.locator("#state").inner_text()
    page.locator("#state a").click()
    assert "70" in page.locator("table").inner_text()


@pytest.mark.browser
def test_a_refusal_has_a_reason_that_stays_and_can_be_withdrawn(haifa: Haifa) -> None:
    (held,) = haifa.held(SIZES)
    page = haifa.look(haifa.enter(), held)
    page.get_by_label("Reason, for your own record").fill("too many <wards>")
    page.get_by_role("button", name="Refuse").click()
    state = page.locator("#state").inner_text()
    assert "It does not leave" in state
    assert "Reason: too many <wards>" in state
    answer = haifa.center.answer(encode(SIZES)).payload
    assert [r.reason for r in decode_answer(answer).refusals] == [Reason.REFUSED_BY_STEWARD]
    assert b"wards" not in answer
    page.get_by_role("link", name="Decided").click()
    page.get_by_role("button", name=re.compile("Withdraw")).click()
    assert "No decision is in force" in page.locator("main").inner_text()
    assert [note.act for note in read_reviews(haifa.waiting)] == ["refused", "withdrawn"]
    rows = page.locator("table tbody tr")
    assert rows.count() == 2
    assert "too many <wards>" in rows.nth(1).inner_text()


@pytest.mark.browser
def test_the_inbox_looks_by_itself(haifa: Haifa) -> None:
    page = haifa.enter()
    assert page.locator("h1").inner_text() == "Nothing waits for you."
    hold(haifa.center, SIZES)
    page.get_by_role("heading", name="1 answer waits for you").wait_for(timeout=15_000)
    assert page.locator("#live").inner_text() == "1 answer waits for you"  # for screen readers


@pytest.mark.browser
def test_all_can_be_done_with_the_keyboard_alone(haifa: Haifa) -> None:
    (held,) = haifa.held(SIZES)
    page = haifa.enter()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for words in ("How many people", "Approve: let"):
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent").startswith(words):
                break
        with page.expect_navigation():
            page.keyboard.press("Enter")
    assert [h.name for h, _ in decided(haifa.waiting)] == [held.name]


# --- what would leave -----------------------------------------------------------------------------


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: encode(q).decode()[8:20])
def test_every_number_that_would_leave_is_on_the_page(haifa: Haifa, question: Any) -> None:
    """A page that leaves a number out would let the steward approve what they have not seen."""
    (held,) = haifa.held(question)
    steward = Browser(haifa.server.url)
    steward.enter(haifa.server.link("steward"))
    page = steward.get(f"/held/{held.name}").text.split('id="leaving"')[1].split("<details>")[0]
    shown = set(
        re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", re.sub(r"<svg.*?</svg>", "", page))
    )
    answer = msgspec.json.decode(held.answer)
    for number in numbers(answer["aggregate"]):
        text = f"{number:,}" if isinstance(number, int) else f"{number:.10g}"
        assert text in shown, f"{number} of {held.answer}"
    for refusal in decode_answer(held.answer.encode()).refusals:
        assert refusal.rule in page


def numbers(answer: Any) -> Iterator[int | float]:
    """Every number in a message but how many bins a pool spans."""
    match answer:
        case bool():
            return
        case int() | float():
            yield answer
        case dict():
            for value in answer.values():
                yield from numbers(value)
        case list():
            for value in answer:
                yield from numbers(value)


def test_the_kinds_of_columns_are_words(haifa: Haifa) -> None:
    (held,) = haifa.held(CatalogueQuestion())
    steward = Browser(haifa.server.url)
    steward.enter(haifa.server.link("steward"))
    page = steward.get(f"/held/{held.name}").text.split('id="leaving"')[1].split("<details>")[0]
    kinds = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    assert sorted(kind.strip() for kind in kinds) == [*["number"] * 3, "text", "text"]


@pytest.mark.browser
def test_the_smallest_number_is_marked_and_k_is_drawn(haifa: Haifa) -> None:
    (held,) = haifa.held(LatticeQuestion(variable="crp", by="arm"))
    aggregate: Any = decode_answer(held.answer.encode()).aggregate
    tables = aggregate.groups
    smallest = min(count for group in tables for count in group.table.counts)
    page = haifa.look(haifa.enter(), held)
    marked = page.locator("strong.least")
    assert {marked.nth(i).inner_text() for i in range(marked.count())} == {str(smallest)}
    assert f"is {smallest}:" in page.locator("#leaving").inner_text()
    longest = max(tables[0].table.counts)
    table = page.locator("#leaving table").first
    bars = table.locator("svg.bar")
    assert bars.count() == len(tables[0].table.counts)
    for i, count in enumerate(tables[0].table.counts):
        whole = bars.nth(i).bounding_box()["width"]
        drawn = bars.nth(i).locator("rect").bounding_box()
        assert drawn["width"] / whole == pytest.approx(count / longest, abs=0.01)
        line = bars.nth(i).locator("path").bounding_box()
        at_k = (line["x"] + line["width"] / 2 - drawn["x"]) / whole
        assert at_k == pytest.approx(10 / longest, abs=0.01)


@pytest.mark.browser
def test_what_left_before_is_told_apart_from_what_is_new(haifa: Haifa) -> None:
    decide_now(haifa.center, haifa.folder, "approved", SIZES)
    (held,) = haifa.held(MomentsQuestion(variable="crp", by="arm"))
    page = haifa.look(haifa.enter(), held)
    before = page.locator("#before").inner_text()
    assert "4 numbers are new" in before  # two means, two SDs
    assert "2 left before, as they are here" in before
    grey = page.locator("#leaving .grey")
    assert [grey.nth(i).inner_text() for i in range(2)] == ["70\nleft before"] * 2
    page.locator("summary", has_text="Earlier answers about crp").click()
    page.locator("#before a").click()
    assert page.locator("h1").inner_text() == "Entry 1"


@pytest.mark.browser
def test_the_steward_reads_what_an_answer_shuts_out(haifa: Haifa) -> None:
    answer = Answer(
        k=10, aggregate=Sizes(sizes=(Size(group="all", n=25),)), shuts_out=("all", "arm")
    )
    held = put(haifa.folder, SizesQuestion(variable="crp", where="crp < 9"), answer)
    page = haifa.look(haifa.enter(), held)
    warning = page.locator("#leaving .note").inner_text()
    assert "can answer nothing more by everybody as a whole, arm" in warning


# --- a protocol -----------------------------------------------------------------------------------

PROTOCOL = Protocol(
    title="CRP in sepsis",
    purpose="Whether CRP tells patients from controls",
    groups=(Grouping(name="arm"), Grouping(name="month", of="months", cuts=(12.0,))),
    variables={
        "crp": ProtocolVariable(kind="number", label="C-reactive protein", unit="mg/L"),
        "sex": ProtocolVariable(kind="category", levels=("F", "M")),
    },
    survival=(ProtocolOutcome(time="months", event="died", horizon=60.0),),
    pairs=(Pair(variables=("months", "crp")),),
)


@pytest.mark.browser
def test_a_protocol_is_shown_in_words_with_all_its_parts_and_approved_once(haifa: Haifa) -> None:
    (held,) = haifa.held(ProtocolQuestion(protocol=PROTOCOL))
    answer: Any = decode_answer(held.answer.encode()).aggregate
    page = haifa.enter()
    assert "Whether CRP tells patients from controls" in page.locator("article").inner_text()
    page = haifa.look(page, held)
    text = page.locator("main").inner_text()
    for words in (
        "All that the study “CRP in sepsis” asks, at once.",
        "Whether CRP tells patients from controls",
        "under 12, 12 and over",
        "C-reactive protein (mg/L)",
        "months until died, up to 60",
        "months and crp",
        "How many people are there, for each combination of arm and month?",
        "How many people have a value of crp, for each combination of arm and month, and what",
    ):
        assert words in text, words
    parts = page.locator("#leaving details")
    assert parts.count() == len(answer.parts) == 5
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    sizes = parts.nth(0).locator("tbody tr")
    shown = [sizes.nth(i).inner_text().split() for i in range(sizes.count())]
    blocks = [(block_levels(size.group), size.n) for size in answer.parts[0].answer.aggregate.sizes]
    assert shown == [[*" ".join(" or ".join(x) for x in b).split(), str(n)] for b, n in blocks]
    counts = re.findall(r'"(?:n|count)":(\d+)', held.answer)
    counts += [
        n for some in re.findall(r'"counts":\[([\d,]*)\]', held.answer) for n in some.split(",")
    ]
    smallest = min(int(n) for n in counts if n != "0")
    assert f"is {smallest}: " in page.locator("#leaving").inner_text()
    page.get_by_role("button", name="Approve: let these bytes leave").click()
    assert haifa.center.answer(encode(ProtocolQuestion(protocol=PROTOCOL))).payload.decode() == (
        held.answer
    )
    page.reload()
    assert "It left as entry 6" in page.locator("#state").inner_text()  # five parts, and the whole
    page.locator("#state a").click()
    assert page.locator("details table").count() >= 5


@pytest.mark.browser
def test_a_part_that_is_refused_and_what_a_protocol_shuts_out_are_said(haifa: Haifa) -> None:
    questions: Any = expand(PROTOCOL)
    few = Answer(k=10, aggregate=None, refusals=(Refusal(reason=Reason.TOO_SMALL, limit=20),))
    blocks = [[["patient"], ["under 12", "12 and over"]], [["control"], ["under 12"]]]
    counted = Sizes(
        sizes=tuple(Size(group=block_label(b), n=n) for b, n in zip(blocks, (40, 23), strict=True))
    )
    first = Answer(k=10, aggregate=counted, shuts_out=("sex",))
    answers = [first, *[few] * (len(questions) - 1)]
    parts = tuple(
        ProtocolPart(question=question, answer=answer)
        for question, answer in zip(questions, answers, strict=True)
    )
    whole = Answer(k=10, aggregate=ProtocolAnswer(k=10, parts=parts), shuts_out=("all",))
    held = put(haifa.folder, ProtocolQuestion(protocol=PROTOCOL), whole)
    text = haifa.look(haifa.enter(), held).locator("main").inner_text()
    for words in (
        "under 12 or 12 and over",
        "number here is 23: control · under 12",
        "can answer nothing more by everybody as a whole, sex",
        "fewer than 20 people",
    ):
        assert words in text, words


def test_a_protocol_without_groupings_is_about_everybody(haifa: Haifa) -> None:
    plan = Protocol(title="CRP", variables={"crp": ProtocolVariable(kind="number")})
    (held,) = haifa.held(ProtocolQuestion(protocol=plan))
    steward = Browser(haifa.server.url)
    steward.enter(haifa.server.link("steward"))
    page = steward.get(f"/held/{held.name}").text
    assert "<bdi>everybody as a whole</bdi>" in page
    assert "<bdi>[]" not in page


def test_a_look_ahead_at_a_protocol_names_groups_and_says_no_number(haifa: Haifa) -> None:
    (held,) = haifa.held(ProtocolCheckQuestion(protocol=PROTOCOL))
    steward = Browser(haifa.server.url)
    steward.enter(haifa.server.link("steward"))
    page = steward.get(f"/held/{held.name}").text
    leaves = re.sub(r"<[^>]*>", "", page.split('id="leaving"')[1].split("Compared with")[0])
    answer: Any = decode_answer(held.answer.encode()).aggregate
    assert "No number about people" in leaves
    assert "under 12" in leaves
    assert leaves.count("How many people are there, for each") == 1
    assert len(answer.parts) == 5
    assert "Which parts of the study “CRP in sepsis” could this center answer?" in page
    assert "This is a look ahead" in page


def test_a_share_in_a_joint_center_says_who_counts_together_and_who_keeps(haifa: Haifa) -> None:
    plan = JointPlan(k=10, groupings=(), parts=())
    keepers = tuple(Keeper(name=who, public="ab" * 32) for who in ("Bern", "Porto", "Gent"))
    members = ("Haifa", "Bern", "Lund")
    question = JointQuestion(protocol=PROTOCOL, plan=plan, members=members, keepers=keepers)
    answer = Answer(k=10, aggregate=JointShares(sealed=(b"1" * 600, b"2" * 600, b"3" * 1600)))
    held = put(haifa.folder, question, answer)
    steward = Browser(haifa.server.url)
    steward.enter(haifa.server.link("steward"))
    page = re.sub(r"<[^>]*>", "", steward.get(f"/held/{held.name}").text)
    for words in (
        "The share of this center in a joint center, for the study “CRP in sepsis”",
        "together with those of Haifa, Bern, Lund",
        "one for each of Bern, Porto, Gent",
        "No number about people",
        "1,600",
        "Whether CRP tells patients from controls",
    ):
        assert words in page, words


def test_a_large_protocol_is_read_part_by_part(haifa: Haifa) -> None:
    """Sixty variables in eight blocks: one page with all of it would have 2 MB."""
    groups = (Grouping(name="arm"), Grouping(name="sex"), Grouping(name="side"))
    variables = {f"v{i}": ProtocolVariable(kind="number") for i in range(60)}
    protocol = Protocol(title="large", groups=groups, variables=variables)
    blocks = [block_label([[a], [b], [c]]) for a in "cp" for b in "FM" for c in "lr"]
    questions: Any = expand(protocol)
    parts = []
    for number, question in enumerate(questions):
        answers = tuple(Size(group=block, n=100 + number) for block in blocks)
        parts.append(
            ProtocolPart(question=question, answer=Answer(k=10, aggregate=Sizes(sizes=answers)))
        )
    answer = Answer(k=10, aggregate=ProtocolAnswer(k=10, parts=tuple(parts)))
    held = put(haifa.folder, ProtocolQuestion(protocol=protocol), answer)
    steward = Browser(haifa.server.url)
    steward.enter(haifa.server.link("steward"))
    page = steward.get(f"/held/{held.name}")
    assert len(page.body) < 500_000
    assert page.text.count(f"/held/{held.name}/part/") == len(questions) == 121
    assert '<strong class="least">100</strong>' in page.text
    last = steward.get(f"/held/{held.name}/part/121").text
    assert last.count("220") == len(blocks)
    assert "Part 121 of 121" in last
    assert "Approve" not in last  # the decision is on the page of the whole
    assert steward.get(f"/held/{held.name}/part/122").status == 404
    assert steward.get(f"/held/{held.name}/bytes").text == held.answer


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_barrier(haifa: Haifa, scheme: str) -> None:
    decide_now(haifa.center, haifa.folder, "approved", SIZES)
    study, lattice = haifa.held(
        ProtocolQuestion(protocol=PROTOCOL), LatticeQuestion(variable="crp", by="arm")
    )
    page = haifa.enter(color_scheme=scheme)
    waiting = [f"/held/{held.name}" for held in (lattice, study)]
    for path in ("/", *waiting, "/decided", "/ledger", "/ledger/1", "/check", "/policy"):
        page.goto(f"{haifa.server.url}{path}")
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert barriers(page) == [], path
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert "button-name" in barriers(page)[0]


@pytest.mark.browser
def test_every_page_fits_screens_and_phones_and_asks_for_nothing_outside(haifa: Haifa) -> None:
    decide_now(haifa.center, haifa.folder, "approved", SIZES)
    lattice, study = haifa.held(
        LatticeQuestion(variable="crp", by="arm"), ProtocolQuestion(protocol=PROTOCOL)
    )
    tab = Tab(haifa.chrome, viewport={"width": 390, "height": 800})
    haifa.contexts.append(tab.context)
    tab.page.goto(haifa.server.link("steward"))
    waiting = [f"/held/{held.name}" for held in (lattice, study)]
    for path in ("/", *waiting, "/decided", "/ledger", "/ledger/1", "/check", "/policy"):
        tab.page.goto(f"{haifa.server.url}{path}")
        tab.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        for width in (1000, 700, 390):
            tab.page.set_viewport_size({"width": width, "height": 800})
            assert tab.page.evaluate("document.documentElement.scrollWidth") == width, path
    assert tab.sound


# --- two tabs, old pages, wrong keys --------------------------------------------------------------


@pytest.mark.browser
def test_of_two_tabs_that_approve_at_once_one_does_it_and_the_other_is_told(haifa: Haifa) -> None:
    (held,) = haifa.held(SIZES)
    one = haifa.look(haifa.enter(), held)
    other = haifa.look(haifa.tab(one), held)
    for page in (one, other):
        page.get_by_role("button", name="Approve: let these bytes leave").click()
    assert other.get_by_role("alert").count() == 1
    assert "was approved already. Nothing was changed" in other.get_by_role("alert").inner_text()
    assert [note.act for note in read_reviews(haifa.waiting)] == ["approved"]
    third = haifa.look(haifa.tab(one), held)
    assert third.locator("form#approve").count() == 0


@pytest.mark.browser
def test_the_back_button_and_a_refresh_decide_nothing_twice(haifa: Haifa) -> None:
    (held,) = haifa.held(SIZES)
    page = haifa.look(haifa.enter(), held)
    page.get_by_role("button", name="Refuse").click()
    page.reload()
    page.go_back()
    approve = page.get_by_role("button", name="Approve: let these bytes leave")
    if approve.count():  # a browser that shows the old page as it was
        approve.click()
        assert "was refused already" in page.get_by_role("alert").inner_text()
    assert [note.act for note in read_reviews(haifa.waiting)] == ["refused"]
    assert [decision for _, decision in decided(haifa.waiting)] == ["refused"]


@pytest.mark.browser
def test_an_answer_that_took_the_place_of_the_one_on_the_page_is_not_approved(haifa: Haifa) -> None:
    (held,) = haifa.held(SIZES)
    page = haifa.look(haifa.enter(), held)
    other = Answer(k=10, aggregate=Sizes(sizes=(Size(group="control", n=71),)))
    put(haifa.folder, SIZES, other)
    page.get_by_role("button", name="Approve: let these bytes leave").click()
    assert "another one by now" in page.get_by_role("alert").inner_text()
    assert decided(haifa.waiting) == []
    page.get_by_role("link", name="Look at the answer that took its place").click()
    assert "71" in page.locator("#leaving").inner_text()


@pytest.mark.browser
def test_a_wrong_or_used_link_and_an_old_session_are_let_in_nowhere(
    haifa: Haifa, monkeypatch: pytest.MonkeyPatch
) -> None:
    (held,) = haifa.held(SIZES)
    page = haifa.look(haifa.enter(), held)
    stranger = haifa.chrome.new_context()
    haifa.contexts.append(stranger)
    thief = stranger.new_page()
    assert thief.goto(f"{haifa.server.url}/enter?token=guessed").status == 403
    assert thief.goto(f"{haifa.server.url}/held/{held.name}").status == 401
    assert "crp" not in thief.content()
    monkeypatch.setattr(sessions, "IDLE_SECONDS", -1.0)
    page.get_by_role("button", name="Approve: let these bytes leave").click()
    assert page.locator("h1").inner_text() == "Your session has ended"
    assert decided(haifa.waiting) == []


@pytest.mark.browser
def test_a_name_with_quotes_markup_and_another_direction_is_only_a_name(
    tmp_path: Path, chrome: Any
) -> None:
    strange = (
        '<script>document.title="owned"</script>',
        "\"'><img src=x onerror=alert(1)>\u202ecba",
    )
    folder = write_center(tmp_path / "Haifa", people(arms=strange))
    haifa = Haifa(folder, chrome)
    haifa.server.start()
    try:
        evil = SizesQuestion(variable="crp", by="arm", where="arm != '<b onclick=alert(1)>\"'")
        protocol = Protocol(
            title="<script>alert(2)</script>",
            purpose="מחקר \u202e",
            variables={"crp": ProtocolVariable(label=strange[0])},
        )
        hold(haifa.center, SIZES, MomentsQuestion(variable="crp", by="arm"), evil, asker=strange[1])
        answer = ProtocolAnswer(k=10, parts=())
        put(folder, ProtocolQuestion(protocol=protocol), Answer(k=10, aggregate=answer))
        page = haifa.enter()
        alarms: list[Any] = []
        page.on("dialog", lambda dialog: alarms.append(dialog.message))
        page.on("pageerror", lambda error: alarms.append(str(error)))
        for held in pending(haifa.waiting):
            haifa.look(page, held)
            assert page.locator("main script, main img, main b").count() == 0
            assert "owned" not in page.title()
            if held.question == encode(SIZES).decode():
                assert strange[0] in page.locator("#leaving").inner_text()
                decide(haifa.waiting, held, "refused", reason=strange[1])
        for path in ("/", "/decided", "/ledger", "/policy"):
            page.goto(f"{haifa.server.url}{path}")
            assert page.locator("main script, main img, main b").count() == 0
        assert alarms == []
    finally:
        haifa.close()


# --- a second review ------------------------------------------------------------------------------

PASSPHRASES = {"Anna": "correct horse battery", "Ben": "another staple here"}


@pytest.fixture
def reviewed(tmp_path: Path, chrome: Any) -> Iterator[Haifa]:
    """A center that two of its reviewers must approve for."""
    folder = write_center(tmp_path / "Haifa")
    text = (folder / "center.toml").read_text().replace('"ask"\n', '"ask"\nreviewers = 2\n')
    for who, passphrase in PASSPHRASES.items():
        text = with_reviewer(text, make_reviewer(folder / "Haifa.reviewers", who, passphrase))
    (folder / "center.toml").write_text(text)
    opened = Haifa(folder, chrome)
    opened.server.start()
    yield opened
    opened.close()


def approve_as(page: Any, who: str, passphrase: str) -> None:
    page.locator("#approve-reviewer").select_option(who)
    page.locator("#approve-passphrase").fill(passphrase)
    page.get_by_role("button", name="Approve: let these bytes leave").click()


@pytest.mark.browser
def test_two_reviewers_must_approve_and_nobody_twice(reviewed: Haifa) -> None:
    hold(reviewed.center, SIZES)
    page = reviewed.enter()
    page.locator("h2 a").click()
    second = reviewed.tab(page)
    second.goto(page.url)
    assert "2 reviewers must approve this" in page.locator("main").inner_text()
    approve_as(page, "Anna", PASSPHRASES["Ben"])
    assert "Name or passphrase is wrong" in page.get_by_role("alert").inner_text()
    approve_as(page, "Anna", PASSPHRASES["Anna"])
    assert "Approved so far by Anna" in page.locator("main").inner_text()
    assert page.locator("#approve-reviewer option").all_inner_texts() == ["Ben"]
    approve_as(second, "Anna", PASSPHRASES["Anna"])  # a page from before still offers it
    assert "nobody reviews twice" in second.get_by_role("alert").inner_text()
    hold(reviewed.center, SIZES)  # not yet
    approve_as(second, "Ben", PASSPHRASES["Ben"])
    assert "Approved" in second.locator("#state").inner_text()
    assert b"70" in reviewed.center.answer(encode(SIZES)).payload


@pytest.mark.browser
def test_a_reviewer_takes_their_approval_back(reviewed: Haifa) -> None:
    hold(reviewed.center, SIZES)
    page = reviewed.enter()
    page.locator("h2 a").click()
    approve_as(page, "Anna", PASSPHRASES["Anna"])
    page.locator("summary", has_text="Take my approval back").click()
    page.locator("#retract-passphrase").fill(PASSPHRASES["Anna"])
    page.locator("#retract button").click()
    assert "Nobody has approved yet" in page.locator("main").inner_text()


# --- the record and what is in force --------------------------------------------------------------


@pytest.mark.browser
def test_the_ledger_says_whether_it_is_sound(haifa: Haifa) -> None:
    decide_now(haifa.center, haifa.folder, "approved", SIZES)
    page = haifa.enter()
    page.get_by_role("link", name="Ledger").click()
    assert (
        "Nothing was changed, removed or swapped: 1 entry" in page.locator("#verdict").inner_text()
    )
    page.get_by_label("A hash that you noted earlier").fill(haifa.center.ledger.head)
    page.get_by_role("button", name="Compare").click()
    assert "That hash is in the chain" in page.locator("#compared").inner_text()
    page.get_by_label("A hash that you noted earlier").fill("0" * 64)
    page.get_by_role("button", name="Compare").click()
    assert "is not in the chain" in page.locator("#compared").inner_text()
    path = haifa.folder / "Haifa.ledger"
    path.write_bytes(path.read_bytes().replace(b'\\"n\\":70', b'\\"n\\":71', 1))
    page.goto(f"{haifa.server.url}/ledger")
    assert "Line 2: the hash of the line does not match" in page.get_by_role("alert").inner_text()


@pytest.mark.browser
def test_the_check_and_the_policy_are_in_words(haifa: Haifa) -> None:
    page = haifa.enter()
    page.get_by_role("link", name="Check").click()
    assert "140 rows, 5 columns" in page.locator("main").inner_text()
    assert "Everything is in order" in page.locator("main").inner_text()
    page.get_by_role("link", name="Policy").click()
    row = page.locator("tr", has_text="Every number describes at least this many people")
    assert row.locator("td").first.inner_text() == "10"
    assert "mg/L" in page.locator("main").inner_text()


def test_a_center_that_asks_nobody_says_so(tmp_path: Path) -> None:
    folder = write_center(tmp_path / "Haifa")
    toml = folder / "center.toml"
    toml.write_text(toml.read_text().replace('approval = "ask"\n', ""))
    with desk_server(folder, None, Address()) as server:
        steward = Browser(server.url)
        steward.enter(server.link("steward"))
        assert "This center asks nobody" in steward.get("/").text


# --- its words ------------------------------------------------------------------------------------


def test_every_word_of_the_desk_stands_in_one_file() -> None:
    """A template has no words of its own, and no words are there that nobody says."""
    texts, used = read_texts("en"), set()
    modules = [path for some in ("desk", "in_words") for path in (WORKBENCH / some).glob("*.py")]
    source = "".join(path.read_text() for path in modules)
    for path in TEMPLATES.glob("*.html"):
        page = path.read_text()
        used |= set(re.findall(r'"([a-z-]+\.[a-z-]+)"', page)) & texts.keys()
        assert set(re.findall(r'w\("([a-z-]+\.[a-z-]+)"', page)) <= texts.keys(), path.name
        page = re.sub(r"{%.*?%}|{{.*?}}", "", page, flags=re.S)
        answer = re.sub(r"<[^>]*>", "", page, flags=re.S)
        assert not re.search(r"[A-Za-z]", answer), (path.name, re.findall(r".*[A-Za-z].*", answer))
        assert not re.search(r'(aria-label|title|alt|placeholder)="[^"]', page), path.name
    chosen = [
        "page.",
        "column.",
        "question.",
        "policy.",
        "status.",
        "tab.",
        "number.",
        "protocol.kind-",
    ]
    chosen += ["decided.approved", "decided.refused", "decided.withdrawn", "language."]
    chosen += ["ledger.release", "ledger.refusal", "check.ok", "check.note", "check.bad"]
    for key in texts:
        assert key in used or f'"{key}"' in source or key.startswith(tuple(chosen)), key
