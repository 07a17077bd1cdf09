"""The cases of golden.json, by kind."""

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def cases(kind: str) -> tuple[dict[str, Any], ...]:
    """All cases of a kind."""
    everything = json.loads((Path(__file__).parent / "golden.json").read_text())
    result = tuple(case for case in everything["cases"] if case["kind"] == kind)
    assert result, f"no golden case of kind {kind}"
    return result
