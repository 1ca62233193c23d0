"""Posts the messages of a served queue to a URL.

    POST /hook HTTP/1.1
    Content-Type: application/octet-stream           or the message's header content-type
    Columnar-Queue: thumbs
    Columnar-Message-Id: 1795868882562873            the same at each attempt: by it a target knows a repeat
    Columnar-Message-Name, Columnar-Group            if the message has them
    Columnar-Priority: 0
    Columnar-Attempt: 1
    Columnar-Pushed-Ms: 1795868882562
    Columnar-Header-NAME: VALUE                      of each header of the message; bytes that HTTP does not allow in a
                                                     name or value, and the percent sign, are written as %XX

    2xx                          done
    429 or 503 with Retry-After  blocked for so long: the target has asked for a pause; it fails if only this message
                                 meets that, again and again (``delivery_pace``)
    no connection                blocked
    anything else, a timeout     failed: status and beginning of the answer are the message's error

Redirects are answers as others.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from time import perf_counter, time
from typing import Final
from urllib.parse import quote_from_bytes

from columnar.flows.figures import FollowerFigures
from columnar.model.message_delivery import DONE, End, How, ServedMessage
from columnar.model.queue_service import checked_url
from columnar.model.trigger_registration import Registration
from columnar.queues.delivery_pace import LONGEST_PAUSE_S
from columnar.queues.keys import SQS_HEADER
from columnar.queues.message_delivery import Ended
from columnar.runtime.background import Background
from columnar.wire.http.answers import reason
from columnar.wire.http.client import CONNECT_S, Answer, Broken, HttpClient, Unreachable

_NAME_SAFE: Final = "!#$&'*+-.^_`|~"  # of the characters of a header's name, beside letters and digits
_VALUE_SAFE: Final = "".join(map(chr, range(0x21, 0x7F))).replace("%", "") + " "
_BUSY: Final = (429, 503)
_QUOTED_BYTES: Final = 300  # bytes of an answer in the error of a message
_CONTENT_TYPE: Final = b"content-type"
_LEAST_PAUSE_S: Final = 0.01


class HttpTarget:
    def __init__(self, registration: Registration, figures: FollowerFigures) -> None:
        self._timeout_s = registration.timeout_ms / 1_000
        connect_s = min(CONNECT_S, self._timeout_s / 2)  # a target without a connection costs no attempt
        self._client = HttpClient(checked_url(registration.url), registration.side_by_side, connect_s)
        self._figures = figures
        self._requests = Background("requests to the targets of queues")

    # --- message_delivery.Target ---------------------------------------------------------------------

    def deliver(self, message: ServedMessage, ended: Ended) -> None:
        self._requests.spawn(self._deliver(message, ended))

    def withdraw(self) -> None:
        """Do nothing: each message is on its way at once."""

    def close(self) -> None:
        self._requests.close()
        self._client.close()

    # --- requests ------------------------------------------------------------------------------------

    async def _deliver(self, message: ServedMessage, ended: Ended) -> None:
        begun_s = perf_counter()
        end = End(How.FAILED, why="the store met an unexpected error; its log has it")
        try:
            end = await self._posted(message)
        finally:  # also after a fault, which ``Background`` reports
            used_s, now_s = perf_counter() - begun_s, asyncio.get_running_loop().time()
            self._figures.runs.observe(used_s)
            if end.how is How.DONE:
                self._figures.delivery(now_s)
            for _ in range(ended(end)):
                self._figures.note_failed()

    async def _posted(self, message: ServedMessage) -> End:
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._client.post(headers_of(message), message.body)
        except TimeoutError:
            return End(How.FAILED, why=f"no answer within {self._timeout_s:g} s")
        except Unreachable as error:
            return End(How.BLOCKED, why=f"its target cannot be reached: {error}")
        except Broken as error:
            return End(How.FAILED, why=str(error))
        return end_of(answer, time())


def headers_of(message: ServedMessage) -> Iterator[tuple[str, str]]:
    """(pure) Yield the headers of the request."""
    given = {key.lower(): value for key, value in message.headers}
    yield "Content-Type", _value(given.get(_CONTENT_TYPE, b"application/octet-stream"))
    yield "Columnar-Queue", _value(message.queue)
    yield "Columnar-Message-Id", str(message.n)
    if message.name:
        yield "Columnar-Message-Name", _value(message.name)
    if message.group:
        yield "Columnar-Group", _value(message.group)
    yield "Columnar-Priority", str(message.priority)
    yield "Columnar-Attempt", str(message.attempt)
    yield "Columnar-Pushed-Ms", str(message.pushed_ms)
    for key, value in message.headers:
        if not key.startswith(SQS_HEADER):
            yield "Columnar-Header-" + quote_from_bytes(key, safe=_NAME_SAFE), _value(value)


def _value(text: bytes) -> str:
    inner = text.strip(b" ")  # HTTP takes the spaces around a value away
    before, after = len(text) - len(text.lstrip(b" ")), len(text) - len(text.rstrip(b" "))
    return "%20" * before + quote_from_bytes(inner, safe=_VALUE_SAFE) + ("%20" * after if inner else "")


def end_of(answer: Answer, now_s: float) -> End:
    """(pure) Return how the delivery ended by which the target answered; ``now_s`` is since 1970."""
    if answer.is_success:
        return DONE
    why = f"{answer.status} {reason(answer.status)}"
    shown = " ".join(answer.body[:_QUOTED_BYTES].decode("utf-8", "replace").split())
    pause_s = _retry_after(answer.headers.get("retry-after", ""), now_s) if answer.status in _BUSY else None
    if pause_s is not None:
        return End(How.BLOCKED, pause_s, f"its target has asked for a pause of {pause_s:g} s: {why}", is_requested=True)
    return End(How.FAILED, why=f"{why}: {shown}" if shown else why)


def _retry_after(text: str, now_s: float) -> float | None:
    """Return the seconds that Retry-After names, by their number or by a date; None if it names none."""
    text = text.strip()
    if text.isdecimal() and text.isascii():
        seconds = float(text[:9])
    else:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now_s
        except (ValueError, OverflowError, TypeError):
            return None
    return min(LONGEST_PAUSE_S, max(_LEAST_PAUSE_S, seconds))
