"""A real Chromium whose network ends at loopback."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

CHROMIUM = shutil.which("chromium")
PATIENCE = 120_000  # milliseconds: more than anything takes on a busy machine
OURS = ("127.0.0.1", "localhost")
NOWHERE = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; a test that needs one is skipped where there is none, and fails on CI."""
    if CHROMIUM is None:
        pytest.skip("needs chromium: apt-get install chromium")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*arguments, f"--host-resolver-rules={NOWHERE}"]
        )
        try:
            yield browser
        finally:
            browser.close()


def barriers(page: Any) -> list[str]:
    """What axe-core finds on a page that is serious or worse."""
    from importlib.resources import files

    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    result = page.evaluate("axe.run()")["violations"]
    return [
        f"{v['id']}: {v['help']}: {v['nodes'][0]['html']}"
        for v in result
        if v["impact"] in ("serious", "critical")
    ]


class Tab:
    """A tab, and what went wrong in it: requests that left this machine, errors in the console."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.left: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", self._look)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console",
            lambda line: self.errors.append(line.text) if line.type == "error" else None,
        )

    def _look(self, request: Any) -> None:
        place = urlsplit(request.url)
        if place.scheme in ("http", "https") and place.hostname not in OURS:
            self.left.append(request.url)

    @property
    def sound(self) -> bool:
        """Whether nothing went wrong."""
        assert not self.left, self.left
        assert not self.errors, self.errors
        return True
