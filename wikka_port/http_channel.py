"""Waitress's parser, task and channel, with bodies that are read as they arrive.

    small body                  waitress reads it whole (512 KiB in memory, then a file), then a thread starts
    over ``max_request_bytes``  the thread starts when the headers are there, and the body is a ``BodyPipe``

The second kind are uploads of any length, and forms that are too large: the application refuses those by their length,
and the rest of the body is read and dropped, up to UNREAD_TIMES of the bound, so that a browser shows the page of
the refusal.  It shows none if the connection is closed while it sends.

    answered before the body was read:
        up to UNREAD_TIMES of the bound are to come    they are dropped, and the connection serves its next request
        more, or the client awaits "100 Continue"      "Connection: close"; the answer, the end of the stream, and the
                                                       connection is closed by the client or after that many bytes

``Expect: 100-continue`` is answered at the first read of the body, which is after the application's checks.

A client that moves fewer than TRANSFER_STALLED_BYTES in TRANSFER_STALLED_S while the wiki waits for it is cut off.

Knows nothing of routes but which ones take uploads (``urls``).
"""

from __future__ import annotations

import contextlib
import copy
import logging
import socket
from typing import Any, Final, Literal

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import FixedStreamReceiver
from waitress.task import WSGITask
from waitress.utilities import Error, RequestEntityTooLarge

from wikka_port.body_pipe import BodyPipe
from wikka_port.limits import (
    RECEIVED_BYTES,
    TRANSFER_OUTPUT_BYTES,
    TRANSFER_STALLED_BYTES,
    TRANSFER_STALLED_S,
    UNREAD_TIMES,
)
from wikka_port.request_queues import PLACE_KEY, Place, QueueName, Restart, run_as_transfer
from wikka_port.security import network_of
from wikka_port.urls import takes_upload

log = logging.getLogger(__name__)

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_UNSENT_BYTES: Final = 131_072  # of an answer, in the kernel: with more, a client's progress is seen too rarely


class _LengthRequired(Error):  # type: ignore[misc]  # waitress ships no types
    code, reason = 411, "Length Required"


def transfer_adjustments(adjustments: Any) -> Any:
    """Return waitress's settings for a channel while it serves a transfer."""
    changed = copy.copy(adjustments)
    vars(changed).update(
        outbuf_high_watermark=TRANSFER_OUTPUT_BYTES,
        outbuf_overflow=4 * TRANSFER_OUTPUT_BYTES,  # never reached: the output stays in memory
        recv_bytes=RECEIVED_BYTES,
    )
    return changed


class Parser(HTTPRequestParser):  # type: ignore[misc]
    """Parses a request; one with a large body is complete when its headers are."""

    error: Any
    expect_continue: bool
    body: BodyPipe | None = None
    has_answer = False  # its headers are made, so "100 Continue" would come too late
    awaits_continue = False
    _dropped_bytes = 0

    def __init__(self, adjustments: Any, channel: Channel) -> None:
        super().__init__(adjustments)
        self._channel = channel

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the headers.  Raises ParsingError if they state the body's length in two ways (RFC 9112, 6.1).

        A proxy that believes a different length than the wiki would take the end of the body for the next request.  So
        the request is refused and the connection closed.
        """
        super().parse_header(header_plus)
        if self.chunked and "CONTENT_LENGTH" in self.headers:
            raise ParsingError("A request has either Content-Length or Transfer-Encoding, not both.")
        if "TRANSFER_ENCODING" in self.headers:  # removed if it is understood
            raise ParsingError("Transfer-Encoding needs HTTP/1.1.")

    def received(self, data: bytes) -> int:
        taken = int(super().received(data))
        if isinstance(self.error, RequestEntityTooLarge):
            self._judge_large()
            if self.body is not None:
                taken += self.receive_body(data[taken:])
        return taken

    def _judge_large(self) -> None:
        """Give a large body a pipe, unless nobody would read it, and it is too large to be dropped."""
        is_upload = takes_upload(self.command, self.path)
        if self.chunked and is_upload:
            self.error = _LengthRequired(
                f"An upload of more than {self.adj.max_request_body_size - 1} bytes needs a Content-Length."
            )
        elif not self.chunked and (is_upload or self.content_length <= self._unread_max):
            self.error = None
            self.awaits_continue, self.expect_continue = self.expect_continue, False
            self.body = BodyPipe(self._take_body, self._channel.server.pull_trigger)
            self.body_rcv = FixedStreamReceiver(self.content_length, self.body)
            self._channel.note_arriving(self)
        else:
            self.expect_continue = False  # waitress would ask for the body

    @property
    def _unread_max(self) -> int:
        return UNREAD_TIMES * int(self.adj.max_request_body_size)

    def receive_body(self, data: bytes) -> int:
        """Take what belongs to the body and return its length.  Closes the channel if too much is to be dropped."""
        assert self.body is not None, "the request has a large body"
        taken = int(self.body_rcv.received(data))
        if self.body.is_dropping:
            self._dropped_bytes += taken
        if self.body_rcv.completed:
            self.body.end()
            self._channel.note_arriving(None)
        elif self._dropped_bytes > self._unread_max:
            self._channel.handle_close()
        return taken

    def _take_body(self) -> None:
        """Move the request to the transfers, unless it is there, and have the client send.  For the reader's thread."""
        if self._channel.queue != "transfers" and self.has_answer:
            raise RuntimeError("the first read of a large body must come before its answer begins")
        run_as_transfer({PLACE_KEY: self._channel.place(self)})
        if self.awaits_continue and not self.has_answer:
            self.awaits_continue = False
            self._channel.send_at_once(_CONTINUE)

    def begin_answer(self) -> bool:
        """Note that the answer begins, and return whether the connection cannot serve a further request.

        For the thread that answers.
        """
        self.has_answer = True
        if self.body is None or self._channel.arriving is not self:
            return False
        return self.awaits_continue or self.body_rcv.remain > self._unread_max

    def get_body_stream(self) -> Any:
        return super().get_body_stream() if self.body is None else self.body

    def close(self) -> None:
        if self.body is None:
            super().close()
        else:
            self.body.end_reading()


class Task(WSGITask):  # type: ignore[misc]
    def get_environment(self) -> dict[str, Any]:
        environ: dict[str, Any] = super().get_environment()
        environ[PLACE_KEY] = self.channel.place(self.request)
        return environ

    def build_response_header(self) -> bytes:
        if self.request.begin_answer():
            self.set_close_on_finish()
        return bytes(super().build_response_header())


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection; ``server`` is waitress's, with the ``settings`` of ``wsgi_worker``."""

    task_class = Task
    # These are of the first request; the thread that adds it to a queue writes them.
    queue: QueueName = "quick"
    network = ""  # of a transfer
    direction: Literal["in", "out"] = "out"
    arriving: Parser | None = None  # the request whose large body is not whole yet; written by the loop
    sent_bytes = 0  # guarded by outbuf_lock
    received_bytes = 0  # the loop's
    _is_output_ended = False  # the loop's
    # What ``close_if_stalled`` has seen; the loop's.
    _seen_bytes = 0
    _seen_s: float | None = None  # None: the client was not waited for

    def parser_class(self, adjustments: Any) -> Parser:
        return Parser(adjustments, self)

    # --- requests and their queues ------------------------------------------------------------------

    def place(self, request: Parser) -> Place:
        dispatcher = self.server.task_dispatcher
        return Place(dispatcher, self.queue, request.body is not None, lambda: self._network_of(request))

    def _network_of(self, request: Parser) -> str:
        """Return the network of the address that the trusted proxies give, as ``ProxyFix`` does for the application."""
        proxies = self.server.settings.proxies
        given = [one.strip() for one in request.headers.get("X_FORWARDED_FOR", "").split(",")]
        is_given = 0 < proxies <= len(given) and given[-proxies]
        return network_of(given[-proxies] if is_given else str(self.addr[0]))

    def enter_queue(self, queue: QueueName) -> None:
        """Prepare for the queue in which the first request is served.  Called before it is added."""
        self.queue = queue
        if queue != "transfers":
            self.adj = self.server.adj
            return
        request = self.requests[0]
        self.network, self.direction = self._network_of(request), "out" if request.body is None else "in"
        self.adj = self.server.settings.transfer_adjustments
        with self.outbuf_lock:
            self.current_outbuf_count = self.adj.outbuf_high_watermark  # so that the next buffer has these settings
        with contextlib.suppress(OSError, AttributeError):  # closed by now; or the system has no such option
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)

    def service(self) -> None:
        try:
            super().service()
        except Restart as restart:
            request = self.requests[0]
            if request.body is None:  # the application may have read the form before it asked for another queue
                request.get_body_stream().seek(0)
            self.server.task_dispatcher.add_to(restart.queue, self)

    def send_at_once(self, data: bytes) -> None:
        with self.outbuf_lock:
            self.outbufs[-1].append(data)
            self.current_outbuf_count += len(data)
            self.total_outbufs_len += len(data)
            self._flush_exception(self._flush_some, do_close=False)

    def note_arriving(self, request: Parser | None) -> None:
        """Note the request whose body is arriving, or that it is whole.  For the loop."""
        self.arriving = request

    # --- the loop -----------------------------------------------------------------------------------

    def readable(self) -> bool:
        if self.arriving is None or self.arriving.body is None:
            return bool(super().readable())
        return not self.will_close and self.arriving.body.wants_bytes

    @property
    def _lingers(self) -> bool:
        """Whether the last answer is given and the rest of the request is still to be read."""
        return bool(self.close_when_flushed and self.arriving is not None and not self.will_close)

    def writable(self) -> bool:
        return not self._is_output_ended if self._lingers else bool(super().writable())

    def handle_write(self) -> None:
        if not self._lingers:
            super().handle_write()
            return
        self._flush_exception(self._flush_some)
        if not self.total_outbufs_len:
            self._is_output_ended = True
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)  # a client that waits for the end of the answer gets it

    def received(self, data: bytes) -> bool:
        if self.arriving is not None:
            data = data[self.arriving.receive_body(data) :]
        return bool(data) and bool(super().received(data))

    def recv(self, buffer_size: int) -> bytes:
        data = bytes(super().recv(buffer_size))
        self.received_bytes += len(data)
        if self.arriving is not None:
            self.server.settings.counters.transfer_moved("in", len(data))
        return data

    def send(self, data: bytes, do_close: bool = True) -> int:
        sent = int(super().send(data, do_close))
        self.sent_bytes += sent
        if self.queue == "transfers":
            self.server.settings.counters.transfer_moved("out", sent)
        return sent

    def handle_close(self) -> None:
        arriving, self.arriving = self.arriving, None
        if arriving is not None and arriving.body is not None:
            arriving.body.break_off()
        super().handle_close()

    def close_if_stalled(self, now_s: float) -> None:
        """Close the connection if the client has kept the wiki waiting.  Called about each second."""
        is_waited_for = self.total_outbufs_len > 0 or (self.arriving is not None and self.readable())
        moved_bytes = self.sent_bytes + self.received_bytes
        if not is_waited_for:
            self._seen_s = None
        elif self._seen_s is None or moved_bytes - self._seen_bytes >= TRANSFER_STALLED_BYTES:
            self._seen_s, self._seen_bytes = now_s, moved_bytes
        elif now_s - self._seen_s >= TRANSFER_STALLED_S:
            log.info("a client is cut off: it moved too few bytes in %.0f s", TRANSFER_STALLED_S)
            self.handle_close()
