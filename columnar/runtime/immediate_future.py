"""A future that notifies its waiters within the loop iteration in which it is completed.

``asyncio`` runs the callbacks of a future in the next loop iteration.  Between two iterations the loop polls all its
sockets, which takes milliseconds if a hundred are ready.  An acknowledgement goes through three futures (the fsync, the
region's group, the request) and would wait for three polls.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

Callback = Callable[[asyncio.Future[None]], object]


class ImmediateFuture(asyncio.Future[None]):
    """A future that many may await.  Only ``complete`` ends it; it is never cancelled."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._immediate_callbacks: list[Callback] = []

    def add_callback(self, callback: Callback) -> None:
        """Have ``callback(self)`` called on completion, in the order of registration.

        If the future is done already, the call is in the next loop iteration.
        """
        if self.done():
            self.get_loop().call_soon(callback, self)
        else:
            self._immediate_callbacks.append(callback)

    def complete(self, failure: BaseException | None = None) -> None:
        """Complete the future and run its callbacks.

        The caller's state must be consistent: callbacks may call it back.
        """
        if failure is None:
            self.set_result(None)
        else:
            self.set_exception(failure)
            self.exception()  # marks it as retrieved, so that a future without a waiter does not warn
        callbacks, self._immediate_callbacks = self._immediate_callbacks, []
        for callback in callbacks:
            try:
                callback(self)
            except Exception as error:  # noqa: BLE001 - as the loop does: one that fails takes no other along
                self.get_loop().call_exception_handler({"message": f"{callback!r} failed", "exception": error})
