"""On CI no test may be skipped: there, everything that a test needs is installed."""

import os
from collections.abc import Generator
from typing import Any

import pytest


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
