"""Formats of access logs with an object of JSON a line, as proxies write them (pure).

    json:NAME=FIELD,...     FIELD may be dotted (``request.uri``: nested, or a key with a dot); names are time, method,
                            target, status, host, visitor, duration (with its unit, ``duration=took:ms``), request (a
                            whole request line); the word ``end``: the time is that of the end
    caddy                   the end, in seconds, and the duration; Caddy's console format too, which has the time before
                            the object (2025/10/23 19:21:04.824 INFO http.log.access {...})
    traefik, envoy          the start; Envoy's default is a line of text, see ``line_formats``

Invariants:
    I1. Every line gives an Entry or a reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from .log_entries import NO_REQUEST, UNITS_US, UNREADABLE, Entry, FormatError, Times, any_time

_JSON_NAMES: Final = ("time", "method", "target", "status", "host", "duration", "request", "visitor")
_JSON_GUESSES: Final[Mapping[str, tuple[str, ...]]] = {
    "time": (
        *("StartUTC", "start_time", "ts", "time_iso8601", "time_local", "msec", "@timestamp", "timestamp", "time"),
        *("datetime", "date"),
    ),
    "method": ("request.method", "RequestMethod", "request_method", "method", "http_method", "verb"),
    "target": (*("request.uri", "RequestPath", "request_uri", "path", "uri", "url", "http_path", "request_path"),),
    "status": ("status", "DownstreamStatus", "response_code", "status_code", "http_status", "code", "response.status"),
    "host": ("request.host", "RequestHost", "authority", "http_host", "server_name"),  # "host" is often a visitor's
    "duration": ("duration", "request_time"),
    "request": ("request", "request_line"),
    "visitor": (
        "request.remote_ip",
        "ClientHost",
        "downstream_remote_address",
        "remote_addr",
        "client_ip",
        "remote_ip",
    ),
}


_CONSOLE: Final = re.compile(r"(\d{4})/(\d\d)/(\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)")


class JsonFormat:
    """An object a line."""

    def __init__(
        self, name: str, fields: Mapping[str, Sequence[str]], *, at_end: bool = False, unit: str = "s"
    ) -> None:
        """Take the path to the value of each of our names, and the ``unit`` of a duration.

        ``at_end``: the time is that of the end of the request.
        """
        self.name = name
        self._fields = fields
        self._at_end = at_end
        self._unit_us = UNITS_US[unit]
        self._times = Times(any_time)
        self._visitor_of: Callable[[str], str] | None = None

    def number_visitors(self, visitor_of: Callable[[str], str]) -> bool:
        self._visitor_of = visitor_of if "visitor" in self._fields else None
        return self._visitor_of is not None

    def parse(self, line: str) -> Entry | str:
        at = line.find("{")  # journals and containers write a prefix
        try:
            values = json.loads(line[at:] if at > 0 else line)
        except ValueError:
            return UNREADABLE
        if not isinstance(values, dict):
            return UNREADABLE
        found = {name: _value(values, path) for name, path in self._fields.items()}
        time = found.get("time")
        if time is None and at > 0 and (console := _CONSOLE.search(line, 0, at)) is not None:
            time = f"{console[1]}-{console[2]}-{console[3]}T{console[4]}"
        if isinstance(time, bool) or not isinstance(time, str | int | float):
            return NO_REQUEST
        method, target = found.get("method"), found.get("target")
        if isinstance(found.get("request"), str) and not isinstance(target, str):
            method, _, rest = found["request"].partition(" ")
            target = rest.rpartition(" ")[0] or rest
        if not isinstance(method, str) or not isinstance(target, str) or not method or not target:
            return NO_REQUEST
        try:
            time_us, is_whole = self._times.at(time if isinstance(time, str) else _decimal(time))
            status = int(found.get("status") or 0)
        except (ValueError, KeyError, IndexError, TypeError):
            return UNREADABLE
        host, duration = found.get("host"), found.get("duration")
        before_us = 0
        if self._at_end and isinstance(duration, int | float | str):
            try:
                before_us = round(float(duration) * self._unit_us)
            except ValueError:
                before_us = 0
        target = target.replace(" ", "%20")
        visitor = "" if self._visitor_of is None else self._visitor_of(str(found["visitor"] or ""))
        host = host if isinstance(host, str) else ""
        return Entry(time_us - before_us, is_whole, method, target, status, host, before_us, visitor)


def _decimal(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:.6f}"


def _value(values: dict[str, Any], path: Sequence[str]) -> Any:
    if len(path) == 1:
        return values.get(path[0])
    found: Any = values
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return values.get(".".join(path)) if found is None else found


def json_format(fields: str, name: str = "json") -> JsonFormat:
    """Return the format of ``time=ts,target=request.uri,...``; ``duration=FIELD:ms`` has its unit, ``end`` is a mark.

    The word ``end`` says that the time is that of the end of a request.
    """
    found: dict[str, tuple[str, ...]] = {}
    at_end, unit = False, "s"
    for part in filter(None, (part.strip() for part in fields.split(","))):
        ours, equals, field = part.partition("=")
        if part == "end":
            at_end = True
            continue
        if not equals or ours not in _JSON_NAMES:
            raise FormatError(f"{part!r} is not of the form NAME=FIELD; names are {', '.join(_JSON_NAMES)}")
        if ours == "duration":
            field, _, given = field.partition(":")
            unit = given or unit
        found[ours] = tuple(field.split("."))
    if "time" not in found or not ("request" in found or {"method", "target"} <= found.keys()):
        raise FormatError("a JSON format needs time=, and request= or method= with target=")
    if unit not in UNITS_US:
        raise FormatError(f"no unit {unit!r} of a duration; there are {', '.join(UNITS_US)}")
    return JsonFormat(name, found, at_end=at_end, unit=unit)


def guessed_json(line: str) -> JsonFormat | None:
    """Return a format for objects like the one of ``line``, by usual names of fields; None if it has none of them.

    Its name is the text that ``json_format`` reads.  A field ``request_time`` is nginx's, whose times are of ends.
    """
    try:
        values = json.loads(line[max(line.find("{"), 0) :])
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    found: dict[str, tuple[str, ...]] = {}
    for name, guesses in _JSON_GUESSES.items():
        for guess in guesses:
            path = tuple(guess.split("."))
            if isinstance(_value(values, path), str | int | float):
                found[name] = path
                break
    if "time" not in found or not ("request" in found or {"method", "target"} <= found.keys()):
        return None
    fields = ",".join(f"{name}={'.'.join(path)}" for name, path in found.items())
    is_at_end = found.get("duration") == ("request_time",)
    return JsonFormat(f"json:{fields}{',end' if is_at_end else ''}", found, at_end=is_at_end)


CADDY: Final = (
    "time=ts,method=request.method,target=request.uri,status=status,host=request.host,duration=duration,end,"
    "visitor=request.remote_ip"
)
TRAEFIK: Final = (
    "time=StartUTC,method=RequestMethod,target=RequestPath,status=DownstreamStatus,host=RequestHost,visitor=ClientHost"
)
ENVOY: Final = (
    "time=start_time,method=method,target=path,status=response_code,host=authority,visitor=downstream_remote_address"
)
