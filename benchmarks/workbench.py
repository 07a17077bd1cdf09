"""How quick the workbench is: python -m benchmarks.workbench.

First page after the start of the command, cards from a book, 40 centers × 300 variables, and a book
of 200 MB; the last two in a Chromium too, where there is one. Times are those of this machine; the
load stands beside them.
"""

import hashlib
import http.client
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from urllib.parse import quote, urlsplit

import numpy as np
import polars
from tests.workbench.chromium import CHROMIUM, Tab, chromium

from unpooled import Federation
from unpooled.apps.demo import VARIABLES, write_hospitals
from unpooled.apps.workbench.foundation.server import Address
from unpooled.apps.workbench.researcher.cards.code import Opening
from unpooled.apps.workbench.researcher.cards.drawing import warm_up
from unpooled.apps.workbench.researcher.opening import make_server, source_of_book
from unpooled.apps.workbench.researcher.work import Source

PLAN = {
    "title": "CRP in sepsis",
    "groups": [
        {"name": "arm", "levels": ["control", "patient"]},
        {"name": "sex", "levels": ["F", "M"]},
    ],
    "variables": {"crp": {"unit": "mg/L"}, "age": {"resolution": 1}},
    "survival": [{"time": "months", "event": "died", "horizon": 60}],
}


class Reader:
    """Opens pages with a cookie."""

    def __init__(self, link: str) -> None:
        self.place = urlsplit(link)
        self.cookie = ""
        reply = self._send(f"{self.place.path}?{self.place.query}")
        self.cookie = (reply.getheader("set-cookie") or "").split(";")[0]

    def _send(self, path: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(self.place.netloc, timeout=120)
        connection.request("GET", path, headers={"Cookie": self.cookie})
        return connection.getresponse()

    def open(self, path: str) -> tuple[float, int]:
        """Seconds, and bytes."""
        start = perf_counter()
        reply = self._send(path)
        body = reply.read()
        assert reply.status == 200, (reply.status, path)
        return perf_counter() - start, len(body)


def first_page(files: list[Path]) -> float:
    """From the start of the command to the first page, on five files."""
    start = perf_counter()
    command = [sys.executable, "-m", "unpooled", "workbench", "--no-browser", "--centers"]
    process = subprocess.Popen(
        [*command, *map(str, files)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        link = process.stdout.readline().split("open: ")[1].strip()
        served = perf_counter()
        Reader(link).open("/")
        print(f"  {served - start:.2f} s until it serves (Python's own start included)")
        return perf_counter() - served
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def cards(files: dict[str, Path], folder: Path) -> None:
    """Each card once, none from what was kept."""
    with Federation.local(files, variables=VARIABLES, seed=1) as fed:
        path = fed.run(PLAN).save(folder / "study.book")
    warm_up()
    source = source_of_book(path)
    with make_server(source, Address()) as server:
        reader = Reader(server.link("reader"))
        asked = {
            "describe": ["variable=crp&by=arm", "variable=age&by=sex", "variable=age&by=arm"],
            "compare": ["variable=crp&by=arm", "variable=age&by=sex", "variable=crp&by=sex"],
            "quantiles": ["variable=crp&by=arm", "variable=age&by=sex", "variable=crp&by=sex"],
            "table": ["variable=crp&by=arm", "variable=age&by=sex", "variable=crp&by=sex"],
            "survival": ["time=months&by=arm", "time=months&by=sex", "time=months"],
            "crosstab": ["variable=sex&by=arm", "variable=arm&by=sex", "variable=sex&by=arm&p="],
        }
        for name, queries in asked.items():
            times, busy = [], []
            for query in queries:
                before = process_time()
                times.append(reader.open(f"/book/{name}?{query}")[0])
                busy.append(process_time() - before)
            again = reader.open(f"/book/{name}?{queries[0]}")[0]
            shown = ", ".join(f"{1000 * t:.0f}" for t in times)
            verdict = "" if median(times) <= 0.15 else "  MISSED"
            cpu = f"processor's time: {1000 * median(busy):.0f} ms, again: {1000 * again:.0f} ms"
            print(f"  {name:10} {shown} ms ({cpu}){verdict}", flush=True)
    source.close()


def many() -> None:
    """40 centers, 300 variables; three centers lack a third of them."""
    random = np.random.default_rng(1)
    frames = {}
    for i in range(40):
        names = [f"variable_{v:03d}" for v in range(300) if not (i > 36 and v % 3 == 0)]
        rows = random.normal(size=(40, len(names))).round(2)
        frames[f"center {i:02d}"] = polars.DataFrame(rows, schema=names)
    start = perf_counter()
    source = Source("many", Opening.of_federation("f.toml"), Federation.local(frames, seed=1))
    source.catalogue()
    print(f"  {perf_counter() - start:.1f} s to open 40 centers", flush=True)
    with make_server(source, Address()) as server:
        reader = Reader(server.link("reader"))
        ticked = "&".join(f"variable={quote(f'variable_{v:03d}')}" for v in range(60))
        for path in ("/", "/ask/compare", "/protocol", f"/protocol?title=x&{ticked}"):
            seconds, size = reader.open(path)
            verdict = "" if seconds <= 1 and size <= 500_000 else "  MISSED"
            print(f"  {path[:24]:24} {seconds:.2f} s, {size / 1000:.0f} kB{verdict}")
        if CHROMIUM is not None:
            many_in_chromium(server.link("person"), server.url, ticked)
    source.close()


def many_in_chromium(link: str, url: str, ticked: str) -> None:
    """As a person meets it: open, search, and tick one variable more."""
    with chromium() as browser:
        page = Tab(browser, viewport={"width": 1400, "height": 900}).page
        page.goto(link)
        print_time("chromium: the catalogue", lambda: page.goto(f"{url}/"))
        print_time("chromium: a search", lambda: page.fill("#search", "variable_299"))
        assert page.locator("#variables tbody tr:visible").count() == 1
        print_time("chromium: the protocol", lambda: page.goto(f"{url}/protocol?title=x&{ticked}"))

        def tick() -> None:
            page.check("#variables label:has-text('variable_299')")
            page.wait_for_selector("#look .words bdi:text-is('variable_299')")

        print_time("chromium: one more tick", tick)


def print_time(name: str, act: Callable[[], object]) -> None:
    """How long something took."""
    start = perf_counter()
    act()
    seconds = perf_counter() - start
    print(f"  {name:24} {seconds:.2f} s{'' if seconds <= 1 else '  MISSED'}", flush=True)


def large_book(folder: Path) -> None:
    """A book of 200 MB: the answer of one center is padded, as JSON allows."""
    body = (folder / "study.book").read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[0]
    text = body.decode()
    at = text.index('"payload":"') + len('"payload":"')
    padded = text[:at] + " " * 200_000_000 + text[at:]
    first = text[at:].split('"}')[0].encode().decode("unicode_escape")
    old = hashlib.sha256(first.encode()).hexdigest()
    new = hashlib.sha256(b" " * 200_000_000 + first.encode()).hexdigest()
    assert old in padded
    whole = padded.replace(old, new, 1).encode()
    large = folder / "large.book"
    large.write_bytes(whole + b"\n" + hashlib.sha256(whole).hexdigest().encode() + b"\n")
    start = perf_counter()
    source = source_of_book(large)
    print(f"  opened in {perf_counter() - start:.1f} s")
    with make_server(source, Address()) as server:
        reader = Reader(server.link("reader"))
        seconds, size = reader.open("/book/compare?variable=crp&by=arm")
        print(f"  a card: {seconds:.2f} s, {size / 1000:.0f} kB")
        if CHROMIUM is not None:
            with chromium() as browser:
                page = Tab(browser).page
                page.goto(server.link("person"))
                print_time(
                    "chromium: another card", lambda: page.goto(f"{server.url}/book/survival")
                )
                assert page.locator("#card .answer").count() == 1
    source.close()


def main(only: Sequence[str]) -> None:
    """All of it, or the parts that are named: first, cards, many, large."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with TemporaryDirectory() as name:
        folder = Path(name)
        files = write_hospitals(folder / "hospitals")
        if not only or "first" in only:
            print("first page on five files (target: 1 s)")
            print(f"  {first_page(list(files.values())):.2f} s from then to the first page")
        if not only or {"cards", "large"} & set(only):
            print("a card from a book (target: 150 ms)")
            cards(files, folder)
        if not only or "many" in only:
            print("40 centers × 300 variables (target: 1 s, 500 kB)")
            many()
        if not only or "large" in only:
            print("a book of 200 MB")
            large_book(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
