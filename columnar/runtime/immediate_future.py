"""A future that notifies its waiters within the very loop iteration in which it is completed.

``asyncio`` runs each callback of a future in a loop iteration of its own.  Between two iterations the loop polls all
its sockets: with a hundred ready ones that takes milliseconds, and an acknowledgement that goes through three
futures (the fsync, the region's group, the request) waited for three of them.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

Callback = Callable[[asyncio.Future[None]], object]


class ImmediateFuture(asyncio.Future[None]):
    """Awaited as any other, by many; only ``complete`` ends it, and it is never cancelled."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._immediate_callbacks: list[Callback] = []

    def add_callback(self, callback: Callback) -> None:
        """Call ``callback(self)`` on completion, in the order of registration; if it is done, in the next iteration."""
        if self.done():
            self.get_loop().call_soon(callback, self)
        else:
            self._immediate_callbacks.append(callback)

    def complete(self, failure: BaseException | None = None) -> None:
        """Complete the future.  The caller's state must be consistent: a callback may call the caller at once."""
        if failure is None:
            self.set_result(None)
        else:
            self.set_exception(failure)
            self.exception()  # retrieved: a future without a waiter must not warn
        callbacks, self._immediate_callbacks = self._immediate_callbacks, []
        for callback in callbacks:
            try:
                callback(self)
            except Exception as error:  # noqa: BLE001 - as the loop does: one that fails takes no other along
                self.get_loop().call_exception_handler({"message": f"{callback!r} failed", "exception": error})
