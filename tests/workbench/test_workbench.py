"""The researcher's pages, as a newcomer uses them: in a real browser, and without a script."""

import csv
import re
import shlex
import time
from collections.abc import Iterator
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import Any

import docx
import numpy as np
import polars
import pytest

from tests.workbench.browser import Browser
from tests.workbench.chromium import Tab, chromium
from tests.workbench.newcomer import whole_way
from unpooled import Federation, Policy
from unpooled.analyses.specification import ANALYSES
from unpooled.apps.cli import main
from unpooled.apps.demo import VARIABLES, write_hospitals
from unpooled.apps.workbench.foundation.server import Address, Server
from unpooled.apps.workbench.researcher.cards.code import Opening
from unpooled.apps.workbench.researcher.opening import make_server
from unpooled.apps.workbench.researcher.work import Source


def open_files(files: dict[str, Path], **options: Any) -> Source:
    fed = Federation.local(files, seed=1, **options)
    named = {name: str(path) for name, path in files.items()}
    centers = [f"{name}={path}" for name, path in named.items()]
    return Source("test", Opening.of_files(centers, named, {"seed": 1}), fed)


@pytest.fixture(scope="module")
def hospitals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_hospitals(tmp_path_factory.mktemp("hospitals"))


@pytest.fixture(scope="module")
def server(hospitals: dict[str, Path]) -> Iterator[Server]:
    source = open_files(hospitals, variables=VARIABLES)
    with make_server(source, Address()) as running:
        yield running
    source.close()


@pytest.fixture
def researcher(server: Server, request: pytest.FixtureRequest) -> Browser:
    opened = Browser(server.url)
    opened.enter(server.link(request.node.name))  # a user of their own
    return opened


def follow(researcher: Browser, path: str, **fields: Any) -> tuple[str, str]:
    """Send a form, and read the page it leads to, when the centers have answered."""
    reply = researcher.post(path, **fields)
    assert reply.status == 303, reply.text
    page = researcher.get(reply.headers["location"]).text
    until = time.monotonic() + 60
    while 'data-state="asking"' in page and time.monotonic() < until:
        time.sleep(0.1)
        page = researcher.get(reply.headers["location"]).text
    return reply.headers["location"], unescape(page)


@pytest.mark.browser
def test_a_newcomer_asks_and_pins(server: Server) -> None:
    with chromium() as browser:
        tab = Tab(browser, viewport={"width": 1400, "height": 900})
        page = tab.page
        page.goto(server.link("newcomer"))
        assert "mg/L" in page.inner_text("#variables")
        page.fill("#search", "cr")
        assert page.inner_text("#variables-count") == "1 of 6"
        page.click("nav >> text=Ask")
        page.click("text=Comparison")
        page.select_option("#f-variable", "crp")
        page.select_option("#f-by", "arm")
        page.click("text=Ask the centers")
        page.wait_for_selector("#card .answer")
        assert "crp is higher in patient than in control" in page.inner_text("#card .answer")
        assert page.get_by_role("img", name="The effect at each center").is_visible()
        page.click("text=The same in Python")
        assert "fed.compare('crp', by='arm')" in page.inner_text("#card-python")
        page.go_back()
        page.go_forward()
        page.reload()  # nothing is asked again
        page.click("text=Pin to the report")
        page.click("nav >> text=Report")
        assert "crp is higher" in page.inner_text(".card .answer")
        page.click("nav >> text=What left")
        assert page.locator("tbody tr").count() == 10  # sizes and ranks, of five centers
        assert tab.sound


@pytest.mark.browser
def test_a_newcomers_whole_way_on_files(hospitals: dict[str, Path], tmp_path: Path) -> None:
    """Catalogue, protocol, dry run, run, Table 1, comparison, Word: nothing leaves the machine."""
    source = open_files(hospitals, variables=VARIABLES)  # asked nothing before
    with make_server(source, Address()) as server, chromium() as browser:
        tab = Tab(browser, viewport={"width": 1400, "height": 900}, accept_downloads=True)
        tab.page.goto(server.link("newcomer"))
        centers = ["Haifa", "Lausanne", "Milan", "Oslo", "Porto"]
        groups = [("arm", "control, patient"), ("sex", "")]
        whole_way(tab.page, tmp_path, centers, "CRP in sepsis", groups, ["crp", "age"])
        assert tab.sound
    source.close()


@pytest.mark.browser
def test_the_dry_run_follows_what_is_ticked(server: Server) -> None:
    """Nothing is pressed, and the last change wins."""
    from playwright.sync_api import expect

    with chromium() as browser:
        tab = Tab(browser, viewport={"width": 1400, "height": 900})
        page = tab.page
        page.goto(server.link("dry"))
        page.goto(f"{server.url}/protocol")
        page.check("label:has-text('crp')")
        expect(page.locator("#look")).to_contain_text("follows your changes")
        expect(page.locator("#check")).to_contain_text("Haifa", timeout=20_000)
        page.select_option("#group-1", "arm")
        page.check("label:has-text('age')")
        page.select_option("#group-1", "sex")
        checks = []
        page.on("request", lambda sent: checks.append(sent.url) if sent.method == "POST" else None)
        expect(page.locator("#look .words")).to_contain_text("sex")
        expect(page.locator("#check")).to_contain_text("Haifa", timeout=20_000)
        shown = page.inner_text("#check")
        page.reload()
        assert page.inner_text("#check") == shown  # it is that of what is typed now
        assert checks in ([], [f"{server.url}/protocol/check"])
        assert tab.sound


def test_a_table_that_was_seen_is_drawn_in_the_catalogue(server: Server) -> None:
    """From what is there: no center is asked, and nobody else sees it."""
    ours, another = Browser(server.url), Browser(server.url)
    ours.enter(server.link("sketch"))
    another.enter(server.link("another"))
    assert "sketch" not in ours.get("/").text
    place, _ = follow(ours, "/ask/table", variable="crp", by="arm")
    left = ours.get("/left").text.count("<tr")
    page = ours.get("/").text
    drawn = page.split('<svg class="sketch"')[1].split("</svg>")[0]
    assert page.count('<svg class="sketch"') == 1
    assert f'href="{place}"' in page
    assert "style=" not in drawn
    assert ours.get("/left").text.count("<tr") == left
    assert "sketch" not in another.get("/").text
    people: dict[tuple[str, str], float] = {}
    for row in csv.DictReader(ours.get(f"{place}/save.csv").text.splitlines()):
        limits = row["lower"], row["upper"]
        people[limits] = people.get(limits, 0) + float(row["people"])
    areas = [float(w) * float(h) for w, h in re.findall(r' width="(\S+)" height="(\S+)"/', drawn)]
    closed = [n for limits, n in people.items() if all(limits)]
    shares = [sum(closed[:b]) / sum(closed) for b in range(len(closed) + 1)]
    drawn_shares = [sum(areas[:b]) / sum(areas) for b in range(1, len(areas) + 1)]
    assert 3 < len(areas) <= len(closed)
    for share in drawn_shares:  # of neighbors that are drawn as one, too
        assert min(abs(share - true) for true in shares) < 0.003


@pytest.mark.browser
def test_a_study_is_asked_and_read_without_a_script(hospitals: dict[str, Path]) -> None:
    """In a browser that runs none: what goes on is seen by loading the page again."""
    source = open_files(hospitals, variables=VARIABLES)
    with make_server(source, Address()) as server, chromium() as browser:
        tab = Tab(browser, java_script_enabled=False, viewport={"width": 1400, "height": 900})
        page = tab.page
        page.goto(server.link("plain"))
        page.fill("#search", "cr")
        page.click("button:has-text('Search')")
        assert page.locator("#variables tbody th").all_inner_texts() == ["crp"]
        page.click("nav >> text=Protocol")
        page.fill("#title", "CRP in sepsis")
        page.select_option("#group-1", "arm")
        page.check("#variables label:has-text('crp')")
        page.click("text=Look at it")
        page.select_option("#group-2", "sex")
        page.fill("#place-2", "0")  # in the place of dragging it above the other
        page.click("text=Look at it")
        assert page.input_value("#group-1") == "sex"
        page.click("button[formaction='/protocol/check']")
        reload_until(page, "#check table")
        page.click("text=Ask the centers once")
        reload_until(page, "#run:not([data-poll])")
        assert page.locator(".state.answered, .state.partly").count() == len(hospitals)
        page.click("text=Look at what came back")
        page.click("main a:text-is('Comparison')")
        page.select_option("#f-by", "arm")
        page.click("button:has-text('Show')")
        sentence = page.inner_text("#card .answer")
        assert "crp is higher in patient than in control" in sentence
        page.click("text=Pin to the report")
        assert page.inner_text(".card .answer") == sentence
        with page.expect_download() as begun:
            page.get_by_role("link", name="Word").click()
        paragraphs = docx.Document(str(begun.value.path())).paragraphs
        assert sentence in [paragraph.text for paragraph in paragraphs]
        assert tab.sound
    source.close()


def reload_until(page: Any, selector: str) -> None:
    until = time.monotonic() + 120
    while not page.locator(selector).count():
        assert time.monotonic() < until, page.content()
        time.sleep(0.2)
        page.reload()


def test_it_works_without_a_script(researcher: Browser) -> None:
    _, card = follow(researcher, "/ask/describe", variable="crp", by="arm")
    assert "The mean of crp (mg/L) is" in card
    place, card = follow(researcher, "/ask/survival", time="months", event="died", by="arm")
    assert "hazard ratio" in card
    follow(researcher, f"{place}/pin")
    assert "Kaplan-Meier" in researcher.get("/report").text


def test_cards_and_the_report_are_saved_as_files(researcher: Browser) -> None:
    place, _ = follow(researcher, "/ask/describe", variable="crp", by="arm")
    second, _ = follow(researcher, "/ask/describe", variable="age", by="arm")
    begins = {
        "csv": b"variable,",
        "svg": b"<svg",
        "png": b"\x89PNG",
        "html": b"<!doctype",
        "docx": b"PK",
    }
    for kind, first in begins.items():
        reply = researcher.get(f"{place}/save.{kind}")
        assert reply.body.startswith(first), kind
        assert 'filename="crp-by-arm' in reply.headers["content-disposition"]
    assert researcher.get("/report/save.docx").status == 404  # nothing is pinned
    follow(researcher, f"{place}/pin")
    follow(researcher, f"{second}/pin")
    whole = docx.Document(BytesIO(researcher.get("/report/save.docx").body))
    assert [p.text[:11] for p in whole.paragraphs if p.text.startswith("The mean of")] == [
        "The mean of"
    ] * 2
    assert researcher.get(f"{place}/save.exe").status == 404


def test_every_analysis_has_a_form(researcher: Browser, server: Server) -> None:
    names = re.findall(r'href="/ask/(\w+)"', researcher.get("/ask").text)
    assert names == [analysis.name for analysis in ANALYSES]
    for name in names:
        assert f'action="/ask/{name}"' in researcher.get(f"/ask/{name}").text


def test_the_code_of_a_card_says_the_same(
    hospitals: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """On centers that were asked nothing before, as a reader has them."""
    source = open_files(hospitals)
    with make_server(source, Address()) as running:
        one = Browser(running.url)
        one.enter(running.link("own"))
        asked = {
            "variable": "crp",
            "by": "arm",
            "where": "sex == 'F'",
            "groups": "patient, control",
        }
        _, card = follow(one, "/ask/compare", **asked)
    source.close()
    python, command = (part.split("</pre>")[0] for part in card.split('tabindex="0">')[-2:])
    estimate = re.findall(r"= (\d\.\d+)", card.split('<p class="answer">')[1])[0]
    exec(python, {})
    assert f"P(control > patient) = {estimate} " in capsys.readouterr().out
    with pytest.raises(SystemExit, match="0"):
        main(shlex.split(command)[1:])
    assert f"P(control > patient) = {estimate} " in capsys.readouterr().out


def test_what_cannot_be_asked_is_said_beside_the_form(researcher: Browser) -> None:
    reply = researcher.post("/ask/compare", variable="crp", by="arm", max_bins="many")
    assert reply.status == 422
    assert "Most bins: this must be numbers, got &#39;many&#39;" in reply.text
    assert '<option value="crp" selected>' in reply.text  # what was typed is still there
    assert researcher.post("/ask/compare", variable="crp").status == 422
    assert researcher.get("/ask/nothing").status == 404
    assert researcher.get("/cards/99").status == 404


def test_a_question_that_fails_says_why(researcher: Browser) -> None:
    _, card = follow(researcher, "/ask/describe", variable="crp", by="arm", groups="nobody")
    assert 'class="error"' in card
    assert "nobody" in card


def test_the_catalogue_says_who_lacks_what(hospitals: dict[str, Path], tmp_path: Path) -> None:
    odd = tmp_path / "Odd.csv"
    odd.write_text("crp,weight\n" + "low,70\n" * 30)
    source = open_files({**hospitals, "Odd": odd})
    with make_server(source, Address()) as running:
        part = Browser(running.url)
        part.enter(running.link("own"))
        page = " ".join(unescape(part.get("/").text).split())
        assert "5 of 6 <br>not at <bdi>Odd</bdi>: has no such variable, or does not allow" in page
        assert "<bdi>Odd</bdi>: has text, others numbers" in page
        assert 'data-words="weight' in page
        result = part.get("/?search=weig").text
        assert 'data-words="weight' in result
        assert 'data-words="crp' not in result
    source.close()


@pytest.mark.browser
def test_forty_centers_with_three_hundred_variables_stay_usable() -> None:
    """Pages of at most 500 kB, a search, and a tick among 300; times are in the benchmark."""
    random = np.random.default_rng(1)
    frames = {}
    for i in range(40):
        names = [f"variable_{v:03d}" for v in range(300) if not (i > 35 and v % 3 == 0)]
        rows = random.normal(size=(30, len(names))).round(2)
        frames[f"center {i:02d}"] = polars.DataFrame(rows, schema=names)
    source = Source("many", Opening.of_federation("f.toml"), Federation.local(frames, seed=1))
    with make_server(source, Address()) as server, chromium() as browser:
        tab = Tab(browser, viewport={"width": 1400, "height": 900})
        page = tab.page
        page.set_default_timeout(120_000)
        page.goto(server.link("person"))
        assert page.inner_text("#variables-count") == "300 of 300"
        page.fill("#search", "variable_297")
        (row,) = page.locator("#variables tbody tr:visible").all_inner_texts()
        assert "36 of 40" in row
        assert "not at 4: has no such variable" in row  # folded, with the centers' names
        page.goto(f"{server.url}/protocol")
        page.fill("#filter", "variable_299")
        page.check("#variables label:has-text('variable_299')")
        page.wait_for_selector("#look .words bdi:text-is('variable_299')")
        for path in ("/", "/ask/compare", "/protocol"):
            assert len(page.goto(f"{server.url}{path}").body()) < 500_000
        assert tab.sound
    source.close()


def test_a_plan_is_what_the_command_says(researcher: Browser) -> None:
    reply = researcher.post("/plan", sizes="60 40", effect="0.5", sims="20", chart="/tmp/x.svg")
    assert reply.status == 303
    until = time.monotonic() + 120
    page = researcher.get("/plan").text
    while "data-poll" in page and time.monotonic() < until:
        time.sleep(0.2)
        page = researcher.get("/plan").text
    assert "unpooled plan --sizes=60,40 --effect=0.5" in page
    assert "x.svg" not in page  # nothing of a form names a file
    assert "power" in page.split('class="answer-text"')[1]
    researcher.post("/plan", sizes="none", effect="0.5")
    while "data-poll" in (page := researcher.get("/plan").text) and time.monotonic() < until:
        time.sleep(0.2)
    assert 'class="error"' in page


def test_two_users_never_see_each_other(server: Server) -> None:
    anna, ben = Browser(server.url), Browser(server.url)
    anna.enter(server.link("anna"))
    ben.enter(server.link("ben"))
    place, _ = follow(anna, "/ask/describe", variable="age")
    follow(anna, f"{place}/pin")
    assert ben.get(place).status == 404
    assert "age" not in ben.get("/ask").text.split("<h2>")[1]
    assert "sizes" not in ben.get("/left").text
    assert ben.post(f"{place}/pin").status == 404
    assert "moments of age" in anna.get("/left").text


HOSTILE = ["<script>alert(1)</script>", "a\"b'c", "גיל החולה", "x" * 200, "{{ 7*7 }}"]


def test_names_are_shown_and_never_run(tmp_path: Path) -> None:
    """In columns, levels and centers; in pages, pictures, code and errors."""
    files: dict[str, Path] = {}
    for center in ("<b>Bern</b>", 'Ha"ifa'):
        files[center] = tmp_path / f"{len(files)}.csv"
        with files[center].open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*HOSTILE, "by<i>"])
            for i in range(120):
                level = ("</script><img src=x onerror=alert(2)>", "'; --")[i % 2]
                writer.writerow([*(i % 50 + i / 7 for _ in HOSTILE), level])
    source = open_files(files, policy=Policy(ad_hoc="free"))
    with make_server(source, Address()) as running, chromium() as browser:
        tab = Tab(browser, viewport={"width": 1000, "height": 800})
        tab.page.on("dialog", lambda dialog: tab.errors.append(dialog.message))
        tab.page.goto(running.link("victim"))
        assert [row.strip() for row in tab.page.locator("tbody th").all_inner_texts()] == sorted(
            [*HOSTILE, "by<i>"], key=str.casefold
        )
        for name in HOSTILE:
            tab.page.goto(f"{running.url}/ask/compare")
            tab.page.select_option("#f-variable", name)
            tab.page.select_option("#f-by", "by<i>")
            tab.page.click("text=Ask the centers")
            tab.page.wait_for_selector("#card .answer")
            assert name in tab.page.inner_text("#card .answer")
            assert "onerror=alert(2)" in tab.page.inner_text("#card figure")
            tab.page.click("text=Pin to the report")
        tab.page.goto(f"{running.url}/report")
        tab.page.goto(f"{running.url}/left")
        assert tab.page.locator("main img, main i, main b, main script").count() == 0
        assert tab.sound
    source.close()
