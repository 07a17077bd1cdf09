"""What crosses between coordinator and centers: questions one way, answers the other.

Both are JSON, so that a steward can read the very bytes that leave. One file per question: the
question, its answer, and what the answer tells of whom.
"""

from unpooled.center.questions.answers import (
    ANSWERS,
    AboutPeople,
    Answer,
    Question,
    decode_answer,
    decode_question,
    encode,
)
from unpooled.center.questions.catalogue import Catalogue, CatalogueQuestion, Named
from unpooled.center.questions.chain import (
    CenterJoin,
    CenterTable,
    GroupCounts,
    GroupPools,
    JoinQuestion,
    TableQuestion,
)
from unpooled.center.questions.lattice import CellTable, GroupTable, LatticeQuestion, LatticeTables
from unpooled.center.questions.message import (
    EVERYBODY,
    Aggregate,
    CellMoments,
    CohortQuestion,
    Disclosure,
    Limits,
    Message,
    OutcomeQuestion,
    People,
    Terms,
    bands,
)
from unpooled.center.questions.moments import (
    FollowUpQuestion,
    GroupMoments,
    Moments,
    MomentsQuestion,
)
from unpooled.center.questions.powers import GroupPowers, Powers, PowersQuestion
from unpooled.center.questions.ranks import (
    GroupRanks,
    GroupRanksQuestion,
    PairRanks,
    RankedGroup,
    Ranks,
    RanksQuestion,
)
from unpooled.center.questions.refusals import MISSING, RULES, Reason, Refusal
from unpooled.center.questions.sizes import Size, Sizes, SizesQuestion
from unpooled.center.questions.survival import GroupStatuses, SurvivalQuestion, SurvivalTables

__all__ = [
    "ANSWERS",
    "EVERYBODY",
    "MISSING",
    "RULES",
    "AboutPeople",
    "Aggregate",
    "Answer",
    "Catalogue",
    "CatalogueQuestion",
    "CellMoments",
    "CellTable",
    "CenterJoin",
    "CenterTable",
    "CohortQuestion",
    "Disclosure",
    "FollowUpQuestion",
    "GroupCounts",
    "GroupMoments",
    "GroupPools",
    "GroupPowers",
    "GroupRanks",
    "GroupRanksQuestion",
    "GroupStatuses",
    "GroupTable",
    "JoinQuestion",
    "LatticeQuestion",
    "LatticeTables",
    "Limits",
    "Message",
    "Moments",
    "MomentsQuestion",
    "Named",
    "OutcomeQuestion",
    "PairRanks",
    "People",
    "Powers",
    "PowersQuestion",
    "Question",
    "RankedGroup",
    "Ranks",
    "RanksQuestion",
    "Reason",
    "Refusal",
    "Size",
    "Sizes",
    "SizesQuestion",
    "SurvivalQuestion",
    "SurvivalTables",
    "TableQuestion",
    "Terms",
    "bands",
    "decode_answer",
    "decode_question",
    "encode",
]
