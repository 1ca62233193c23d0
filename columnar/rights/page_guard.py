"""The guard of pages and metrics of a store with rights: users with X or A on everything, by Basic or Bearer.

``PageGuard`` is called in the web server's threads; sign-in and rights belong to the loop.  A node, which has neither,
has one of its servers decide (``model.node_messages.JudgeVisitor``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as NotInTime
from typing import Final

from columnar.errors import ColumnarError, RetryLater, SignInRefused
from columnar.model.node_messages import JudgeVisitor, Verdict
from columnar.model.rights import ADMIN, EXEC
from columnar.rights.rights_check import RightsHolder
from columnar.runtime.faults import FAULTS
from columnar.security.credentials import of_authorization
from columnar.security.sign_in import origin_of

VERIFY_S: Final = 10.0  # for a password among others
MAY_SEE: Final = Verdict(200)
NO_RIGHTS_YET: Final = Verdict(503, "the rights of users are not known here yet; try again")
FAULT: Final = Verdict(503, "an unexpected exception: the store's log has it; try again")
LOOP: Final = "the guard of pages"

_STOPS: Final = 503, "the store stops"

Decide = Callable[[JudgeVisitor], Awaitable[Verdict]]


class PageGuard:
    def __init__(self, decide: Decide, loop: asyncio.AbstractEventLoop) -> None:
        """``decide`` is called in the loop."""
        self._decide = decide
        self._loop = loop

    def refusal(self, authorization: str, host: str, is_private: bool) -> tuple[int, str] | None:
        """Return status and reason if the request is refused; ``is_private``: nobody on the network reads it."""
        if not authorization:
            return 401, "sign in: this store checks rights"
        if not is_private:
            return 403, "the network can read what you send: ask over TLS, or from this machine"
        work = self._verdict(JudgeVisitor(authorization, host))
        try:
            deciding = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # the loop is closed
            work.close()
            return _STOPS
        try:
            verdict = deciding.result(VERIFY_S)
        except NotInTime:
            deciding.cancel()
            return 503, "the store has not answered in time"
        except CancelledError:
            return _STOPS
        return None if verdict == MAY_SEE else (verdict.status, verdict.reason)

    async def _verdict(self, visitor: JudgeVisitor) -> Verdict:
        try:
            verdict = await self._decide(visitor)
        except Exception as fault:  # noqa: BLE001 - the guard is a server's loop: every request is answered
            FAULTS.met(LOOP, fault)
            return FAULT
        FAULTS.went_well(LOOP)
        return verdict


class VisitorJudge:
    """Decides in a process that holds the rights of users."""

    def __init__(self, holder: RightsHolder) -> None:
        self._holder = holder

    async def judge(self, visitor: JudgeVisitor) -> Verdict:
        sign_in = self._holder.sign_in
        assert sign_in is not None, "a process with clients"
        try:
            self._holder.rights()  # first: without them the accounts are not known either
        except RetryLater:
            return NO_RIGHTS_YET
        try:
            credentials = of_authorization(visitor.authorization)
            user = sign_in.remembered(credentials)
            if not user:
                user = await sign_in.verify(credentials, origin_of(visitor.host), visitor.host)
        except SignInRefused as refusal:
            return Verdict(401, refusal.text)
        except ColumnarError as error:
            return Verdict(503, error.text)
        rights = self._holder.rights().global_rights(user)  # the present ones: a password takes its time
        return MAY_SEE if rights & (EXEC | ADMIN) else Verdict(403, "pages and metrics need X or A on everything")
