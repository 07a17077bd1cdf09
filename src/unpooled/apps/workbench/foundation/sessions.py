"""Who is at the page: one-time links, passwords, sessions that end, and keys for programs.

Nothing here is written to a disk. Secrets are kept as SHA-256 digests, so a copy of the memory of
this table opens nothing; they are compared in constant time.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest

LINK_SECONDS = 3600.0  # a link that nobody opened
IDLE_SECONDS = 2 * 3600.0  # a session that nobody used
LONGEST_SECONDS = 12 * 3600.0  # a session, however busy
MOST_SESSIONS = 64
_WRONG = 5  # passwords, before the next one has to wait
_WAIT_SECONDS = 30.0


@dataclass(slots=True)
class Session:
    """A browser, or a program, that a user let in."""

    user: str
    csrf: str  # what a form must bring back
    began: float
    used: float
    by_key: bool = False  # a program with a key: no cookie, so nobody can ride on it


@dataclass(slots=True)
class Sessions:
    """The sessions of one page. Users are named; each sees only what is kept under their name."""

    passwords: dict[str, str] = field(default_factory=dict)  # user → password
    clock: Callable[[], float] = time.monotonic
    _links: dict[str, tuple[str, float]] = field(default_factory=dict)
    _sessions: dict[str, Session] = field(default_factory=dict)
    _wrong: list[float] = field(default_factory=list)

    def link_token(self, user: str) -> str:
        """A token that opens the page once, for this user."""
        token = secrets.token_urlsafe(32)
        self._links[_digest(token)] = (user, self.clock() + LINK_SECONDS)
        return token

    def enter_by_link(self, token: str) -> str | None:
        """The cookie of a new session; None where the token is wrong, used or too old."""
        user, until = self._links.pop(_digest(token), ("", 0.0))
        return self._begin(user) if self.clock() < until else None

    def enter_by_password(self, user: str, password: str) -> str | None:
        """The cookie of a new session; None where user or password are wrong."""
        right = self.passwords.get(user, "")
        same = compare_digest(_digest(password), _digest(right))
        if not right or not same:
            self._wrong.append(self.clock())
            return None
        return self._begin(user)

    @property
    def must_wait(self) -> bool:
        """Whether too many passwords were wrong lately."""
        now = self.clock()
        self._wrong = [then for then in self._wrong if now - then < _WAIT_SECONDS]
        return len(self._wrong) >= _WRONG

    def key(self, user: str) -> str:
        """A key for programs, which send it as `Authorization: Bearer KEY`."""
        return self._begin(user, by_key=True)

    def find(self, secret: str, by_key: bool = False, used: bool = True) -> Session | None:
        """The session of a cookie, or of a key, if it has not ended; `used` keeps it alive."""
        session = self._sessions.get(_digest(secret))
        if session is None or session.by_key != by_key:
            return None
        now = self.clock()
        idle = now - session.used > IDLE_SECONDS and not by_key
        if idle or now - session.began > LONGEST_SECONDS:
            self.leave(secret)
            return None
        session.used = now if used else session.used
        return session

    def leave(self, secret: str) -> None:
        """End a session."""
        self._sessions.pop(_digest(secret), None)

    def _begin(self, user: str, by_key: bool = False) -> str:
        secret, now = secrets.token_urlsafe(32), self.clock()
        if len(self._sessions) >= MOST_SESSIONS:  # the one that was idle longest makes room
            idlest = min(self._sessions, key=lambda digest: self._sessions[digest].used)
            del self._sessions[idlest]
        session = Session(user, secrets.token_urlsafe(32), now, now, by_key)
        self._sessions[_digest(secret)] = session
        return secret


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
