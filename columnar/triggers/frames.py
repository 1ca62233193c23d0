"""(pure) The frames between the store and its trigger worker on their socket.

    frame := length:u32 msgpack-array           big-endian; the first element names the kind

    to the worker     ["run", [[id, trigger, function, side by side, [change, ...], progress, is batch, owner], ...]]
                                                                  several changes that are no batch are a run: each
                                                                  change is a call of its own, with successive ids;
                                                                  clients act as the owner; "" for the store itself
                      ["go", id]                                  the effects are written: run the next slice
                      ["check", id, function]
                      ["levels", {logger: level}]                 of the loggers with a level of their own
                      ["reload", id]                              import changed source; answered by "checked"
    to the store      ["ready", 0]                                first of all: calls may be sent
                      ["began", [id, ...]]                        these calls run, their modules are imported; sent if
                                                                  a call takes long or is the first of its module
                      ["did", [[id, what, effects, error, output, checkpoint, used, computed], ...]]
                              or, of changes of a run that are done in succession, from id on,
                              [id, [effects of each change, ...], used, computed]
                      ["checked", id, error | nil]
                      ["alive", 0]                                calls run, and there was no other frame to send

    what := "done" | "more" (continues after "go") | "failed" (error: the traceback's text) | "later" (error: seconds)
            | "named" (error: [[place of a change in the batch, text], ...])
            | "blocked" (error: text) by an obstacle that is no fault of its changes
    effects := [effect, ...] as in ``model.effect``, of this slice; if it failed, those before its checkpoint
               of a batch [[place of its change, effect], ...]
    progress, checkpoint := [state, part] | nil, the part as in ``contribution_buffer``
    used, computed: the time that this slice took, and its processor time, in microseconds
    change := [table, row, stamp, sequence, [[kind, column, timestamp, value], ...],
               {column: value} now | nil, {column: value} before | nil, attempt, is_backfill, the client's timestamp,
               hops, {column: value} after | nil, {look: looked} | nil, is_repeat]
    message := [queue, number, body, name, group, priority, attempt, pushed: ms since 1970, {name: value} headers,
                error of the last attempt]                    instead of a change, if the function serves a queue
    looked := [table, row, [family with further cells, ...], [[column, value], ...], why it cannot be read | "",
               whether that is temporary]

Both ends have the same version and run on the same machine; frames are never stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, Final

from columnar.limits import LONGEST_LATER_S

_LENGTH: Final = Struct(">I")
PLACES: Final = 64  # calls that a worker has at most; it has a thread for each that blocks
FRAME_BYTES: Final = 256 * 1024 * 1024  # one change of one row: cells now, before and changed
CHANGE_BYTES: Final = FRAME_BYTES - 16 * 1024 * 1024  # of one change: the frame also has earlier changes, and headers
FULL_FRAME_BYTES: Final = 256 * 1024  # calls and outcomes are buffered up to about this
BATCH_BYTES: Final = 4 * 1024 * 1024  # of the changes of one call, except for its last: a frame is packed as a whole
STEP_BYTES: Final = 64  # of a step's objects, in addition to its column and value
IS_BACKFILL: Final = 8  # its place in a change
HOPS: Final = 10
RUN_PARTS: Final = 4  # of an outcome of changes of a run
MESSAGE_PARTS: Final = 10  # a change has more


def pack(*parts: Any) -> bytes:
    import msgpack  # half a megabyte that a server without triggers needs not

    body: bytes = msgpack.packb(parts)
    return _LENGTH.pack(len(body)) + body


def size_of(change: list[Any]) -> int:
    """Estimate the bytes of a change's cells."""
    size = sum([len(step[1]) + len(step[3]) + STEP_BYTES for step in change[4]])
    for image in (change[5], change[6], change[11]):
        if image:
            size += sum(map(len, image)) + sum(map(len, image.values()))
    for lookup in (change[12] or {}).values():
        size += sum([len(column) + len(value) for column, value in lookup[3]])
    return size


class Frames:
    """Cuts the byte stream of a socket into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[list[Any]]:
        """Yield the frames that ``data`` completes.

        Raises ValueError for a frame over FRAME_BYTES, or one that is no array of msgpack.
        """
        import msgpack

        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > FRAME_BYTES:
                raise ValueError(f"a frame of {length} bytes is over the bound of {FRAME_BYTES}")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            frame = msgpack.unpackb(body, strict_map_key=False, max_bin_len=FRAME_BYTES)
            if not isinstance(frame, list) or len(frame) < 2:
                raise ValueError("a frame that is no array of a kind and a number")
            yield frame


def check_outcome(outcome: Any) -> None:
    """Raise ValueError if ``outcome`` is no outcome of a "did" frame."""
    match outcome:
        case [int(), list(effects), int(), int()] if effects and all(isinstance(one, list) for one in effects):
            return
        case [int(), str(what), list(), error, str(), checkpoint, int(), int()] if _is_error(what, error) and _is_state(
            checkpoint
        ):
            return
    raise ValueError(f"no outcome of a call: {str(outcome)[:60]}")


def _is_error(what: str, error: Any) -> bool:
    if what == "named":
        return isinstance(error, list) and all(
            isinstance(one, list) and len(one) == 2 and isinstance(one[0], int) and isinstance(one[1], str)
            for one in error
        )
    if what == "later":
        return isinstance(error, float) and 0 <= error <= LONGEST_LATER_S
    return error is None or isinstance(error, str)


def _is_state(checkpoint: Any) -> bool:
    if checkpoint is None:
        return True
    is_pair = isinstance(checkpoint, list) and len(checkpoint) == 2
    return is_pair and isinstance(checkpoint[0], bytes) and isinstance(checkpoint[1], int)
