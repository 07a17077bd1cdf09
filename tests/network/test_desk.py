"""Between the engine and the center: questions go in, and only what the gate let out comes out."""

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.network.networks import hospital
from unpooled.center import Center
from unpooled.center.approval.steward import Decision, Steward, decide, pending
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.questions import SizesQuestion, encode
from unpooled.center.records.keys import CenterKey
from unpooled.errors import LedgerError
from unpooled.federation.network.desk import DESK, HELD, Desk, ask_center, until_tick, was_released

QUESTION = encode(SizesQuestion(variable="los", by="arm"))


@pytest.fixture
def center(monkeypatch: pytest.MonkeyPatch) -> Iterator[Center]:
    source = open_source(hospital(1, 30, 30))
    center = Center("Haifa", source, Policy(ad_hoc="free"), CenterKey.from_seed(1, "Haifa"))
    desk = Desk(center)
    monkeypatch.setenv(DESK, desk.address)
    yield center
    desk.close()


def ask(ticket: str | None = None) -> bytes | str | None:
    return ask_center(QUESTION, ticket, lambda: False)


def test_the_very_bytes_of_a_release_come_out(center: Center) -> None:
    payload = ask()
    assert isinstance(payload, bytes)
    assert payload == center.answer(QUESTION).payload
    assert was_released(payload)
    assert not was_released(payload + b" ")


def test_only_the_owner_can_open_the_desk(center: Center) -> None:
    address = os.environ[DESK]
    assert stat.S_IMODE(os.stat(address).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(address)).st_mode) == 0o700


def test_nothing_comes_out_when_nothing_may_leave(
    center: Center, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(question: bytes, ticket: str | None = None, asker: str | None = None) -> Any:
        raise LedgerError("no space left")

    monkeypatch.setattr(center, "answer", full)
    assert ask() is None
    monkeypatch.delenv(DESK)
    assert ask() is None


def test_the_result_filter_passes_releases_and_nothing_beside_them(center: Center) -> None:
    pytest.importorskip("nvflare", reason="nvflare is not installed")
    from nvflare.apis.fl_constant import ReturnCode
    from nvflare.apis.shareable import Shareable

    from unpooled.federation.network.engine.result_filter import OnlyReleases

    def filtered(**content: object) -> Any:
        result = Shareable()
        result.update(content)
        return OnlyReleases().process(result, None)

    payload = ask()
    passed = filtered(release=payload, rows=[1.5, 2.5])
    assert passed["release"] == payload
    assert "rows" not in passed
    waiting = filtered(held=HELD, rows=[1.5], release=b"row 1.5")
    assert waiting["held"] == HELD
    assert "rows" not in waiting
    assert "release" not in waiting
    for content in ({"release": b"row 1.5"}, {"release": "text"}, {"rows": [1.5]}):
        stopped = filtered(**content)
        assert stopped.get_return_code() == ReturnCode.EXECUTION_RESULT_ERROR
        assert "release" not in stopped
        assert "rows" not in stopped


@given(
    elapsed=st.floats(0, 1000, allow_nan=False),
    tick=st.floats(0.01, 60, allow_nan=False),
)
def test_whenever_an_answer_is_ready_it_leaves_at_a_multiple_of_the_tick(
    elapsed: float, tick: float
) -> None:
    left = until_tick(elapsed, tick)
    ticks = (elapsed + left) / tick
    assert 0 <= left <= tick
    assert ticks == pytest.approx(round(ticks), abs=1e-6)
    assert ticks >= 1 - 1e-9


def test_on_a_clock_of_its_own_an_answer_leaves_on_the_tick(
    center: Center, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock goes on by what an answer takes, and by what the desk waits."""
    now, left = [1000.0], list[float]()
    answer = center.answer

    def sleep(seconds: float) -> None:
        now[0] += seconds
        left.append(now[0])

    def working(seconds: float) -> Any:
        def work(payload: bytes, ticket: str | None = None, asker: str | None = None) -> Any:
            now[0] += seconds
            return answer(payload, ticket)

        return work

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr("unpooled.federation.network.desk.time", clock)
    for seconds in (0.001, 0.249, 0.251, 0.6):
        came = now[0]
        monkeypatch.setattr(center, "answer", working(seconds))
        assert isinstance(ask(), bytes)
        assert (left[-1] - came) / 0.25 == pytest.approx(1 + seconds // 0.25)
    assert len(left) == 4


def test_quick_and_slow_answers_and_failures_take_whole_ticks(
    center: Center, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = center.answer

    def taken(seconds: float, *, fails: bool = False) -> float:
        def work(payload: bytes, ticket: str | None = None, asker: str | None = None) -> Any:
            time.sleep(seconds)
            if fails:
                raise LedgerError("no space left")
            return answer(payload, ticket)

        monkeypatch.setattr(center, "answer", work)
        begin = time.monotonic()
        assert (ask() is None) == fails
        return time.monotonic() - begin

    for seconds, ticks, fails in (
        (0.0, 1, False),
        (0.1, 1, False),
        (0.3, 2, False),
        (0.1, 1, True),
    ):
        least = min(taken(seconds, fails=fails) for _ in range(3))  # others use this computer too
        assert ticks * 0.25 <= least < (ticks + 0.5) * 0.25


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of what waits for the steward of a center that asks him."""
    folder = tmp_path / "Haifa.pending"
    key, steward = CenterKey.from_seed(1, "Haifa"), Steward(folder)
    source = open_source(hospital(1, 30, 30))
    center = Center("Haifa", source, Policy(ad_hoc="free"), key, steward=steward)
    desk = Desk(center, steward)
    monkeypatch.setenv(DESK, desk.address)
    yield folder
    desk.close()


@pytest.mark.parametrize("decision", ["approved", "refused"])
def test_word_of_waiting_comes_out_until_the_steward_has_decided(
    asking: Path, decision: Decision
) -> None:
    ticket = "a" * 32
    for _ in range(3):
        begin = time.monotonic()
        assert ask(ticket) == HELD
        assert time.monotonic() - begin >= 0.25
    (held,) = pending(asking)
    decide(asking, held, decision)
    if decision == "refused":
        time.sleep(1.5)  # the desk records it by itself in the meantime
    payload = ask(ticket)
    assert isinstance(payload, bytes)
    assert (payload.decode() == held.answer) == (decision == "approved")
    assert (b"refused-by-steward" in payload) == (decision == "refused")
    assert pending(asking) == []
