"""Two effects that contradict each other: within centers, and of all people together."""

from dataclasses import dataclass

from unpooled.maths.ranks.effect import Interval
from unpooled.maths.ranks.simpson import is_clear, turned
from unpooled.results.report.text import number


@dataclass(frozen=True, slots=True)
class Paradox:
    """Both effects, the method of the second, and the centers that move it.

    `without` is the effect of everybody but those centers; None where no few centers stand out.
    """

    within: Interval
    pooled: Interval
    method: str
    centers: tuple[str, ...]
    without: float | None

    def sentence(self, x: str, y: str) -> str:
        """The contradiction in words.

        Examples
        --------
        >>> within, pooled = Interval(0.578, 0.54, 0.61), Interval(0.41, 0.38, 0.44)
        >>> print(Paradox(within, pooled, "parallel", ("Bern",), 0.57).sentence("A", "B"))
        Simpson's paradox: P(B > A) = 0.578 within centers, but 0.41 over all people together
        (parallel), since differences between centers turn the effect round. Bern moves it most;
        without this center it is 0.57. Rely on the effect within centers.
        """
        name = "Simpson's paradox: " if turned(self.within, self.pooled) else ""
        both = (
            f"{name}P({y} > {x}) = {number(self.within.estimate, 3)} within centers, but "
            f"{number(self.pooled.estimate, 3)} over all people together ({self.method}), "
            f"since differences between centers {self._what_they_do()}."
        )
        return f"{both} {self._who_moves_it()} Rely on the effect within centers."

    def _what_they_do(self) -> str:
        if turned(self.within, self.pooled):
            return "turn the effect round"
        return "hide the effect" if is_clear(self.within) else "look like an effect"

    def _who_moves_it(self) -> str:
        if self.without is None:
            return "No few centers stand out."
        *others, last = self.centers
        names = f"{', '.join(others)} and {last}" if others else last
        verb, these = ("move", "these centers") if others else ("moves", "this center")
        return f"{names} {verb} it most; without {these} it is {number(self.without, 3)}."
