"""Several owners of regions as one ``Peer``, which sends messages for all owners to each at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from columnar.model import region_messages as messages
from columnar.model.region_messages import Message, Peer


class FakeOwner:
    """An owner that remembers its requests, and answers when the test lets it."""

    def __init__(self) -> None:
        self.asked: list[Message[Any]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.refuses: Callable[[Message[Any]], Exception | None] = lambda _message: None
        self.undelivered: dict[str, int] = {}

    async def request_peer(self, message: Message[Any]) -> Any:
        self.asked.append(message)
        await self.may_answer.wait()
        refusal = self.refuses(message)
        if refusal is not None:
            raise refusal
        if isinstance(message, messages.BackfilledRegions):  # it has no region
            return {}
        return {name: self.undelivered.get(name, 0) for name in message.triggers} if _counts(message) else None

    def states(self) -> list[dict[str, str]]:
        """Return the states of triggers in each message."""
        told = [one.triggers for one in self.asked if isinstance(one, messages.PublishTriggers)]
        return [{trigger.name: trigger.state for trigger in triggers.all} for triggers in told]


class SeveralOwners:
    """The peer: the first owner checks functions; counts are added up, regions joined, other answers are dropped."""

    def __init__(self, owners: Sequence[Peer]) -> None:
        self.owners = owners

    async def request_peer(self, message: Message[Any]) -> Any:
        if isinstance(message, messages.CheckFunction | messages.CheckSource):
            return await self.owners[0].request_peer(message)
        answers = await asyncio.gather(*(owner.request_peer(message) for owner in self.owners), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        if _counts(message):
            return {name: sum(answer[name] for answer in answers) for name in message.triggers}
        if isinstance(message, messages.BackfilledRegions):
            return {name: set().union(*(answer.get(name, ()) for answer in answers)) for name in message.views}
        return None


def _counts(message: Message[Any]) -> bool:
    return isinstance(message, messages.Undelivered)
