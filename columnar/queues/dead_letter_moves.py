"""Moves dead messages to the queue that ``dead_to`` names, in the background.

    push     messages go to the other queue under names that tell queue and number, and are on disk there
    remove   then they are removed here

A crash between the two pushes them again, and the other queue has their names.  When a desk is not usable any more, the
desk that follows it moves what is left.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import Final

from columnar.cluster.peer_requests import QueuedMessage
from columnar.errors import CallerError, ColumnarError
from columnar.queues import keys
from columnar.queues.dead_messages import find_dead, remove_dead
from columnar.queues.desk import Desk
from columnar.queues.queue_rows import Found
from columnar.runtime.faults import FAULTS

_log = logging.getLogger(__name__)

MOVED_AT_ONCE: Final = 100
FIRST_PAUSE_S: Final = 0.5  # after an error
LONGEST_PAUSE_S: Final = 30.0
FROM, ID, ERROR, ATTEMPTS = b"dead-from", b"dead-id", b"dead-error", b"dead-attempts"  # headers of a moved message

Push = Callable[[bytes, Sequence[QueuedMessage]], Awaitable[None]]


class DeadLetterMoves:
    def __init__(self, push: Push) -> None:
        self._push = push
        self._running: dict[Desk, asyncio.Task[None]] = {}  # a desk that is not usable any more removes nothing

    def begin_moves(self, desk: Desk) -> None:
        """Move the desk's dead messages, also those that come while this goes on."""
        if desk not in self._running:
            self._running[desk] = asyncio.ensure_future(self._move_all(desk))

    async def _move_all(self, desk: Desk) -> None:
        pause_s = FIRST_PAUSE_S
        try:
            while desk.is_usable and desk.state.settings.dead_to:
                try:
                    with desk.background.counted():
                        if not await self._move_some(desk):
                            return
                    pause_s = FIRST_PAUSE_S
                except CallerError as error:  # the other queue never takes them: they stay here
                    _log.warning("dead messages of queue %s stay: %s", desk.queue.decode("latin-1"), error.text)
                    return
                except ColumnarError as error:
                    _log.info("dead messages of queue %s wait: %s", desk.queue.decode("latin-1"), error.text)
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        except Exception as fault:  # noqa: BLE001 - they stay dead here, and are moved with the next one
            FAULTS.met("the moves of dead messages", fault)
        finally:
            del self._running[desk]

    async def _move_some(self, desk: Desk) -> bool:
        found = find_dead(desk, 0, MOVED_AT_ONCE)
        if not found:
            return False
        with desk.background.moved(one.n for one in found):
            await self._push(desk.state.settings.dead_to, [moved_message(desk.queue, one) for one in found])
        if desk.is_usable:
            _, waiting = remove_dead(desk, [one.n for one in found], 0)
            if waiting is not None:
                await asyncio.shield(waiting)
        return True


def moved_message(queue: bytes, dead: Found) -> QueuedMessage:
    """Return the message as it goes to the other queue: its headers tell where, why and after how many pops it died."""
    added = {FROM: queue, ID: b"%d" % dead.n, ERROR: dead.error, ATTEMPTS: b"%d" % dead.attempts}
    headers = (*(one for one in dead.message.headers if one[0] not in added), *added.items())
    if len(headers) > keys.HEADERS or keys.size_of_message(headers, dead.message.body) > keys.MESSAGE_BYTES:
        headers = dead.message.headers  # there is no room
    name = b"dead-%s-%d" % (blake2b(queue, digest_size=16).hexdigest().encode(), dead.n)
    return QueuedMessage(dead.message.body, name, headers, dead.subqueue.group)
