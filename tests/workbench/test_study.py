"""A study at the workbench: a protocol is built, looked at, asked once, and watched."""

import re
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import unescape
from io import BytesIO
from pathlib import Path
from urllib.parse import urlencode

import docx
import pytest

from tests.workbench.browser import Browser
from tests.workbench.chromium import Tab, barriers, chromium
from unpooled import Federation
from unpooled.analyses.protocols.protocol import read_protocol
from unpooled.apps.demo import VARIABLES, write_hospitals
from unpooled.apps.workbench.foundation.server import Address
from unpooled.apps.workbench.researcher.cards.code import Opening
from unpooled.apps.workbench.researcher.opening import make_server, source_of_book
from unpooled.apps.workbench.researcher.studies.draft import Draft, as_file
from unpooled.apps.workbench.researcher.work import Source
from unpooled.center.policy import Policy
from unpooled.center.questions import Reason, Refusal
from unpooled.results.catalogue import CatalogueResult

PATIENCE = 120.0  # seconds, on a machine that does much else


class Wire:
    """A link whose centers can be down, or wait for their stewards."""

    def __init__(self, fed: Federation) -> None:
        self.link = fed._coordinator.link
        self.away: dict[str, Reason] = {}
        self.asked: list[tuple[str, ...]] = []
        self.waits: list[bool] = []  # whether a question waits for stewards

    @property
    def centers(self) -> tuple[str, ...]:
        return self.link.centers

    def ask(
        self, question: bytes, centers: Sequence[str], *, stewards: bool = True
    ) -> Mapping[str, bytes | Refusal]:
        self.asked.append(tuple(centers))
        self.waits.append(stewards)
        there = [name for name in centers if name not in self.away]
        away = {n: Refusal(reason=self.away[n], limit=1) for n in centers if n in self.away}
        return {**self.link.ask(question, there), **away}

    def close(self) -> None:
        self.link.close()


class Place:
    """A running workbench on five hospitals."""

    def __init__(self, folder: Path) -> None:
        policy = Policy(ad_hoc="free")
        fed = Federation.local(write_hospitals(folder), variables=VARIABLES, seed=1, policy=policy)
        self.wire = Wire(fed)
        over = Federation(self.wire, VARIABLES, policy=policy)
        self.source = Source("test", Opening.of_federation("f.toml"), over)
        self.server = make_server(self.source, Address())

    def browser(self, user: str) -> Browser:
        opened = Browser(self.server.url)
        opened.enter(self.server.link(user))
        return opened


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setattr("unpooled.apps.workbench.researcher.work._PATIENCE", PATIENCE)
    running = Place(tmp_path)
    with running.server:
        yield running
    running.source.close()


STUDY = {
    "title": "CRP in sepsis",
    "group": ["arm", "age", ""],
    "levels": ["control, patient", "", ""],
    "cuts": ["", "65", ""],
    "beside": ["", "", ""],
    "place": ["2", "1", "3"],
    "variable": ["crp", "sex"],
    "time": ["months", ""],
    "event": ["died", ""],
    "horizon": ["60", ""],
    "event_is": ["", ""],
}


def look(part: Browser, **changed: object) -> str:
    return unescape(part.get(f"/protocol?{urlencode({**STUDY, **changed}, doseq=True)}").text)


def run(part: Browser) -> None:
    page = part.get("/protocol").text
    shown = page.split('name="shown" value="')[1].split('"')[0]
    assert part.post("/protocol", shown=shown).status == 303


def look_until(part: Browser, path: str, there: Callable[[str], bool]) -> str:
    """A page as soon as something is there, without its token, which has any letters."""
    until = time.monotonic() + PATIENCE
    while not there(page := part.get(path).text.replace(part.csrf, "")):
        assert time.monotonic() < until, page
        time.sleep(0.1)
    return unescape(page)


def is_still(page: str) -> bool:
    return 'data-poll="' not in page


def watch(part: Browser) -> str:
    return look_until(part, "/study", is_still)


def states(page: str) -> list[str]:
    return [part.split('"')[0] for part in page.split('class="state ')[1:]]


@pytest.mark.browser
def test_a_protocol_is_built_and_asked_in_the_browser(place: Place) -> None:
    from playwright.sync_api import expect

    with chromium() as browser:
        tab = Tab(browser, viewport={"width": 1400, "height": 1000})
        page = tab.page
        page.goto(place.server.link("anna"))
        page.click("nav >> text=Protocol")
        page.fill("#title", "CRP in sepsis")
        page.select_option("#group-1", "arm")
        page.wait_for_selector("#group-2")
        page.fill("#levels-1", "control, patient")
        page.check("label:has-text('crp')")
        page.wait_for_selector("#look .words")
        page.select_option("#group-2", "sex")
        page.wait_for_selector("#group-3")
        assert page.input_value("#group-1") == "arm"
        page.focus("#group-2")
        page.keyboard.press("Alt+ArrowUp")  # the more important one goes first
        expect(page.locator("#group-1")).to_have_value("sex")
        page.click("text=The same as a file")
        file = tomllib.loads(page.inner_text("#file"))
        assert [group["name"] for group in file["groups"]] == ["sex", "arm"]
        page.reload()  # nothing is lost
        assert page.input_value("#group-1") == "sex"
        page.click("text=Ask the centers once")
        page.wait_for_selector("#run:not([data-poll])")
        assert page.locator(".state.answered, .state.partly, .state.refused").count() == 5
        page.click("text=Look at what came back")
        page.click("text=Comparison")
        page.wait_for_selector("#card .answer")
        expect(page.locator("#card .answer")).to_contain_text("P(M > F)")
        page.select_option("#f-by", "arm")  # the card changes as options change
        expect(page.locator("#card .answer")).to_contain_text("higher in patient")
        asked = len(place.wire.asked)
        page.click("text=Pin to the report")
        assert "higher in patient" in page.inner_text(".card .answer")
        link = page.get_by_role("link", name="Word").get_attribute("href")
        saved = tab.context.request.get(f"{place.server.url}{link}")
        assert docx.Document(BytesIO(saved.body())).paragraphs[0].text == "Report"
        assert len(place.wire.asked) == asked  # a book asks nobody
        assert tab.sound


def test_what_is_typed_is_a_protocol(place: Place, tmp_path: Path) -> None:
    part = place.browser("own")
    page = look(part)
    assert "months" in page.split('class="words')[1]
    file = tmp_path / "protocol.toml"
    file.write_bytes(part.get("/protocol.toml").body)
    protocol = read_protocol(file)
    assert [group.name for group in protocol.groups] == ["age", "arm"]  # by their place
    assert protocol.groups[0].names == ("under 65", "65 and over")
    assert protocol.variables["sex"].kind == "category"
    assert protocol.variables["crp"].unit == "mg/L"
    assert protocol.survival[0].horizon == 60


def test_what_is_wrong_is_said_while_it_is_typed(place: Place) -> None:
    part = place.browser("own")
    assert "the cuts of age must be numbers, got 'old'" in look(part, cuts=["", "old", ""])
    assert "the horizon of months must be numbers" in look(part, horizon=["", ""])
    assert "k must be a positive whole number" in look(part, k="ten")


def test_names_of_all_kinds_come_back_from_the_file() -> None:
    names = ['a"b', "a.b", "גיל", "<script>", "a\\b", "tab\there"]
    typed = {"variable": names, "group": ['g "1"'], "levels": ['"x, y", z'], "title": ["a\n'b"]}
    draft = Draft.of(typed)
    tables = draft.tables(CatalogueResult((), ()), {})
    assert tomllib.loads(as_file(tables)) == tables
    assert tables["groups"][0]["levels"] == ["x, y", "z"]


def test_centers_that_are_down_or_wait_are_asked_again_and_others_are_not(place: Place) -> None:
    part = place.browser("own")
    place.wire.away = {"Milan": Reason.NOT_CONNECTED}
    look(part)
    run(part)
    page = watch(part)
    assert states(page)[2] == "down"
    assert "Ask the missing centers" in page
    before = len(place.wire.asked)
    place.wire.away = {}
    assert part.post("/study/resume").status == 303
    page = watch(part)
    assert states(page)[2] in ("answered", "partly")
    assert place.wire.asked[before:] == [("Milan",)]


def test_a_run_that_waits_for_a_steward_can_be_stopped(place: Place) -> None:
    part = place.browser("own")
    place.wire.away = {"Oslo": Reason.WAITING_FOR_STEWARD}
    look(part)
    run(part)
    page = look_until(part, "/study", lambda page: "waits for its steward" in page)
    assert "since" in page
    part.post("/study/cancel")
    assert states(watch(part))[3] == "waits"
    assert True not in place.wire.waits  # nobody waits for a steward, so that a stop stops at once


def test_every_analysis_of_a_book_has_a_card(place: Place, tmp_path: Path) -> None:
    part = place.browser("own")
    look(part)
    run(part)
    watch(part)
    names = set(re.findall(r'href="/book/(\w+)"', part.get("/book").text)) - {"file"}
    assert {"describe", "compare", "quantiles", "table", "survival", "crosstab", "table1"} <= names
    for name in names:
        page = part.get(f"/book/{name}").text
        assert 'class="answer"' in page, name
    (tmp_path / "study.book").write_bytes(part.get("/book/file").body)
    source = source_of_book(tmp_path / "study.book")
    with make_server(source, Address()) as running:
        reader = Browser(running.url)
        reader.enter(running.link("reader"))
        assert reader.get("/").headers["location"] == "/book"
        assert 'class="answer"' in reader.get("/book/compare").text
        assert reader.get("/book/compare/save.csv").body.startswith(b"variable,")
        assert "protocol CRP in sepsis" in reader.get("/left").text
    source.close()


@pytest.mark.browser
def test_pages_are_for_everybody(place: Place) -> None:
    """Screen readers, phones, and eyes that like the dark: axe-core, and nothing hangs over."""
    part = place.browser("own")
    look(part)
    run(part)
    watch(part)
    part.post("/book/survival", time="months", by="arm")
    cards = re.findall(r'href="(/book/\w+)"', part.get("/book").text)
    pages = ["/", "/ask", "/ask/compare", "/protocol", "/study", "/book", *cards]
    pages += ["/report", "/plan", "/left", "/programs", "/cards/1", "/nowhere"]
    pages.remove("/book/file")
    assert len(pages) > 15
    with chromium() as browser:
        tab = Tab(browser, viewport={"width": 390, "height": 800})
        tab.page.goto(place.server.link("own"))
        for path in pages:
            tab.page.goto(f"{place.server.url}{path}")
            assert tab.page.evaluate("document.documentElement.scrollWidth") == 390, path
            for scheme in ("light", "dark"):
                tab.page.emulate_media(color_scheme=scheme)
                assert barriers(tab.page) == [], (path, scheme)


def test_what_was_not_shown_is_not_asked(place: Place) -> None:
    """Two tabs: the other one changed the protocol."""
    part = place.browser("own")
    shown = look(part).split('name="shown" value="')[1].split('"')[0]
    look(part, variable=["age"])
    reply = part.post("/protocol", shown=shown)
    assert reply.status == 409
    assert "in another tab" in reply.text
    assert place.wire.asked == [tuple(place.wire.centers)]  # the catalogue alone


def test_a_dry_run_says_what_each_center_would_tell(place: Place) -> None:
    part = place.browser("own")
    shown = look(part).split('name="shown" value="')[1].split('"')[0]
    assert part.post("/protocol/check", shown=shown).status == 303
    page = look_until(part, "/protocol", is_still)
    checked = page.split('id="check"')[1].split("Ask the centers once")[0]
    for center in ("Haifa", "Lausanne", "Milan", "Oslo", "Porto"):
        assert f"<bdi>{center}</bdi>" in checked
    assert part.get("/study").text.count('class="state') == 0  # nothing was run
    assert (
        "<table" not in look(part, variable=["age"]).split('id="check"')[1]
    )  # of another protocol


def test_small_centers_count_together(tmp_path: Path) -> None:
    files = {f"center {i}": tmp_path / f"{i}.csv" for i in range(6)}
    for i, file in enumerate(files.values()):
        rows = [f"{(7 * j) % 50},{'ab'[j % 2]}" for j in range(60 if i < 2 else 9)]
        file.write_text("\n".join(["v,g", *rows]))
    fed = Federation.local(files, seed=1, joint=True)
    source = Source("test", Opening.of_federation("f.toml"), fed)
    with make_server(source, Address()) as running:
        part = Browser(running.url)
        part.enter(running.link("own"))
        typed = {"title": "x", "group": ["g"], "levels": ["a, b"], "variable": ["v"]}
        part.get(f"/protocol?{urlencode(typed, doseq=True)}")
        run(part)
        page = watch(part)
        assert page.count("counts in the joint center") == 4
        assert "6 of 6." in page
        assert "joint (4 centers)" in part.get("/book").text
    source.close()


def test_another_user_sees_no_study(place: Place) -> None:
    anna, ben = place.browser("anna"), place.browser("ben")
    look(anna)
    run(anna)
    watch(anna)
    for path in ("/study", "/protocol"):
        assert "CRP" in look_until(anna, path, is_still)
        assert "CRP" not in look_until(ben, path, is_still)


def test_the_catalogue_says_whose_steward_it_waits_for_and_grows(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unpooled.apps.workbench.researcher.work._AGAIN", 0.0)
    place.wire.away = {"Oslo": Reason.WAITING_FOR_STEWARD}
    part = place.browser("own")
    page = part.get("/").text
    assert "<bdi>Oslo</bdi>: waits for its steward" in page
    assert "data-poll" in page
    assert "4 of 4" in page  # the others' variables are there
    assert place.wire.waits[-1] is False  # nobody waits for a steward here
    place.wire.away = {}
    page = look_until(part, "/", is_still)
    assert "5 of 5" in page
    assert "waits for" not in page


@pytest.mark.browser
def test_a_search_goes_on_in_variables_that_come_later(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unpooled.apps.workbench.researcher.work._PATIENCE", 0.2)
    over = threading.Event()
    place.source.worker.submit(over.wait, PATIENCE)
    with chromium() as browser:
        tab = Tab(browser)
        tab.page.goto(place.server.link("own"))
        tab.page.fill("#search", "cr")
        over.set()
        tab.page.wait_for_selector("#variables")
        assert tab.page.locator("#variables tbody tr:visible th").all_inner_texts() == ["crp"]
        assert tab.page.inner_text("#variables-count") == "1 of 6"
        tab.page.fill("#search", "months")
        assert tab.page.locator("#variables tbody tr:visible th").all_inner_texts() == ["months"]
        assert tab.sound


def test_the_catalogue_does_not_hang_behind_a_long_question(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unpooled.apps.workbench.researcher.work._PATIENCE", 0.2)
    over = threading.Event()
    place.source.worker.submit(over.wait, 30)
    part = place.browser("own")
    page = part.get("/").text
    assert "The centers are asked" in page
    assert "No center lets" not in page
    over.set()
    page = look_until(part, "/", is_still)
    assert "5 of 5" in page


def test_over_the_network_a_dry_run_is_made_by_the_button_alone(place: Place) -> None:
    """Each one is recorded, and counts in the centers' budgets: the page says so."""
    page = look(place.browser("own"))
    assert "Each center records every look" in page
    assert "data-send" not in page
