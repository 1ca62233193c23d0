"""(pure) Routes: which handler a method and a path have.

    /version             a part as it is
    /{table}/{row}       a part that the handler gets as a parameter, percent-decoded: bytes, as keys are; not empty
    /{table}/{rest*}     the rest of the path, at least a part of it, as one parameter; slashes within stay

A path is cut at its slashes before it is decoded, so ``%2F`` is a byte of a part.  If several routes have a path,
literal parts win from the left, and a rest comes last.  HEAD has the handler of GET, unless it has its own.

Knows nothing of connections and of handlers.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote_to_bytes

from columnar.wire.http.exchange import Handler, Request, Response
from columnar.wire.http.problems import Problem, problem_response

QUERY_PAIRS: Final = 1_000  # of a query
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def decoded(text: str) -> bytes:
    """Return percent-encoded text as the bytes that it means.  Raises Problem."""
    if _BROKEN_ESCAPE.search(text):
        raise Problem(400, f"'{text[:200]}' has a % without two digits; write %25 for the character itself")
    return unquote_to_bytes(text)


def query_pairs(query: str) -> list[tuple[str, bytes]]:
    """Return names and values of a query, in order; a plus is a space, as in forms.  Raises Problem."""
    parts = [part for part in query.split("&") if part] if query else []
    if len(parts) > QUERY_PAIRS:
        raise Problem(400, f"the query has {len(parts)} parts, the limit is {QUERY_PAIRS}")
    pairs = (part.replace("+", " ").partition("=") for part in parts)
    return [(decoded(name).decode("utf-8", "replace"), decoded(value)) for name, _, value in pairs]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A path of a route, by its parts: a literal, or "" and the name of a parameter."""

    parts: tuple[tuple[str, str], ...]
    has_rest: bool  # the last part takes the rest

    @classmethod
    def of_text(cls, text: str) -> _Pattern:
        """Return the pattern that is written as ``text``.  Raises ValueError."""
        parts = []
        names = []
        for part in text.removeprefix("/").split("/"):
            name = part[1:-1].removesuffix("*") if part.startswith("{") and part.endswith("}") else ""
            names += [name] if name else []
            parts.append(("", name) if name else (part, ""))
        has_rest = text.endswith("*}")
        if not text.startswith("/") or len(names) != len(set(names)) or text.count("*}") > has_rest:
            raise ValueError(f"'{text}' is no route; write it as /a/{{parameter}}/{{rest*}}")
        return cls(tuple(parts), has_rest)

    @property
    def order(self) -> list[int]:
        """Sorts patterns: literal parts first, a rest last."""
        kinds = [0 if not name else 1 for _, name in self.parts]
        return [*kinds[:-1], 2] if self.has_rest else kinds

    def parameters(self, path: list[str]) -> dict[str, str] | None:
        """Return the raw parameters of a path that has this pattern; else None."""
        parts, found = self.parts, {}
        if len(path) < len(parts) or (len(path) > len(parts) and not self.has_rest):
            return None
        for number, (literal, name) in enumerate(parts):
            part = path[number]
            if self.has_rest and number == len(parts) - 1:
                part = "/".join(path[number:])
            if literal != part and not name:
                return None
            if name and not part:
                return None
            if name:
                found[name] = part
        return found


class Routes:
    """The routes of a port, constant; itself a handler."""

    def __init__(self, routes: Iterable[tuple[str, str, Handler]]) -> None:
        """Pass method, path and handler of each.  Raises ValueError if two have the same, or a path is none."""
        handlers: dict[_Pattern, dict[str, Handler]] = {}
        for method, text, handler in routes:
            of_path = handlers.setdefault(_Pattern.of_text(text), {})
            if method in of_path:
                raise ValueError(f"{method} {text} has two routes")
            of_path[method] = handler
        for of_path in handlers.values():
            if "GET" in of_path:
                of_path.setdefault("HEAD", of_path["GET"])
        self._handlers = sorted(handlers.items(), key=lambda item: item[0].order)

    def methods(self, path: str) -> list[str]:
        """Return the methods that a path has, in order; none if it is unknown."""
        parts = path.removeprefix("/").split("/")
        found = {m for pattern, of_path in self._handlers if pattern.parameters(parts) is not None for m in of_path}
        return sorted(found)

    def find_handler(self, method: str, path: str) -> tuple[Handler, dict[str, bytes]]:
        """Return handler and parameters.  Raises Problem: 404, 405 with Allow, or 400 for a broken escape."""
        parts = path.removeprefix("/").split("/")
        for pattern, of_path in self._handlers:
            handler = of_path.get(method)
            raw = pattern.parameters(parts) if handler is not None else None
            if handler is not None and raw is not None:
                return handler, {name: decoded(value) for name, value in raw.items()}
        allowed = self.methods(path)
        if allowed:
            headers = (("Allow", ", ".join(allowed)),)
            raise Problem(405, f"{method} is not possible here, {', '.join(allowed)} is", headers=headers)
        raise Problem(404, f"there is nothing at {path[:200]}")

    def __call__(self, request: Request) -> Response | Awaitable[Response]:
        try:
            handler, parameters = self.find_handler(request.method, request.path)
        except Problem as problem:
            return problem_response(problem)
        return handler(replace(request, parameters=parameters) if parameters else request)
