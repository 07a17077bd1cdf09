"""Reports: one file, no network, every chart there; looked at in a real browser."""

import pickle
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars
import pytest

from tests.azpro import write_azpro
from unpooled import Federation, Variable
from unpooled.apps.cli import main
from unpooled.apps.demo import VARIABLES, write_hospitals
from unpooled.errors import InputError
from unpooled.results.numbers.distribution import DistributionResult
from unpooled.results.report.page import svg
from unpooled.results.report.text import columns_text

CHROMIUM = shutil.which("chromium")
FIGURES = {"los": 4, "age75": 7}  # forest; density, cdf, centers; histogram, cdf, box plot


@pytest.fixture(scope="module")
def azpro_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two variables, 17 centers, one command."""
    folder = tmp_path_factory.mktemp("azpro")
    data = write_azpro(folder / "azpro.csv")
    report = folder / "azpro.html"
    with pytest.raises(SystemExit) as stopped:
        main(
            [
                "compare",
                "los",
                "age75",
                "--by",
                "procedure",
                "--groups",
                "PTCA",
                "CABG",
                "--centers",
                str(data),
                "--center-column",
                "hospital",
                "--report",
                str(report),
            ]
        )
    assert not stopped.value.code
    return report


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """A page of a real browser with its network off."""
    if CHROMIUM is None:
        pytest.skip("needs chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        context = browser.new_context(offline=True)
        opened = context.new_page()
        yield opened
        browser.close()


@pytest.mark.browser
def test_every_chart_is_seen_with_the_network_off(page: Any, azpro_report: Path) -> None:
    asked: list[str] = []
    problems: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text))
    page.goto(azpro_report.as_uri())
    figures = page.locator("figure svg")
    assert figures.count() == 1 + sum(FIGURES.values())
    for i in range(figures.count()):
        box = figures.nth(i).bounding_box()
        assert box["width"] > 200
        assert box["height"] > 40
        assert figures.nth(i).locator("path").count() > 3
    assert asked == [azpro_report.as_uri()]
    assert problems == []


@pytest.mark.browser
def test_a_person_sees_the_answer_and_what_left(page: Any, azpro_report: Path) -> None:
    page.goto(azpro_report.as_uri())
    text = page.locator("main").inner_text()
    assert "weighted (recommended)" in text
    assert "H01, PTCA: fewer than 10 people (too-small)" in text
    assert "P(CABG > PTCA)" in text
    page.locator("summary", has_text="H01").first.click()
    assert '"say":"' in page.locator("details[open] pre").first.inner_text()


@pytest.mark.browser
def test_a_report_fits_a_phone_and_what_is_wider_scrolls_by_itself(
    page: Any, azpro_report: Path, tmp_path: Path
) -> None:
    files = write_hospitals(tmp_path)
    fed = Federation.local(files, variables=VARIABLES, seed=7)
    results: dict[str, Any] = {
        "quantiles": fed.quantiles("crp", by="arm", method=["yj-table", "yj-grid"]),
        "table": fed.table("crp", by="arm"),
        "describe": fed.describe("crp", by="arm"),
        "groups": fed.compare("crp", by="arm", groups=("control", "patient"), ordered=True),
        "survival": fed.survival("months", event="died", by="sex", horizon=60),
    }
    made = [result.report(tmp_path / f"{name}.html") for name, result in results.items()]
    before = page.viewport_size
    page.set_viewport_size({"width": 380, "height": 800})
    for report in (azpro_report, *made):
        page.goto(report.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") == 380, report.name
        texts = page.locator("figure svg text").all()
        assert min(text.bounding_box()["height"] for text in texts[:20]) > 7, report.name
    page.set_viewport_size(before)


def test_a_report_names_no_address_and_loads_nothing(azpro_report: Path) -> None:
    markup = azpro_report.read_text()
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", markup))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "<script" not in markup
    assert "<link" not in markup


def test_every_result_can_be_reported(tmp_path: Path) -> None:
    files = write_hospitals(tmp_path)
    fed = Federation.local(files, variables=VARIABLES, seed=7)
    results: dict[str, Any] = {
        "table": fed.table("crp", by="arm"),
        "describe": fed.describe("crp", by="arm"),
        "compare": fed.compare("crp", by="arm", method="all"),
        "weighted": fed.compare("crp", by="arm"),
        "quantiles": fed.quantiles("crp", by="arm", method=["yj-table", "yj-grid"]),
        "one": fed.quantiles("crp", method="yj-likelihood"),
        "several": fed.quantiles(["crp", "age"], by="arm"),
        "many": fed.compare(["crp", "age"], by="arm"),
    }
    for name, result in results.items():
        markup = result.report(tmp_path / f"{name}.html").read_text()
        assert markup.count("<svg") >= 1, name
        assert "Everything that left the centers" in markup
        assert "seed of the boundaries" in markup
        assert "K = 10: Haifa, Lausanne, Milan, Oslo, Porto" in markup
        assert "crp" in result._repr_html_()
        assert "crp" in str(result)
        assert result.chart().to_dict()


WHOLE = (
    *("weighted (recommended)", "sum", "fisher", "table"),
    *("The federated table;", "The cumulative distribution", "From the parallel quantiles"),
    *("is shifted by", "Their policy", "seed of the boundaries"),
)


def test_a_comparison_by_every_method_reports_everything(tmp_path: Path) -> None:
    fed = Federation.local(write_hospitals(tmp_path), variables=VARIABLES, seed=7)
    markup = fed.compare("crp", by="arm", method="all").report(tmp_path / "r.html").read_text()
    assert markup.count("<svg") == 7
    assert [words for words in WHOLE if words not in markup] == []


@pytest.mark.parametrize(
    ("method", "charts", "shown", "absent"),
    [
        ("weighted", 1, "method=&#x27;all&#x27; asks for one", "The federated table;"),
        (["sum", "fisher"], 1, "fisher", "The federated table;"),
        ("table", 4, "The federated table;", "From the parallel quantiles"),
        ("parallel", 5, "From the parallel quantiles", "The federated table;"),
    ],
)
def test_a_result_draws_what_was_asked_and_asks_no_center(
    tmp_path: Path, method: str | list[str], charts: int, shown: str, absent: str
) -> None:
    fed = Federation.local(write_hospitals(tmp_path), variables=VARIABLES, seed=7)
    result = fed.compare("crp", by="arm", method=method)
    before = len(fed.releases)
    assert result.chart().to_dict()
    markup = result.report(tmp_path / "r.html").read_text()
    assert len(fed.releases) == before == len(result.record.releases)
    assert markup.count("<svg") == charts
    assert shown in markup
    assert absent not in markup


def test_several_groups_and_variables_report_without_asking_too(tmp_path: Path) -> None:
    fed = Federation.local(write_hospitals(tmp_path), seed=7)
    groups = ("control", "patient")
    for value, method in (("crp", "all"), (["crp", "age"], "all"), ("crp", "weighted")):
        result = fed.compare(value, by="arm", groups=groups, ordered=True, method=method)
        before = len(fed.releases)
        assert result.chart().to_dict()
        markup = result.report(tmp_path / "r.html").read_text()
        assert len(fed.releases) == before
        assert "jonckheere-terpstra" in markup
        for words in ("fisher", "The federated table;", "interpolation"):
            assert (words in markup) == (method == "all")


def test_a_comparisons_charts_show_every_center_in_its_own_colour(tmp_path: Path) -> None:
    files = write_hospitals(tmp_path)
    drawn = svg(Federation.local(files, seed=7).compare("crp", by="arm", method="all").chart())
    lines = re.findall(r'<path[^>]*center: (\w+);[^>]*"line mark"[^>]*>', drawn)
    coloured = set(re.findall(r'center: (\w+);[^>]*"line mark"[^>]*stroke="(#\w+)"', drawn))
    assert {center for center, _ in coloured} == set(lines) == set(files)
    assert len({colour for _, colour in coloured}) == len(coloured) == 5


def test_a_result_outlives_its_federation_which_cannot_be_asked(tmp_path: Path) -> None:
    with Federation.local(write_hospitals(tmp_path), seed=7) as fed:
        result = fed.compare("crp", by="arm")
    assert result.report(tmp_path / "r.html").exists()
    assert result.chart().to_dict()
    with pytest.raises(InputError, match="the federation is closed"):
        fed.table("crp")


def test_a_stored_result_is_the_same_and_says_what_it_lacks(tmp_path: Path) -> None:
    result = Federation.local(write_hospitals(tmp_path), seed=7).compare("crp", by="arm")
    stored = pickle.loads(pickle.dumps(result))
    assert stored.to_dict() == result.to_dict()
    assert "There is no table" in stored.report(tmp_path / "r.html").read_text()


def test_a_text_table_keeps_every_column_and_digit_however_wide_it_is() -> None:
    header = ["entry", *(f"group {i}" for i in range(40)), "left the center"]
    rows = [["1", *(f"{i}.123456789" for i in range(40)), "refused: " + "a long reason " * 30]]
    names, _, cells = columns_text(header, rows).split("\n")[1:4]
    assert re.split(r" {2,}", names.strip()) == header
    assert re.split(r" {2,}", cells.strip()) == [cell.strip() for cell in rows[0]]


def test_names_from_the_data_are_escaped(tmp_path: Path) -> None:
    import polars as pl

    rows = pl.DataFrame({"v": [float(i) for i in range(60)], "g": ["<b>x</b>", "y&z"] * 30})
    fed = Federation.local({"<i>A</i>": rows}, seed=1)
    result = fed.compare("v", by="g", method="all")
    markup = result.report(tmp_path / "r.html").read_text()
    assert "<b>x" not in markup
    assert "<i>A" not in markup
    assert "<b>x" not in result._repr_html_()


def test_a_report_says_the_answer_first_and_the_policy_last(tmp_path: Path) -> None:
    fed = Federation.local(write_hospitals(tmp_path), variables=VARIABLES, seed=7)
    result = fed.compare("crp", by="arm")
    markup = result.report(tmp_path / "r.html").read_text()
    order = ["crp is higher in patient", "<svg", "<table", "What to know", "What was asked"]
    order += ["Everything that left", "Versions", "Their policy"]
    places = [markup.index(words) for words in order]
    assert places == sorted(places)


def test_a_report_can_be_a_word_document(tmp_path: Path) -> None:
    import docx

    fed = Federation.local(write_hospitals(tmp_path), variables=VARIABLES, seed=7)
    result = fed.compare("crp", by="arm")
    whole = docx.Document(str(result.report(tmp_path / "r.docx")))
    texts = [paragraph.text for paragraph in whole.paragraphs]
    assert result.answer in texts
    assert [cell.text for cell in whole.tables[1].rows[0].cells][:3] == [
        "center",
        "control",
        "patient",
    ]
    assert len(whole.inline_shapes) == 1


def test_a_forest_plot_prints_numbers_sides_and_who_refused(tmp_path: Path) -> None:
    fed = Federation.local(write_hospitals(tmp_path), variables=VARIABLES, seed=7)
    result = fed.compare("crp", by="arm")
    drawn = svg(result.forest())
    effect = result.effect
    assert effect is not None
    printed = f"{effect.estimate:.2f} ({effect.low:.2f} to {effect.high:.2f})"
    why = next(refusal.rule for refusal in result.refusals if refusal.center == "Porto")
    for text in (printed, "1,368", "higher in patient →", "Porto", why):
        assert f">{text}<" in drawn, text


def test_a_density_is_curves_and_a_shared_value_a_bar_with_its_share(tmp_path: Path) -> None:
    values = [0.0] * 60 + [round(1 + i / 40, 2) for i in range(240)]
    frame = polars.DataFrame({"v": values, "center": ["A"] * 300})
    declared = {"v": Variable(lower=0, resolution=0.01, atoms=(0,))}
    fed = Federation.split(frame, center="center", variables=declared, seed=7)
    result = fed.table("v", method="parallel")
    assert isinstance(result, DistributionResult)
    drawn = result.chart()
    marks = [layer["mark"]["type"] for layer in drawn.to_dict()["layer"] if "mark" in layer]
    assert ">0: 20%<" in svg(drawn)
    assert "rect" not in marks
