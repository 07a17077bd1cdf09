"""What every result can do: show itself as text, as HTML, and as a data frame."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from unpooled.results.data_frame import data_frame
from unpooled.results.record import Record
from unpooled.results.refusals import CenterRefusal, refusal_remark
from unpooled.results.report.html import Html
from unpooled.results.report.page import Figure
from unpooled.results.report.parts import Part, Remarks, Sentences, parts_html, parts_text

_AT_PROMPT = 12  # rows of a table at >>>: print() shows all


class Result(ABC):
    """A result prints itself, has a data frame, and never asks a center."""

    __slots__ = ()

    @property
    @abstractmethod
    def title(self) -> str:
        """What was asked."""

    if TYPE_CHECKING:  # fields of most results, which a property here would give a default

        @property
        def refusals(self) -> tuple[CenterRefusal, ...]: ...

        @property
        def record(self) -> Record: ...

    @abstractmethod
    def parts(self) -> list[Part]:
        """What the result shows, but for its title, whom centers count, and refusals."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """The rows of `to_frame`."""

    @property
    def answer(self) -> str:
        """The answer in one sentence."""
        texts = (s for part in self.parts() if isinstance(part, Sentences) for s in part.sentences)
        return next(texts, f"{self.title}.")

    def picture(self) -> Figure | None:
        """The one picture that goes with the answer; None where there is nothing to draw."""
        return None

    def to_frame(self) -> Any:
        """The main numbers as a polars data frame; as a pandas one where polars is missing."""
        return data_frame(self.records())

    def __str__(self) -> str:
        return parts_text(self.title, self._everything())

    def __repr__(self) -> str:
        return parts_text(self.title, self._everything(), most=_AT_PROMPT)

    def _repr_html_(self) -> str:
        return str(parts_html(self._everything(), Html().heading(self.title)))

    def _everything(self) -> list[Part]:
        refused = Remarks("Refused", [refusal_remark(r) for r in self.refusals])
        return [*self.parts(), Remarks.notes(self.record.notes), refused]
