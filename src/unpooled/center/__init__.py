"""All that runs next to a hospital's rows. Nothing leaves but a `Release`, made by the gate."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unpooled.center.center import Center

__all__ = ["Center"]


def __getattr__(name: str) -> object:
    if name == "Center":  # loaded when first needed: a policy alone should cost little
        from unpooled.center.center import Center

        return Center
    raise AttributeError(name)
