"""What every result is: a title and parts, shown as text, HTML, JSON, a frame and a report."""

import warnings
from abc import ABC, abstractmethod
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unpooled.results.data_frame import data_frame
from unpooled.results.provenance.record import Record
from unpooled.results.provenance.refusals import CenterRefusal, refusal_remark
from unpooled.results.report.page import Figure, Section, svg
from unpooled.results.report.parts import Answer, Part, Remarks, Sentences, parts_html, parts_text
from unpooled.results.report.reporting import Chapter, write_report

if TYPE_CHECKING:
    import altair

_AT_PROMPT = 12  # rows of a table at >>>: print() shows all


class Result(ABC):
    """A result says what it shows; how that looks is said here. It never asks a center."""

    __slots__ = ()

    if TYPE_CHECKING:  # fields of most results, which a property here would give a default

        @property
        def refusals(self) -> tuple[CenterRefusal, ...]: ...

        @property
        def record(self) -> Record: ...

    @property
    @abstractmethod
    def title(self) -> str:
        """What was asked."""

    @abstractmethod
    def parts(self) -> list[Part]:
        """What the result shows, but for its title, notes of the record, and refusals."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """The rows of `to_frame`."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The result as plain values, as `--json` prints it."""

    @abstractmethod
    def chart(self) -> "altair.TopLevelMixin":
        """The result as a picture."""

    @property
    def answer(self) -> str:
        """The answer in one sentence."""
        texts = (s for part in self.parts() if isinstance(part, Sentences) for s in part.sentences)
        return next(texts, f"{self.title}.")

    def picture(self) -> Figure | None:
        """The one picture that goes with the answer; None where there is nothing to draw."""
        return None

    def sections(self) -> list[Section]:
        """What a report shows: the same parts with the picture; some results have more detail."""
        picture = self.picture()
        return [Section("Result", self.parts(), [] if picture is None else [picture])]

    def to_frame(self) -> Any:
        """The main numbers as a polars data frame; as a pandas one where polars is missing."""
        return data_frame(self.records())

    def report(self, path: str | Path) -> Path:
        """Write a report to one file, .html or .docx; it has what was asked for."""
        return write_report(path, self.title, [self.chapter()])

    def chapter(self) -> Chapter:
        """What a report says of it."""
        return Chapter(self.title, self.answer, self.sections(), self.record, self.refusals)

    def all_parts(self) -> list[Part]:
        """What the result shows: its parts, notes, and what was refused."""
        refused = Remarks("Refused", [refusal_remark(r) for r in self.refusals])
        return [*self.parts(), Remarks.notes(self.record.notes), refused]

    @property
    def value(self) -> str:
        """The old name of `variable`."""
        warnings.warn("result.value is now result.variable", DeprecationWarning, stacklevel=2)
        variable: str = getattr(self, "variable")  # noqa: B009  # not every result has one
        return variable

    def __str__(self) -> str:
        return parts_text(self.title, self.all_parts())

    def __repr__(self) -> str:
        return parts_text(self.title, self.all_parts(), most=_AT_PROMPT)

    def _repr_html_(self) -> str:
        picture = self.picture()
        drawn = "" if picture is None else svg(picture.chart)
        answer = parts_html([Answer(self.answer)])
        return f"<h3>{escape(self.title)}</h3>{answer}{drawn}{parts_html(self.all_parts())}"


def subject(variable: str, by: str | None, where: str | None) -> str:
    """What a result is about, as its title begins.

    Examples
    --------
    >>> subject("crp", "arm", "age > 65")
    'crp by arm, where age > 65'
    """
    grouped = f" by {by}" if by is not None else ""
    return f"{variable}{grouped}{f', where {where}' if where is not None else ''}"
