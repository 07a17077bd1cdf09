"""Statistics across hospitals without pooling the data.

Every number that leaves a hospital describes at least K of its patients.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unpooled.analyses.protocols.book import Book
    from unpooled.analyses.protocols.protocol import read_protocol
    from unpooled.center.data.variables import Variable, read_codebook
    from unpooled.center.policy import Policy
    from unpooled.center.questions import Protocol
    from unpooled.federation import Federation

__version__ = "0.1.0"
__all__ = ["Book", "Federation", "Policy", "Protocol", "Variable", "read_codebook", "read_protocol"]

_HOMES = {
    "Book": "unpooled.analyses.protocols.book",
    "Federation": "unpooled.federation",
    "Policy": "unpooled.center.policy",
    "Protocol": "unpooled.center.questions",
    "Variable": "unpooled.center.data.variables",
    "read_codebook": "unpooled.center.data.variables",
    "read_protocol": "unpooled.analyses.protocols.protocol",
}


def __getattr__(name: str) -> Any:
    """Load on first use (PEP 562), so that `unpooled --help` does not wait for NumPy."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'unpooled' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
