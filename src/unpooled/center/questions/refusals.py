"""Why a center does not answer, in whole or for a group."""

from enum import StrEnum

from unpooled.center.questions.message import Message


class Reason(StrEnum):
    """Why a center does not answer, in whole or for a group."""

    TOO_SMALL = "too-small"
    ABSENT = "absent"
    ALL_MISSING = "all-missing"
    UNKNOWN_VARIABLE = "unknown-variable"
    NOT_NUMERIC = "not-numeric"
    NOT_FINITE = "not-finite"
    NOT_ALLOWED = "not-allowed"
    REPEATED_PERSON = "repeated-person"
    BAD_WHERE = "bad-where"
    FEW_VALUES = "few-values"
    UNCLEAR_EVENT = "unclear-event"
    NEGATIVE_TIME = "negative-time"
    WOULD_ISOLATE = "would-isolate"
    DATA_CHANGED = "data-changed"
    FEW_CELLS = "few-cells"
    HIDDEN_PEOPLE = "hidden-people"
    ONLY_GROUPINGS = "only-groupings"
    NO_AD_HOC = "no-ad-hoc"
    OTHER_CODES = "other-codes"
    BUDGET = "budget"
    OWN_VARIABLE = "own-variable"
    APART = "apart"
    NO_LIMITS = "no-limits"
    TOO_MANY_LEVELS = "too-many-levels"
    OUTSIDE_LIMITS = "outside-limits"
    OFF_RESOLUTION = "off-resolution"
    UNREADABLE_QUESTION = "unreadable-question"
    UNREADABLE_ANSWER = "unreadable-answer"
    WRONG_SIGNATURE = "wrong-signature"
    FAILED = "failed"
    JOINED = "joined"
    NOT_JOINT = "not-joint"
    ANSWERED_ALONE = "answered-alone"
    OTHER_JOINT = "other-joint"
    FEW_MEMBERS = "few-members"
    OTHER_KEEPERS = "other-keepers"
    SIDE_GROUPING = "side-grouping"
    KEEPER_LOST = "keeper-lost"
    INTERRUPTED = "interrupted"
    WRONG_SHARES = "wrong-shares"
    UNEVEN_SHARES = "uneven-shares"
    WRONG_RECEIPT = "wrong-receipt"
    NOT_CONNECTED = "not-connected"
    NO_ANSWER = "no-answer"
    WAITING_FOR_STEWARD = "waiting-for-steward"
    REFUSED_BY_STEWARD = "refused-by-steward"


MISSING = frozenset(  # the center as a whole is missing, whatever its people and its policy are
    {
        Reason.UNREADABLE_ANSWER,
        Reason.WRONG_SIGNATURE,
        Reason.DATA_CHANGED,
        Reason.FAILED,
        Reason.NOT_CONNECTED,
        Reason.NO_ANSWER,
        Reason.WAITING_FOR_STEWARD,
        Reason.REFUSED_BY_STEWARD,
    }
)

RULES: dict[Reason, str] = {
    Reason.TOO_SMALL: "fewer than {limit} people",
    Reason.ABSENT: "no people",
    Reason.ALL_MISSING: "no one has a value",
    Reason.UNKNOWN_VARIABLE: "the center has no such variable",
    Reason.NOT_NUMERIC: "the variable holds something other than numbers",
    Reason.NOT_FINITE: "the variable holds infinite values; code them as missing",
    Reason.NOT_ALLOWED: "the center's policy does not allow it",
    Reason.REPEATED_PERSON: (
        "more than one row per person; the policy can say per_person = mean, first or max"
    ),
    Reason.BAD_WHERE: "the condition does not fit the center's variables",
    Reason.FEW_VALUES: (
        "the groups take so few different values that the answer would reveal single people; "
        "ask for a table"
    ),
    Reason.UNCLEAR_EVENT: (
        "the event column is not coded 0/1, 1/2, true/false or yes/no throughout; event_is can say "
        "which value means the event"
    ),
    Reason.NEGATIVE_TIME: (
        "times must not be negative; count them from the start of each person's follow-up"
    ),
    Reason.WOULD_ISOLATE: (
        "together with earlier answers of this center it could reveal something about fewer than "
        "{limit} people; what it answered before it answers again, and a protocol, asked first, "
        "gets all of its groups"
    ),
    Reason.DATA_CHANGED: (
        "the center's data changed since its ledger began; its steward decides how to go on"
    ),
    Reason.FEW_CELLS: "too few cells to place people; declare limits for the variable",
    Reason.HIDDEN_PEOPLE: (
        "means of rare values are withheld, so that the table does not say where many people are; "
        "method='table' needs no means"
    ),
    Reason.ONLY_GROUPINGS: (
        "the center's policy allows groups and conditions over its declared groupings only"
    ),
    Reason.OTHER_CODES: (
        "which values mean 'missing' was settled by the first protocol that named the variable; "
        "ask with the same codes"
    ),
    Reason.NO_AD_HOC: "the center's policy answers no single questions, only protocols",
    Reason.BUDGET: "the center refused {limit} questions today; ask again tomorrow",
    Reason.OWN_VARIABLE: "no ranks are given for people who are chosen by the variable itself",
    Reason.APART: (
        "under this condition the groups hardly overlap, so their ranks would describe single "
        "people; ask for a table, or for ranks without the condition"
    ),
    Reason.TOO_MANY_LEVELS: (
        "more levels than a table has room for; the protocol can say which are meant (levels), or "
        "cut a number into bands (cuts)"
    ),
    Reason.NO_LIMITS: "no natural limits are declared for the variable",
    Reason.OUTSIDE_LIMITS: "values lie outside the limits that are declared for the variable",
    Reason.OFF_RESOLUTION: (
        "people have values between the multiples of the resolution that is declared for the "
        "variable"
    ),
    Reason.UNREADABLE_QUESTION: "the question could not be read",
    Reason.UNREADABLE_ANSWER: "the center's answer could not be read",
    Reason.WRONG_SIGNATURE: "what came does not have the signature of the center that it names",
    Reason.FAILED: "the center could not answer; its own log says why",
    Reason.JOINED: (
        "the center's people count in the joint center, so it gives no answer about them alone"
    ),
    Reason.NOT_JOINT: "by the center's policy its people do not count in this joint center",
    Reason.ANSWERED_ALONE: (
        "the center answered about its people alone before; together with that, the joint center "
        "could reveal something about the others"
    ),
    Reason.OTHER_JOINT: (
        "the center's people count in another joint release; two could reveal something about few"
    ),
    Reason.FEW_MEMBERS: "a joint center needs at least {limit} members",
    Reason.OTHER_KEEPERS: "these are not the three keepers that the center knows by their keys",
    Reason.SIDE_GROUPING: (
        "a joint center answers about groupings that are crossed with all others, not about side "
        "groupings"
    ),
    Reason.KEEPER_LOST: (
        "a keeper of the joint center did not come, or was lost; nothing was opened"
    ),
    Reason.INTERRUPTED: (
        "a keeper of the joint center was lost after it had begun; nothing was released. It can "
        "begin again with the same members"
    ),
    Reason.WRONG_SHARES: (
        "a member's shares cannot be read, or are out of range; nothing was opened"
    ),
    Reason.UNEVEN_SHARES: "the members' counts do not add up; nothing more was opened",
    Reason.WRONG_RECEIPT: "the keepers did not say this of a joint center with the center's people",
    Reason.NOT_CONNECTED: "the center is not connected to the coordinator",
    Reason.NO_ANSWER: "the center did not answer within {limit} seconds",
    Reason.WAITING_FOR_STEWARD: (
        "the center's steward did not decide within {limit} seconds; the answer waits there, and "
        "the same question can be asked again later"
    ),
    Reason.REFUSED_BY_STEWARD: "the center's steward refused it",
}


class Refusal(Message, frozen=True):
    """A center's typed no: a reason, the limit that applies, the name that the question used."""

    reason: Reason
    name: str | None = None  # the group or variable of the question that is meant
    limit: int | None = None

    @property
    def rule(self) -> str:
        """The rule in words; never anything from the data."""
        return RULES[self.reason].format(limit=self.limit)
