"""How tests run: the same examples every time, and on CI without a skip."""

import os
from collections.abc import Generator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# The same examples every time, however busy the machine; UNPOOLED_EXPLORE=1 looks for new ones.
settings.register_profile(
    "unpooled",
    derandomize=not os.environ.get("UNPOOLED_EXPLORE"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unpooled")


_ONE_NETWORK = {"test_approval.py": "test_faults.py", "test_postgres.py": "test_answers.py"}


@cache
def _makes_something_once(file: Path) -> bool:
    """Whether the tests of a file share what one of them makes."""
    return file.suffix == ".py" and 'scope="module"' in file.read_text("utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep tests that share a network, or what a module makes once, on one worker.

    xdist's own groups have no effect with pytest 9.2: it marks a test by its `_nodeid`, which
    pytest does not read any more.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByNetwork(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = PurePosixPath(nodeid.split("::")[0])
            if file.parent.name == "network":
                return _ONE_NETWORK.get(file.name, file.name)
            return str(file) if _makes_something_once(config.rootpath / file) else nodeid

    return ByNetwork(config, log)


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
