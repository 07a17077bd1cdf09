"""How tests run: the same examples every time, and on CI without a skip."""

import os
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

# The same examples in every run; UNPOOLED_EXPLORE=1 looks for new ones.
settings.register_profile("unpooled", derandomize=not os.environ.get("UNPOOLED_EXPLORE"))
settings.load_profile("unpooled")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where UNPOOLED_NO_SKIPS is set."""
    report = yield
    if report.skipped and os.environ.get("UNPOOLED_NO_SKIPS"):
        report.outcome = "failed"
        report.longrepr = f"skipped on CI: {report.longrepr}"
    return report
