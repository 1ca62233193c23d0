"""Formats of access logs with fields in a line of text (pure).

    common, combined, vhost         Apache's and nginx's own; fields that follow are not read
    nginx:FORMAT   apache:FORMAT    a ``log_format`` or ``LogFormat`` as a configuration has it
    alb, haproxy, w3c               of Amazon's balancers, of HAProxy (option httplog), of IIS
    envoy                           its default line, and Istio's

A format string becomes one regular expression.  A field that is not needed matches up to the character that follows it.
The time of Apache, HAProxy and Envoy is the start of a request; that of nginx, Amazon and IIS is its end, which gives
the start with the duration beside it (``$request_time``).

Invariants:
    I1. Every line gives an Entry or a reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from .log_entries import (
    COMMENT,
    MONTHS,
    NO_REQUEST,
    UNITS_US,
    UNREADABLE,
    Entry,
    FormatError,
    Times,
    any_time,
    iso_time,
)

_QUOTED: Final = r"[^\"\\]*(?:\\.[^\"\\]*)*"
_REQUEST: Final = rf"(?P<request>{_QUOTED})"
# Traefik leaves quotes in a request as they are, and logs status 0 of a connection that became a web socket
_LENIENT: Final = r"(?P<request>[^\"\\]*(?:(?:\\.|\"(?! (?:\d{3}|-|0) ))[^\"\\]*)*)"
CLF: Final = r"(?P<visitor>\S+) \S+ .+? \[(?P<time>[^\]]+)\] \"" + _LENIENT + r"\" (?P<status>\d{3}|-|0)(?: |$)"
ONLY_CLF: Final = CLF.removesuffix("(?: |$)") + r" (?:\d+|-)\s*$"  # nothing follows, as Apache's common format has it
_ESCAPE: Final = re.compile(r"\\x([0-9A-Fa-f]{2})|\\(.)")


class LineFormat:
    """A regular expression with the groups time, request (or method and target), status, host, duration (seconds)."""

    def __init__(self, name: str, pattern: re.Pattern[str], *, at_end: bool = False) -> None:
        """Take ``at_end``: the time is that of the end of the request."""
        self.name = name
        self._pattern = pattern
        self._at_end = at_end
        self._times = Times(any_time)
        places = self._places = pattern.groupindex
        self._time, self._request = places["time"], places.get("request", 0)
        self._visitor_of: Callable[[str], str] | None = None

    def number_visitors(self, visitor_of: Callable[[str], str]) -> bool:
        self._visitor_of = visitor_of if "visitor" in self._places else None
        return self._visitor_of is not None

    def parse(self, line: str) -> Entry | str:
        match = self._pattern.match(line)
        if match is None:
            return UNREADABLE
        try:
            time_us, is_whole = self._times.at(match[self._time])
        except (ValueError, KeyError, IndexError):
            return UNREADABLE
        places = self._places
        if self._request:
            method, blank, target = match[self._request].partition(" ")
            target, _, version = target.rpartition(" ") if " " in target else (target, "", "")
            if version and not version.startswith("HTTP/"):
                target = f"{target} {version}"
        else:
            method, target = match["method"], match["target"]
            blank = target
        status = match["status"] if "status" in places else "200"
        if not blank or not method.isalpha() or status == "0":
            return NO_REQUEST
        if "\\" in target:
            target = _ESCAPE.sub(_unescaped, target)
        if " " in target:
            target = target.replace(" ", "%20")
        host = match["host"] if "host" in places else ""
        before_us = self._duration(match["duration"]) if self._at_end and "duration" in places else 0
        number = int(status) if status.isdigit() else 0
        visitor = "" if self._visitor_of is None else self._visitor_of(match["visitor"])
        host = "" if host == "-" else host
        return Entry(time_us - before_us, is_whole, method, target, number, host, before_us, visitor)

    def _duration(self, text: str) -> int:
        try:
            return sum(round(float(part) * UNITS_US["s"]) for part in text.split() if float(part) > 0)
        except ValueError:
            return 0


def _unescaped(found: re.Match[str]) -> str:
    return f"%{found[1].upper()}" if found[1] else "%22" if found[2] == '"' else f"%{ord(found[2]) & 0xFF:02X}"


_NGINX: Final = {  # variable: the group, and the pattern of its text
    "time_local": ("time", r"[^\]]+"),
    "time_iso8601": ("time", r"\S+"),
    "msec": ("time", r"[\d.]+"),
    "request": ("request", _QUOTED),
    "request_method": ("method", r"\S+"),
    "request_uri": ("target", r"\S+"),
    "uri": ("target", r"\S+"),
    "status": ("status", r"\d{3}|-"),
    "host": ("host", r"[^\s/]*"),
    "http_host": ("host", r"[^\s/]*"),
    "server_name": ("host", r"[^\s/]*"),
    "request_time": ("duration", r"[\d.]+|-"),
    "remote_addr": ("visitor", r"\S+"),
}
_APACHE: Final = {
    "t": ("time", r"[^\]]+"),
    "r": ("request", _QUOTED),
    "m": ("method", r"\S+"),
    "U": ("target", r"\S+"),
    "s": ("status", r"\d{3}|-"),
    "v": ("host", r"[^\s/]*"),
    "V": ("host", r"[^\s/]*"),
    "h": ("visitor", r"\S+"),
    "a": ("visitor", r"\S+"),
}
_APACHE_TIMES: Final = {"sec": 1, "msec": 1, "usec": 1}
_NGINX_PART: Final = re.compile(r"\$\{?(\w+)\}?")
_APACHE_PART: Final = re.compile(r"%(?:[!\d,]*)[<>]?(?:\{([^}]*)\})?(\^?[a-zA-Z]{1,2}|%)")


def nginx_format(text: str) -> LineFormat:
    """Return the format of nginx's ``log_format``: the string, or the whole directive with its quotes."""
    joined = _unquoted(text, "log_format")
    return _from_string("nginx", joined, _NGINX_PART, lambda part: _NGINX.get(part[1]), at_end=True)


def apache_format(text: str) -> LineFormat:
    """Return the format of Apache's ``LogFormat``: the string, or the whole directive with its quotes."""
    joined = _unquoted(text, "LogFormat").replace('\\"', '"')

    def group_of(part: re.Match[str]) -> tuple[str, str] | None:
        inside, name = part[1], part[2]
        if name == "t" and inside is None:
            return "[time]", r"[^\]]+"
        if name == "t":
            return ("time", r"[\d.]+") if inside.removeprefix("begin:") in _APACHE_TIMES else ("strftime", inside)
        if name == "i" and inside is not None and inside.lower() == "host":
            return "host", r"[^\s/]*"
        return _APACHE.get(name) if inside is None else None

    return _from_string("apache", joined, _APACHE_PART, group_of, at_end=False)


def _unquoted(text: str, directive: str) -> str:
    text = text.strip().rstrip(";").strip()
    if not text.startswith(directive):
        return text
    quoted = re.findall(r"'([^']*)'" if directive == "log_format" else r'"((?:[^"\\]|\\.)*)"', text)
    if not quoted:
        raise FormatError(f"no quoted string follows {directive}")
    return "".join(quoted)


def _from_string(
    name: str,
    text: str,
    part: re.Pattern[str],
    group_of: Callable[[re.Match[str]], tuple[str, str] | None],
    *,
    at_end: bool,
) -> LineFormat:
    pattern, at, seen = "", 0, set[str]()
    for found in part.finditer(text):
        pattern += re.escape(text[at : found.start()])
        at = found.end()
        known = group_of(found)
        if known is not None and known[0] == "strftime":
            raise FormatError(f"the time {found[0]} cannot be read: %t, %{{sec}}t, %{{msec}}t and %{{usec}}t can be")
        if found[0] == "%%":
            pattern += "%"
        elif known is None or known[0].strip("[]") in seen:
            following = text[at : at + 1]
            pattern += (
                _QUOTED
                if following == '"'
                else r".*?"
                if following in ("", "$", "%")
                else rf"[^{re.escape(following)}]*"
            )
        else:
            group = known[0].strip("[]")
            seen.add(group)
            inner = f"(?P<{group}>{known[1]})"
            pattern += rf"\[{inner}\]" if known[0].startswith("[") else inner
    pattern += re.escape(text[at:])
    if "time" not in seen or not ({"request"} <= seen or {"method", "target"} <= seen):
        raise FormatError(f"the {name} format needs a time and a request (or a method and an address): {text!r}")
    return LineFormat(name, re.compile(pattern), at_end=at_end)


# Envoy's default line; Istio's has more fields before the sizes and after the server
ENVOY: Final = (
    r"\[(?P<time>[^\]]+)\] \"" + _REQUEST + r"\" (?P<status>\d{1,3}) .*?\d+ \d+ \d+ (?:\d+|-) \"(?P<visitor>[^\"]*)\""
    r" \"[^\"]*\" \"[^\"]*\" \"(?P<host>[^\"]*)\""
)
ALB: Final = (
    r"(?:\w+ )?(?P<time>\d{4}-\d\d-\d\dT\S+) \S+ (?P<visitor>\S+):\d+ \S+ (?P<duration>-?[\d.]+ -?[\d.]+ -?[\d.]+)"
    r" (?P<status>\d{3}|-) \S+ \d+ \d+ \"" + _REQUEST + r"\""
)
HAPROXY: Final = (
    r"(?:.*?: )?(?P<visitor>\S+):\d+ \[(?P<time>[^\]]+)\] \S+ \S+ [\d/+-]+ (?P<status>-?\d+) [\d+]+ .*\""
    + _REQUEST
    + r"\"\s*$"
)


class W3cFormat:
    """W3C's extended log, as IIS writes it: ``#Fields:`` says which fields follow, ``#Date:`` of which day they are."""

    name = "w3c"

    def __init__(self) -> None:
        self._fields: list[str] = []
        self._date = ""  # of the directive
        self._times = Times(iso_time)
        self._visitor_of: Callable[[str], str] | None = None

    def number_visitors(self, visitor_of: Callable[[str], str]) -> bool:
        self._visitor_of = visitor_of
        return True

    def parse(self, line: str) -> Entry | str:
        if line.startswith("#"):
            if line.startswith("#Fields:"):
                self._fields = line.split()[1:]
            elif line.startswith("#Date:") and len(words := line.split()) > 1:
                day, _, rest = words[1].partition("-")
                month, _, year = rest.partition("-")
                named = month.capitalize() in MONTHS  # 12-Jan-1996, as W3C's text has it; IIS writes 1996-01-12
                self._date = f"{year}-{MONTHS.index(month.capitalize()) + 1:02d}-{day}" if named else words[1]
            return COMMENT
        values = dict(zip(self._fields, line.split(), strict=False))
        values.setdefault("date", self._date)
        if "cs-uri" in values:
            values.setdefault("cs-uri-stem", values["cs-uri"])
        if not {"time", "cs-method", "cs-uri-stem"} <= values.keys():
            return UNREADABLE
        try:
            time_us, is_whole = self._times.at(f"{values['date']}T{values['time']}")
            before_us = int(values.get("time-taken", "0")) * 1_000
            status = int(values.get("sc-status", "200"))
        except ValueError:
            return UNREADABLE
        query = values.get("cs-uri-query", "-")
        target = values["cs-uri-stem"] + ("" if query == "-" else f"?{query}")
        host = values.get("cs-host", "-")
        method, host = values["cs-method"], "" if host == "-" else host
        visitor = "" if self._visitor_of is None else self._visitor_of(values.get("c-ip", ""))
        return Entry(time_us - before_us, is_whole, method, target, status, host, before_us, visitor)
