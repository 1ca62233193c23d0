"""A future that tells those who wait for it within the very turn of the loop in which it is resolved.

``asyncio`` gives each callback of a future a turn of its own.  Between two turns the loop looks at all its sockets:
with a hundred that have something to say that takes milliseconds, and an acknowledgement that goes through three
futures (the fsync, the region's group, the request) waited for three of them.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

Callback = Callable[[asyncio.Future[None]], object]


class ImmediateFuture(asyncio.Future[None]):
    """Awaited as any other, by many; only ``resolve`` ends it, and nobody cancels it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._immediate_callbacks: list[Callback] = []

    def add_callback(self, callback: Callback) -> None:
        """Call ``callback(self)`` as soon as this is resolved, in the order of asking; where it is done, next turn."""
        if self.done():
            self.get_loop().call_soon(callback, self)
        else:
            self._immediate_callbacks.append(callback)

    def complete(self, failure: BaseException | None = None) -> None:
        """Whoever resolves it has put its own house in order: a callback may ask it for the next thing at once."""
        if failure is None:
            self.set_result(None)
        else:
            self.set_exception(failure)
            self.exception()  # seen: one that nobody waits for must not warn
        told, self._immediate_callbacks = self._immediate_callbacks, []
        for callback in told:
            try:
                callback(self)
            except Exception as error:  # noqa: BLE001 - as the loop does: one that fails takes no other along
                self.get_loop().call_exception_handler({"message": f"{callback!r} failed", "exception": error})
