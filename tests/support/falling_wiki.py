"""A wiki on a store whose processes fall after a step of their work: nothing behind that step is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from wikka_port.pages import Wiki

_BEGINNING_MS: Final = 1_790_000_000_000
_TICK_MS: Final = 1_000


class Fallen(BaseException):
    """The process is dead: nothing cleans up behind it."""


class Clock:
    """A time of day that goes on by a second with each look."""

    def __init__(self) -> None:
        self.now = _BEGINNING_MS

    def __call__(self) -> int:
        self.now += _TICK_MS
        return self.now


class FallingWiki:
    """A wiki that the application indexes, its clock, and processes that fall after a step."""

    def __init__(self, port: int, kind: str, *heard: str) -> None:
        """Take the store's ``port``, and ``plain`` as the kind of a plain HBase.

        ``heard`` are parts of a wiki that tell their steps, beside its mover.
        """
        self.port, self.kind, self.clock = port, kind, Clock()
        self._heard = ("mover", *heard)
        self.wiki = self.opened()

    def opened(self) -> Wiki:
        wiki = Wiki("127.0.0.1", self.port, indexes="application", clock=self.clock)
        wiki.store._is_columnar = self.kind != "plain"
        return wiki

    def fall(self, step: str, work: Callable[[Wiki], object]) -> bool:
        """Run ``work`` in a process that falls after the step; return whether it reached it."""
        wiki = self.opened()

        def reached(done: str) -> None:
            if done == step:
                raise Fallen

        for part in self._heard:
            getattr(wiki, part).on_step_done = reached
        with suppress(Fallen):
            work(wiki)
            return False
        wiki.store.close()
        return True


Around = Callable[[Callable[[], Any], str, Sequence[Any]], Any]  # a call, its method and its arguments -> the answer


def watch_calls(wiki: Wiki, around: Around) -> None:
    """Have ``around`` make each call of the wiki to the store."""
    connected = wiki.store._connected

    def watched_by(request: Callable[..., Any]) -> Callable[..., Any]:
        return lambda service, method, args: around(lambda: request(service, method, args), method, args)

    def watched() -> Any:
        connection = connected()
        if not hasattr(connection, "is_watched"):
            connection.is_watched = True
            for client in (connection.client, connection._extension):
                client._call = watched_by(client._call)
        return connection

    wiki.store._connected = watched  # type: ignore[method-assign]


class FallingAtCall:
    """A process of a wiki that falls at its call of the store of this number, before or after it is carried out."""

    def __init__(self, wiki: Wiki, fatal: int, *, is_sent: bool) -> None:
        self.wiki = Wiki(wiki.store.host, wiki.store.port, indexes=wiki.indexes)
        self.wiki.store._is_columnar = wiki.store._is_columnar
        self.has_fallen = False
        self._fatal, self._is_sent, self._calls = fatal, is_sent, 0
        watch_calls(self.wiki, self._call)

    def run(self, work: Callable[[Wiki], object]) -> None:
        with suppress(Fallen):
            work(self.wiki)
        self.wiki.store.close()

    def _call(self, call: Callable[[], Any], method: str, args: Sequence[Any]) -> Any:
        number, self._calls = self._calls, self._calls + 1
        if number != self._fatal:
            return call()
        self.has_fallen = True
        if self._is_sent:
            call()
        raise Fallen
