"""The pages' words: in one place, so that they can be in another language and direction."""

import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.workbench.browser import Browser
from tests.workbench.chromium import Tab, barriers, chromium
from tests.workbench.held import QUESTIONS, hold, open_haifa, write_center
from unpooled import Federation
from unpooled.analyses.specification import ANALYSES
from unpooled.apps.demo import VARIABLES, write_hospitals
from unpooled.apps.workbench.desk import desk_server
from unpooled.apps.workbench.foundation.server import Address
from unpooled.apps.workbench.in_words import words as in_words
from unpooled.apps.workbench.researcher import words as of_researcher
from unpooled.apps.workbench.researcher.cards.code import Opening
from unpooled.apps.workbench.researcher.opening import make_server
from unpooled.apps.workbench.researcher.work import Source

WORKBENCH = Path(__file__).parents[2] / "src/unpooled/apps/workbench"


@pytest.mark.parametrize("part", ["foundation", "researcher"])
def test_a_template_has_no_words_of_its_own(part: str) -> None:
    for path in (WORKBENCH / part / "templates").glob("*.html"):
        page = re.sub(r"{%.*?%}|{{.*?}}|<pre.*?</pre>", "", path.read_text(), flags=re.S)
        page = re.sub(r"<!doctype[^>]*>", "", page)
        rest = re.sub(r"<[^>]*>", "", page, flags=re.S).replace("unpooled", "")
        assert not re.search(r"[A-Za-z]", rest), (path.name, re.findall(r".*[A-Za-z].*", rest))
        assert not re.search(r'(aria-label|title|alt|placeholder)="[^"]', page), path.name


def test_the_script_has_no_words_of_its_own() -> None:
    script = (WORKBENCH / "foundation/static/script.js").read_text()
    assert re.findall(r'(?:say\(|textContent = |\?\? )["`][^"`$ ].*', script) == []
    for name in re.findall(r"(?<![.\w])words\.(\w+)", script):
        key = re.sub(r"([A-Z])", lambda letter: f"-{letter[0].lower()}", name)
        assert f"page.{key}" in in_words.read_texts("en")


LETTERS = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "אבגדהוזחטיכלמנסעפצקרשתאבגד" * 2
)


def strange(text: str) -> str:
    """A text in another alphabet; what is filled in stays as it is."""
    parts = re.split(r"(\{[^}]*\})", text)
    return "".join(p if p.startswith("{") else p.translate(LETTERS) for p in parts)


def strange_texts(texts: Mapping[str, str]) -> dict[str, str]:
    other = {key: strange(text) for key, text in texts.items()}
    return other | {"language.code": "he", "language.direction": "rtl"}


def translate(module: ModuleType, patch: pytest.MonkeyPatch) -> None:
    """All texts of a module, also those in tables."""
    for name, text in vars(module).items():
        if not name.isupper() or name in ("LANGUAGE", "DIRECTION", "FILES"):
            continue
        whole: Any = text
        if isinstance(text, dict):
            whole = {key: strange(value) for key, value in text.items()}
        patch.setattr(module, name, strange(whole) if isinstance(whole, str) else whole)
    patch.setattr(module, "DIRECTION", "rtl")


@pytest.fixture
def in_another_language(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = in_words.read_texts("en")
    monkeypatch.setattr(in_words, "read_texts", lambda _: strange_texts(whole))
    translate(of_researcher, monkeypatch)


def words_left(page: str) -> set[str]:
    """The Latin words that somebody reads on a page."""
    page = re.sub(r"<(svg|pre|head|script)\b.*?</\1>", "", page, flags=re.S)
    names = " ".join(re.findall(r'(?:aria-label|title|alt|placeholder)="([^"]*)"', page))
    return set(re.findall(r"[A-Za-z]{2,}", unescape(re.sub(r"<[^>]*>", " ", page) + names)))


@pytest.mark.usefixtures("in_another_language")
def test_every_word_of_the_researchers_pages_can_be_in_another_language(tmp_path: Path) -> None:
    """What is left are names, and what analyses say of themselves and of their results."""
    fed = Federation.local(write_hospitals(tmp_path), variables=VARIABLES, seed=1)
    source = Source("1", Opening.of_federation("f.toml"), fed)
    names = {"crp", "age", "arm", "sex", "died", "months", "mg", "unpooled", "text"}
    names |= set(re.findall(r"[A-Za-z]{2,}", " ".join(analysis.help for analysis in ANALYSES)))
    with make_server(source, Address()) as server:
        reader = Browser(server.url)
        reader.enter(server.link("reader"))
        for path in ("/", "/ask", "/protocol", "/study", "/book", "/report", "/left", "/programs"):
            page = reader.get(path).text
            assert 'dir="rtl"' in page
            assert words_left(page) <= names, path
    source.close()


@pytest.mark.browser
@pytest.mark.usefixtures("in_another_language")
def test_the_desk_can_be_in_hebrew(tmp_path: Path) -> None:
    """Every word of it, from right to left: nothing hangs over, and axe-core finds nothing."""
    folder = write_center(tmp_path / "Haifa")
    center = open_haifa(folder)
    hold(center, *QUESTIONS[:4])
    with desk_server(folder, None, Address()) as server, chromium() as browser:
        tab = Tab(browser, viewport={"width": 390, "height": 800}, locale="he")
        tab.page.goto(server.link("steward"))
        links = tab.page.eval_on_selector_all("h2 a", "all => all.map(a => a.href)")
        assert len(links) == 4
        for path in (server.url, *links, f"{server.url}/decided", f"{server.url}/policy"):
            tab.page.goto(path)
            assert tab.page.evaluate("getComputedStyle(document.body).direction") == "rtl"
            assert tab.page.evaluate("document.documentElement.scrollWidth") == 390, path
            assert barriers(tab.page) == [], path
            heading = tab.page.inner_text("h1")
            assert set(re.findall(r"[A-Za-z]{2,}", heading)) <= {"crp", "arm"}, heading
        assert tab.sound
    center.close()
