"""What the analyst holds, and how questions reach centers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unpooled.federation.federation import Federation

__all__ = ["Federation"]


def __getattr__(name: str) -> object:
    if name == "Federation":  # loaded when first needed
        from unpooled.federation.federation import Federation

        return Federation
    raise AttributeError(name)
