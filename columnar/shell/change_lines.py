"""(pure) The events of a change stream as lines, for a person, a script or a program, and positions as text.

    position  the bytes of a position in base64, of the alphabet for URLs: no shell has to quote it
    script    kind, ms since 1970, row, then a field for each entry and each cell of an image, with tabs in between
    JSON      an object a line; bytes as they are typed

A cell is ``family:qualifier=value``.  A ``=`` in a qualifier is written as \\x3D, as it is typed.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from typing import Final

import click

from columnar.client.changes import Change, Entry, Forget, Row, StreamEvent
from columnar.errors import IllegalArgument
from columnar.model.change_stream import BEGINNING
from columnar.shell.shell_output import MAX_PRINTED_VALUE_BYTES, time_text
from columnar.shell.text import readable

_ARRAY: Final = b"\x93"  # msgpack's, of three elements, as every position of a server is one


def text_of_position(position: bytes) -> str:
    return urlsafe_b64encode(position).decode()


def position_of(text: str) -> bytes:
    """Raises IllegalArgument if the text is no position."""
    try:
        found = urlsafe_b64decode(text.encode("ascii"))
    except (binascii.Error, UnicodeEncodeError):
        found = b""
    is_one = found[:1] == _ARRAY or found == BEGINNING.encode() or found.isdigit()
    if not is_one or text_of_position(found) != text:
        raise IllegalArgument(f"'{text}' is no position: give the 'position' of an earlier line of --json as it was")
    return found


def event_in_json(event: StreamEvent, *, before: bool, after: bool) -> dict[str, object]:
    """Return the event for JSON; ``before`` and ``after`` say which images were requested."""
    position = {"position": text_of_position(event.position)}
    if isinstance(event, Change):
        images: dict[str, object] = {}
        if before:
            images["before"] = _image(event.before)
        if after:
            images["after"] = _image(event.after)
        return {
            "event": "change",
            "row": readable(event.row),
            "entries": [_entry(one) for one in event.entries],
            **images,
            "stamp": event.stamp,
            "sequence": event.sequence,
            "more": event.more,
            **position,
        }
    if isinstance(event, Row):
        cells = [
            {"column": readable(column), "value": readable(value), "timestamp": timestamp}
            for column, (value, timestamp) in event.cells.items()
        ]
        return {"event": "row", "row": readable(event.row), "cells": cells, "sequence": event.sequence, **position}
    if isinstance(event, Forget):
        return {"event": "forget", "start": readable(event.start), "stop": readable(event.stop), **position}
    return {"event": "idle", "up_to": event.up_to_ms, **position}


def _entry(one: Entry) -> dict[str, object]:
    value = {"value": readable(one.value)} if one.kind == "put" else {}
    return {"kind": one.kind, "column": readable(one.column), **value, "timestamp": one.timestamp}


def _image(cells: Mapping[bytes, bytes] | None) -> dict[str, str] | None:
    return None if cells is None else {readable(column): readable(value) for column, value in cells.items()}


def event_line(event: StreamEvent, *, before: bool, after: bool, for_people: bool) -> str:
    """Return the event as one line, without its end."""
    most = MAX_PRINTED_VALUE_BYTES if for_people else None
    fields = list(_fields(event, before, after, most))
    if isinstance(event, Change):
        when = time_text(event.stamp) if for_people else str(event.stamp)
        head = ["change", when, readable(event.row)]
    elif isinstance(event, Row):
        head = ["row", "-", readable(event.row)]
    else:
        head = ["forget", "-"]
    if not for_people:
        return "\t".join([*head, *fields])
    colour = "cyan" if isinstance(event, Change) else "yellow"
    shown = [click.style(head[0].ljust(6), fg=colour), click.style(head[1], dim=True), *head[2:]]
    return "  ".join([*(one for one in shown if one), ", ".join(fields)])


def _fields(event: StreamEvent, before: bool, after: bool, most: int | None) -> Iterator[str]:
    if isinstance(event, Change):
        for one in event.entries:
            yield _entry_text(one, most)
        if before:
            yield from _image_texts("before", event.before, most)
        if after:
            yield from _image_texts("after", event.after, most)
    elif isinstance(event, Row):
        for column, (value, _) in event.cells.items():
            yield _cell(column, value, most)
    elif isinstance(event, Forget):
        yield f"from {readable(event.start) or 'the first row'}"
        yield f"below {readable(event.stop)}" if event.stop else "to the last row"


def _image_texts(which: str, cells: Mapping[bytes, bytes] | None, most: int | None) -> Iterator[str]:
    if not cells:
        yield f"{which} unknown" if cells is None else f"{which} nothing"
        return
    for column, value in cells.items():
        yield f"{which} {_cell(column, value, most)}"


def _entry_text(one: Entry, most: int | None) -> str:
    if one.kind == "put":
        return f"put {_cell(one.column, one.value, most)}"
    at = f" at {one.timestamp}" if one.kind == "delete version" else ""
    return f"{one.kind} {readable(one.column)}{at}"


def _cell(column: bytes, value: bytes, most: int | None) -> str:
    name = readable(column).replace("=", "\\x3D")
    return f"{name}={readable(value, most)}"
