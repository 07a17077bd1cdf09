"""Which variables are there? It tells of nobody."""

from unpooled.analyses.conversation import Conversation
from unpooled.center.data.variables import Codebook, Variable
from unpooled.center.questions import Catalogue, CatalogueQuestion
from unpooled.results.catalogue import CatalogueResult, CatalogueRow, sort_rows
from unpooled.results.provenance.refusals import center_refusals


def run_catalogue(
    conversation: Conversation, declared: Codebook, *, wait: bool = True
) -> CatalogueResult:
    """Ask every center for its variables, and put them side by side."""
    round_ = conversation.ask(
        CatalogueQuestion(), Catalogue, whoever_answers=not wait, stewards=wait
    )
    kinds: dict[str, dict[str, str]] = {}
    for center, catalogue in round_.aggregates.items():
        for variable in catalogue.variables:
            kinds.setdefault(variable.name, {})[center] = variable.kind
    rows = []
    for name, at in kinds.items():
        public = declared.get(name, Variable())
        lacking = tuple(center for center in round_.aggregates if center not in at)
        rows.append(CatalogueRow(name, at, lacking, public.unit, public.lower, public.upper))
    answered = tuple(round_.aggregates)
    return CatalogueResult(answered, sort_rows(rows), center_refusals(round_.refusals))
