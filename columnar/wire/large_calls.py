"""Calls that came in messages too large for one turn: each client pays for what its own calls cost.

    light   a small one of a client whose last large call was short: made as soon as it is there
    heavy   one of a client whose last large call held the loop, or a larger one of a client that has made none yet

A row of 60 MB is one write of the engine, which cannot be cut: it holds the loop for a third of a second.  A
client that sends one after the other would leave others nothing.  After a call that held the loop the next heavy one
waits REST times as long as it took, and while others ask REST_BESIDE_OTHERS times: so all heavy ones together have
a quarter of the loop, or a hundredth, and of a hundred requests of others less than one meets one.  Among the heavy
ones the next is of the client whose calls have cost least (start-time fair queueing: Goyal, Vin and Cheng, 1996).
Light calls (a batch of many rows is cut into short steps) follow each other as they come, and wait for no rest:
a client that loads batches does not pay for one that writes large rows.

Invariants:
    I1. A client has one call here at most, and what it costs is noted at that client alone.
    I2. A client whose call held the loop is heavy for REST_BESIDE_OTHERS times as long, whatever its next ones cost.
    I3. What waits is counted as input and bounded with it (``limits.SERVER_INPUT_BYTES``); the call of a client that
        has gone is forgotten, and what it holds with it.

Time is that of the loop's thread on a processor: a busy machine makes no client heavy.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import Final

from columnar.limits import BATCH_BYTES
from columnar.wire.codec import Request, ServiceCodec
from columnar.wire.framing import Hangup, Refusal, Whole, decode_message

HELD_S: Final = 0.05  # a call that holds the loop longer is followed by a rest
REST: Final = 3
REST_BESIDE_OTHERS: Final = 99
LIGHT_BYTES: Final = BATCH_BYTES  # a larger message is heavy until its client has shown that its calls are short
_OWN_ANSWERS: Final = 1  # in a rest: that of the call itself


class Aside:
    """A large message on its way through the decoder's thread; ``whole`` is None once its client has gone."""

    __slots__ = ("whole",)

    def __init__(self, whole: Whole) -> None:
        self.whole: Whole | None = whole

    def decoded(self, codec: ServiceCodec) -> Request | Refusal:
        """In the thread.  Raises Hangup."""
        whole = self.whole
        if whole is None:
            raise Hangup("the client has gone")
        return decode_message(codec, whole.speech, whole.body, 0, len(whole.body))


class LargeCaller:
    """What one connection's large calls have cost."""

    __slots__ = ("finish", "is_proven", "pays_until")

    def __init__(self) -> None:
        self.finish = 0.0  # seconds of virtual time: what its heavy calls have cost, behind the others' at its first
        self.is_proven = False  # its last large call was short
        self.pays_until = 0.0  # perf_counter; until then it is heavy

    def is_light(self, size_bytes: int, now: float) -> bool:
        return (self.is_proven or size_bytes <= LIGHT_BYTES) and now >= self.pays_until

    def paid(self, took: float, now: float) -> None:
        self.is_proven = took <= HELD_S
        if not self.is_proven:
            self.pays_until = now + REST_BESIDE_OTHERS * took


class LargeCalls:
    def __init__(self, answered: Callable[[], int], others_wait: Callable[[], bool]) -> None:
        """``answered``: how many requests the server has answered so far.

        ``others_wait``: whether a request that is not heavy is carried out just now and not answered yet.
        """
        self._answered = answered
        self._others_wait = others_wait
        self._light: OrderedDict[LargeCaller, Callable[[], object]] = OrderedDict()
        self._heavy: dict[LargeCaller, tuple[float, Callable[[], object]]] = {}  # with the virtual time it begins at
        self._virtual = 0.0
        self._is_planned = False  # a light one will be made
        self._is_resting = False  # a heavy one will be made, at once or after a rest

    def soon(self, caller: LargeCaller, size_bytes: int, call: Callable[[], object]) -> None:
        """Make it in its turn."""
        if caller.is_light(size_bytes, perf_counter()):
            self._light[caller] = call
            self._plan()
        else:
            self._heavy[caller] = max(self._virtual, caller.finish), call
            if not self._is_resting:
                self._is_resting = True
                asyncio.get_running_loop().call_soon(self._next_heavy)

    def forget(self, caller: LargeCaller) -> bool:
        """The client has gone; True where its call waited here and will not be made."""
        light, heavy = self._light.pop(caller, None), self._heavy.pop(caller, None)
        return light is not None or heavy is not None

    def _plan(self) -> None:
        if self._light and not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._next_light)

    def _next_light(self) -> None:
        self._is_planned = False
        if not self._light:
            return  # it was forgotten
        try:
            took = self._made(*self._light.popitem(last=False))
            if took > HELD_S and not self._is_resting:
                self._is_resting = True  # heavy ones wait for this one's rest, as for that of one of theirs
                self._rest(took)
        finally:  # whatever becomes of one, the others get their turn
            self._plan()

    def _next_heavy(self) -> None:
        took = 0.0
        try:
            if self._heavy:
                caller = min(self._heavy, key=self._start)
                self._virtual, call = self._heavy.pop(caller)
                took = self._made(caller, call)
        finally:
            if took > HELD_S:
                self._rest(took)
            elif self._heavy:
                asyncio.get_running_loop().call_soon(self._next_heavy)
            else:
                self._is_resting = False

    def _start(self, caller: LargeCaller) -> float:
        return self._heavy[caller][0]

    def _made(self, caller: LargeCaller, call: Callable[[], object]) -> float:
        """Make the call; how long it took."""
        begun = thread_time()
        try:
            call()
        finally:
            took = thread_time() - begun
            caller.paid(took, perf_counter())
            caller.finish = self._virtual + took
        return took

    def _rest(self, took: float) -> None:
        asyncio.get_running_loop().call_later(REST * took, self._rested, took, REST * took, self._answered())

    def _rested(self, took: float, rested: float, answered: int) -> None:
        """A rest of ``rested`` is over; ``answered`` is what the server had answered before its last stretch."""
        now = self._answered()
        nobody_asks = now - answered <= _OWN_ANSWERS and not self._others_wait()
        if nobody_asks or rested >= REST_BESIDE_OTHERS * took:
            self._next_heavy()
        else:
            step = REST * took
            asyncio.get_running_loop().call_later(step, self._rested, took, rested + step, now)
