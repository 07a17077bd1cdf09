"""A real Chromium whose network ends at loopback."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
NOWHERE = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; skipped by name where there is none."""
    if CHROMIUM is None:
        pytest.skip("needs chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*arguments, f"--host-resolver-rules={NOWHERE}"]
        )
        yield browser
        browser.close()
