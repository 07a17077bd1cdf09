"""Rules taken out, one by one: what an attack succeeds without."""

import pytest

from unpooled.center.proposal import summarise
from unpooled.center.questions import moments, powers, ranks
from unpooled.center.rule.disclosure import Told


def anything_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on every disclosure may stand beside all others."""
    monkeypatch.setattr(Told, "tell", lambda before, *_, **__: before)


def exact_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on means, SDs, ranks and moments at many λ are told to their last digit."""
    for name in ("round_mean_sd", "round_ranks"):
        monkeypatch.setattr(summarise, name, lambda exact: exact)
    monkeypatch.setattr(summarise, "round_moments", lambda exact, _: exact)
    monkeypatch.setattr(powers, "are_moments_rounded", lambda *_: True)
    monkeypatch.setattr(summarise, "round_variance", lambda variance, _: variance)
    monkeypatch.setattr(moments, "is_mean_sd_rounded", lambda *_: True)
    for name in ("are_ranks_rounded", "is_variance_rounded"):
        monkeypatch.setattr(ranks, name, lambda *_: True)
