"""All texts of the workbench's pages, in one place, so that they can be translated."""

LANGUAGE, DIRECTION = "en", "ltr"
NAME = "workbench"
CATALOGUE = "Catalogue"
ASK = "Ask"
REPORT = "Report"
LEFT = "What left"

ARGUMENTS = {
    "variable": "Variable",
    "by": "By group",
    "groups": "Groups, in this order",
    "cuts": "Cut the grouping number at",
    "where": "Only people with",
    "strata": "Compared within",
    "method": "Method",
    "max_bins": "Most bins",
    "limits": "Outer limits",
    "ordered": "Groups rise (test for a trend)",
    "alternative": "Alternative",
    "p": "Quantiles",
    "time": "Time",
    "event": "Event",
    "event_is": "Value that means the event",
    "horizon": "Horizon",
    "covariates": "Adjusted for",
    "levels": "Levels, in this order",
    "at": "Survival at these times",
}
ANALYSES = {
    "table": "Distribution",
    "describe": "Means",
    "compare": "Comparison",
    "quantiles": "Quantiles",
    "survival": "Survival",
    "table1": "Table 1",
    "crosstab": "Crosstab",
    "scatter": "Two variables",
    "correlate": "Correlations",
    "model": "Model",
}
KINDS = {
    "integer": "whole number",
    "float": "number",
    "boolean": "yes or no",
}  # others: as they are

CATALOGUE_LEAD = (
    "The variables that the centers let you ask for. A grey one is missing at some center, is not "
    "allowed there, or has another kind under the same name."
)
SEARCH = "Search"
VARIABLE = "Variable"
KIND = "Kind"
UNIT = "Unit and limits"
FROM, UP_TO, BETWEEN = "from {}", "up to {}", "{} to {}"
HISTOGRAM = "As you saw it"
CENTERS = "Centers"
NOT_AT = "not at"
NO_VARIABLES = "No center lets a variable be asked for."
NOTHING_FOUND = "No variable matches these words."
NOT_ANSWERED = "These centers have not said which variables they have"

ASK_LEAD = "Each question goes to all centers at once, and each center decides what it answers."
ASK_BUTTON = "Ask the centers"
EARLIER = "Asked so far"
NOTHING_ASKED = "Nothing was asked yet."
CHOOSE = "choose"
NOBODY_GROUPED = "no groups"
NOT_NAMED = "not named"
MORE_VARIABLES = "More of these"
OPTIONS = "More options"
NUMBERS_HINT = "numbers, between spaces or commas"
NAMES_HINT = "between commas; a name that has a comma goes in quotes"

ASKING = "The centers are asked"
ASKING_MORE = "You can leave this page and come back. What the centers answered is kept."
RELOAD = "Reload this page to see whether they have answered."
FAILED = "No result"
AGAIN = "Change the question"
TABLES = "Tables"
METHOD = "Method and notes"
SAME = "The same in Python and on the command line"
PYTHON = "Python"
COMMAND_LINE = "Command line"
COPY = "Copy"
PIN = "Pin to the report"
UNPIN = "Take out of the report"
SAVE_AS = "Save as"

REPORT_LEAD = "The cards that you pinned, in this order. Nothing is asked again."
NOTHING_PINNED = "No card is pinned yet. Ask a question, then pin its card."
UP = "Up"
DOWN = "Down"

LEFT_LEAD = (
    "Everything that left the centers for you, in the order in which it arrived. Each center keeps "
    "the same in its ledger."
)
NOTHING_LEFT = "Nothing has left a center for you."
BYTES = "the very bytes"
CENTER = "Center"
ASKED = "Asked"
LEFT_CENTER = "Left the center"
SIZE = "Bytes"
WRONG_INPUT = "This cannot be asked"
NO_SUCH_PAGE = "There is no such page."
NO_SUCH_CARD = "There is no such card. Cards are kept while the program runs."
FIRST_PAGE = "To the first page"
OF = "of"

PROGRAMS = "For programs"
PROGRAMS_LEAD = (
    "Programs in R, Julia or any other language ask the same questions over HTTP. The routes are "
    "described by OpenAPI."
)
OPENAPI = "The description (OpenAPI)"
MAKE_KEY = "Make a key"
KEY_LEAD = (
    "A program sends its key as a header. A key ends after twelve hours, or with the program."
)
KEY_ONCE = "Your key. It is shown this once"
EXAMPLE = "An example"
FILES = {"docx": "Word", "html": "HTML", "csv": "CSV", "svg": "SVG", "png": "PNG"}

PROTOCOL = "Protocol"
STUDY = "Study"
PROTOCOL_LEAD = (
    "A study asks once. Say which people are compared and which variables are looked at; each "
    "center answers all of it together, and its steward decides once."
)
TITLE = "Title"
PURPOSE = "Purpose, as the stewards read it"
SMALLEST = "The least number of people that a number describes (K)"
GROUPINGS = "Groupings, the most important first"
GROUPINGS_HINT = (
    "People who are alike in all groupings are a block. Where a block has too few people, the last "
    "groupings are given up first. Drag a row, or move it by Alt and an arrow key."
)
GROUP_BY = "Group by"
LEVELS = "Levels"
CUTS = "or cut at"
ONLY_WITH = "Crossed only with"
WITH_ALL = "all others"
PLACE = "Place"
ADD_GROUPING = "another grouping"
VARIABLES = "Variables"
OUTCOMES = "Survival"
TIME = "Time"
EVENT = "Event"
HORIZON = "Followed up to"
EVENT_IS = "Value that means the event"
KIND_OF = "Kind"
KINDS_OF = {"": "as the centers have it", "number": "number", "category": "category"}
MISSING_CODES = "Codes that mean missing"
TICKED = "About the ticked variables"
IN_WORDS = "What is asked, in words"
NOTHING_TICKED = "Tick a variable, or add an outcome."
BLOCKS = "blocks at most, at each center"
PROTOCOL_FILE = "The same as a file"
SAVE_FILE = "Save the file"
LOOK = "Look at it"
RUN = "Ask the centers once"
NO_STUDY = "No protocol was asked yet."
BUILD_ONE = "Build a protocol"
STUDY_LEAD = "Each center answers by itself. What one has answered is kept, whatever others do."
CHANGED = "The protocol was changed since this page was shown, in another tab. Look at it again."
STATES = {
    "not-asked": "not asked yet",
    "asking": "is asked",
    "answered": "answered",
    "partly": "answered in part",
    "refused": "refused",
    "waits": "waits for its steward",
    "down": "did not answer",
}
SINCE = "since"
STATE = "State"
SAYS = "Says"
CANCEL = "Stop asking"
RESUME = "Ask the missing centers"
NOT_ANSWERED_PART = "not answered"
STUDY_OVER = {
    "running": "The centers are asked.",
    "stopped": "Some centers have not answered. What the others said is kept.",
    "done": "Nobody is asked any more.",
}

PLAN = "Plan"
PLAN_LEAD = (
    "How sure a planned study would be: power and precision of the federation, compared "
    "with pooled data, by simulation. No center is asked."
)
NO_PLAN = "Planning needs another package: pip install 'unpooled[study]'."
PLAN_IT = "Simulate"
PLANNING = "It is simulated."
NOTHING_PLANNED = "Say how many people each center has, and what you want to find."

BOOK = "Book"
NO_BOOK = "There is no book yet. A book is what came back for a protocol."
BOOK_LEAD = "What the centers answered. Cards are computed from it; no center is asked again."
IN_BOOK = "In the book"
NOT_IN_BOOK = "Not in the book"
SAVE_BOOK = "Save the book"
SHOW = "Show"
TO_BOOK = "Look at what came back"
CHECK = "See what each center would answer"
CHECK_LIVE = (
    "What each center would answer follows your changes: these centers are files in this program."
)
CHECK_RECORDED = (
    "Each center records every look at what it would answer, and what it refuses counts in "
    "its budget. So it is asked only when you press the button."
)
