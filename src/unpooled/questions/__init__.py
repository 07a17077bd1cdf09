"""What crosses between coordinator and centers: questions one way, answers the other.

Both are JSON, so that a steward can read the very bytes that leave. One file per question: the
question, its answer, and what the answer tells of whom.
"""

from unpooled.questions.answers import (
    ANSWERS,
    AboutPeople,
    Answer,
    Question,
    decode_answer,
    decode_question,
    encode,
)
from unpooled.questions.catalogue import Catalogue, CatalogueQuestion, Named
from unpooled.questions.chain import (
    CenterJoin,
    CenterTable,
    GroupCounts,
    GroupPools,
    JoinQuestion,
    TableQuestion,
)
from unpooled.questions.lattice import CellTable, GroupTable, LatticeQuestion, LatticeTables
from unpooled.questions.message import (
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
from unpooled.questions.moments import FollowUpQuestion, GroupMoments, Moments, MomentsQuestion
from unpooled.questions.powers import GroupPowers, Powers, PowersQuestion
from unpooled.questions.ranks import (
    GroupRanks,
    GroupRanksQuestion,
    PairRanks,
    RankedGroup,
    Ranks,
    RanksQuestion,
)
from unpooled.questions.refusals import MISSING, RULES, Reason, Refusal
from unpooled.questions.sizes import Size, Sizes, SizesQuestion
from unpooled.questions.survival import GroupStatuses, SurvivalQuestion, SurvivalTables

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
