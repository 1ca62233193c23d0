"""The queue of calls whose messages are too large for a time slice: each client pays for the cost of its own calls.

    light   a call of a client whose last large call was short, or a smaller call of a client without large calls so
            far: made as soon as it has arrived
    heavy   a call of a client whose last large call blocked the loop, or a larger call of a client without large calls
            so far

A row of 60 MB is a single, indivisible write of the engine, which blocks the loop for a third of a second.  A
client that sends such rows without pause would starve other clients.  After a call that blocked the loop, the next
heavy call waits REST times as long as that call took, or REST_BESIDE_OTHERS times as long while other clients send
requests.  So all heavy calls together take a quarter of the loop's time, or a hundredth beside other clients, and fewer
than 1 in 100 requests of other clients waits for a heavy call.

The next heavy call is from the client whose calls have cost least (start-time fair queueing: Goyal, Vin and Cheng,
1996).  Light calls run in the order of arrival and wait for no rest, so a client that loads batches (of many rows,
divided into short steps) is not slowed by a client that writes large rows.

Invariants:
    I1. A client has at most one large call, and its cost is charged to that client only.
    I2. A client whose call blocked the loop stays heavy for REST_BESIDE_OTHERS times as long, even if its next calls
        are short.
    I3. Waiting calls count as input and are bounded with it (``limits.SERVER_INPUT_BYTES``).  The call of a client that
        has disconnected is dropped, and its memory freed.

Cost is measured in processor time of the loop's thread, so a busy machine makes no client heavy.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import Final

from columnar.limits import BATCH_BYTES
from columnar.runtime.faults import surviving
from columnar.wire.codec import Request, ServiceCodec
from columnar.wire.framing import Hangup, Refusal, Whole, decode_message

LONG_CALL_S: Final = 0.05  # a call that blocks the loop longer is followed by a pause
REST: Final = 3
REST_BESIDE_OTHERS: Final = 99
LIGHT_BYTES: Final = BATCH_BYTES  # a larger message is heavy until a call of its client was short
_OWN_ANSWERS: Final = 1  # answers within a rest that do not count: the one of the heavy call itself


class Aside:
    """A large message that the decoder's thread decodes; ``whole`` is None once its client has disconnected."""

    __slots__ = ("whole",)

    def __init__(self, whole: Whole) -> None:
        self.whole: Whole | None = whole

    def drop_message(self) -> None:
        """Drop the message, because its client has disconnected."""
        self.whole = None

    def decoded(self, codec: ServiceCodec) -> Request | Refusal:
        """Decode the message, in the thread.  Raises Hangup."""
        whole = self.whole
        if whole is None:
            raise Hangup("the client has gone")
        return decode_message(codec, whole.speech, whole.body, 0, len(whole.body))


class LargeCaller:
    """The cost of a connection's large calls so far."""

    __slots__ = ("finish", "is_proven", "pays_until")

    def __init__(self) -> None:
        self.finish = 0.0  # seconds of virtual time: the cost of its heavy calls, from the others' time at its first on
        self.is_proven = False  # its last large call was short
        self.pays_until = 0.0  # perf_counter; until then it is heavy

    def is_light(self, size_bytes: int, now: float) -> bool:
        return (self.is_proven or size_bytes <= LIGHT_BYTES) and now >= self.pays_until

    def paid(self, took: float, now: float, virtual: float) -> None:
        """Charge a call that took ``took`` seconds and began at the virtual time ``virtual``."""
        self.finish = virtual + took
        self.is_proven = took <= LONG_CALL_S
        if not self.is_proven:
            self.pays_until = now + REST_BESIDE_OTHERS * took


class LargeCalls:
    def __init__(self, answered: Callable[[], int], others_wait: Callable[[], bool]) -> None:
        """Pass ``answered``, which returns the number of requests that the server has answered so far.

        ``others_wait`` returns whether a request that is not heavy is being served.
        """
        self._answered = answered
        self._others_wait = others_wait
        self._light: OrderedDict[LargeCaller, Callable[[], object]] = OrderedDict()
        self._heavy: dict[LargeCaller, tuple[float, Callable[[], object]]] = {}  # with the virtual time of its start
        self._virtual = 0.0
        self._is_planned = False  # a light call will be made
        self._is_resting = False  # a heavy call will be made, at once or after a rest

    def soon(self, caller: LargeCaller, size_bytes: int, call: Callable[[], object]) -> None:
        """Queue the call as light or heavy."""
        if caller.is_light(size_bytes, perf_counter()):
            self._light[caller] = call
            self._plan()
        else:
            self._heavy[caller] = max(self._virtual, caller.finish), call
            if not self._is_resting:
                self._is_resting = True
                asyncio.get_running_loop().call_soon(self._next_heavy)

    def forget(self, caller: LargeCaller) -> bool:
        """Drop the waiting call of a client that has disconnected.  Returns True if a call was waiting."""
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
            if took > LONG_CALL_S and not self._is_resting:
                self._is_resting = True  # heavy calls wait for the rest after this call, as after a heavy call
                self._rest(took)
        finally:  # other calls are made even if this call fails
            self._plan()

    def _next_heavy(self) -> None:
        took = 0.0
        try:
            if self._heavy:
                caller = min(self._heavy, key=self._start)
                self._virtual, call = self._heavy.pop(caller)
                took = self._made(caller, call)
        finally:
            if took > LONG_CALL_S:
                self._rest(took)
            elif self._heavy:
                asyncio.get_running_loop().call_soon(self._next_heavy)
            else:
                self._is_resting = False

    def _start(self, caller: LargeCaller) -> float:
        return self._heavy[caller][0]

    def _made(self, caller: LargeCaller, call: Callable[[], object]) -> float:
        """Run the call; returns its processor time in seconds."""
        begun = thread_time()
        try:
            call()
        finally:
            took = thread_time() - begun
            caller.paid(took, perf_counter(), self._virtual)
        return took

    def _rest(self, took: float) -> None:
        answered = 0
        with surviving("large calls"):
            answered = self._answered()
        asyncio.get_running_loop().call_later(REST * took, self._rested, took, REST * took, answered)

    def _rested(self, took: float, rested: float, answered: int) -> None:
        """Continue after a pause of ``rested`` seconds; ``answered`` requests were answered before its last part."""
        now, zero_requests = answered, False
        with surviving("large calls"):  # if the callback fails, heavy calls continue after the whole pause
            now = self._answered()
            zero_requests = now - answered <= _OWN_ANSWERS and not self._others_wait()
        if zero_requests or rested >= REST_BESIDE_OTHERS * took:
            self._next_heavy()
        else:
            step = REST * took
            asyncio.get_running_loop().call_later(step, self._rested, took, rested + step, now)
