"""The formats of access logs by name, and the guess of a format from the first lines (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from .json_formats import CADDY, TRAEFIK, guessed_json, json_format
from .json_formats import ENVOY as ENVOY_JSON
from .line_formats import ALB, CLF, ENVOY, HAPROXY, ONLY_CLF, LineFormat, W3cFormat, apache_format, nginx_format
from .log_entries import Entry, FormatError, LogFormat


class EnvoyFormat:
    """Envoy's lines of text and its objects of JSON, in any order."""

    name = "envoy"

    def __init__(self) -> None:
        self._of_json, self._of_text = json_format(ENVOY_JSON, self.name), LineFormat(self.name, re.compile(ENVOY))

    def number_visitors(self, visitor_of: Callable[[str], str]) -> bool:
        return self._of_json.number_visitors(visitor_of) and self._of_text.number_visitors(visitor_of)

    def parse(self, line: str) -> Entry | str:
        return self._of_text.parse(line) if line.startswith("[") else self._of_json.parse(line)


_NAMED: Final[dict[str, Callable[[], LogFormat]]] = {
    "combined": lambda: LineFormat("combined", re.compile(CLF)),
    "common": lambda: LineFormat("common", re.compile(CLF)),
    "vhost": lambda: LineFormat("vhost", re.compile(r"(?P<host>[^ :]+)(?::\d+)? " + CLF)),
    "caddy": lambda: json_format(CADDY, "caddy"),
    "traefik": lambda: json_format(TRAEFIK, "traefik"),
    "envoy": EnvoyFormat,
    "alb": lambda: LineFormat("alb", re.compile(ALB), at_end=True),
    "haproxy": lambda: LineFormat("haproxy", re.compile(HAPROXY)),
    "w3c": W3cFormat,
}
NAMES: Final = tuple(_NAMED)
AUTO: Final = (
    "caddy",
    "traefik",
    "envoy",
    "vhost",
    "common",
    "combined",
    "alb",
    "haproxy",
    "w3c",
)  # the first of equals is taken
AUTO_LINES: Final = 100


def format_of(text: str) -> LogFormat:
    """Return the format of a ``--format``; raises FormatError."""
    if text in _NAMED:
        return _NAMED[text]()
    kind, colon, rest = text.partition(":")
    makers: dict[str, Callable[[str], LogFormat]] = {
        "nginx": nginx_format,
        "apache": apache_format,
        "json": json_format,
    }
    if not colon or kind not in makers:
        known = ", ".join(("auto", *NAMES, *(f"{name}:..." for name in makers)))
        raise FormatError(f"no format {text!r}; there are {known}")
    return makers[kind](rest)


def guessed(lines: Iterable[str]) -> tuple[LogFormat, int] | None:
    """Return the format that reads most of the lines, and how many; None if none reads half of them."""
    looked = [line for line in lines if line.strip()]
    made = [_NAMED[name]() if name != "common" else LineFormat(name, re.compile(ONLY_CLF)) for name in AUTO]
    guess = next((one for line in looked if (one := guessed_json(line)) is not None), None) if looked else None
    candidates: list[LogFormat] = [*made, *([guess] if guess is not None else [])]
    counts = [sum(isinstance(one.parse(line), Entry) for line in looked) for one in candidates]
    comments = sum(line.startswith("#") for line in looked)
    best = max(range(len(candidates)), key=lambda at: counts[at])
    if not counts[best] or counts[best] * 2 < len(looked) - comments:
        return None
    name = candidates[best].name
    return (_NAMED[name]() if name in _NAMED else candidates[best]), counts[best]
