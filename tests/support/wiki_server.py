"""The wiki over a MemoryWiki on a port of its own, in a thread: for tests that need a real HTTP server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tests.support.memory_wiki import MemoryWiki
from wikka_port.app import make_application
from wikka_port.config import WikiConfig
from wikka_port.counters import Counters
from wikka_port.serve import listen
from wikka_port.wsgi_worker import BACKLOG, make_worker


@dataclass(frozen=True, slots=True)
class WikiServer:
    url: str
    wiki: Any  # a MemoryWiki, or a wiki on a store


@contextmanager
def running_wiki(wiki: Any = None, **given: Any) -> Iterator[WikiServer]:
    """Yield a running server of ``wiki``, or of a new MemoryWiki; ``given`` are values of its configuration."""
    wiki = wiki or MemoryWiki()
    config = replace(WikiConfig(secret=b"s" * 32, edits_per_minute=0), **given)
    listening = listen("127.0.0.1", 0, 1)[0]
    listening.listen(BACKLOG)
    counters = Counters.of_process()
    worker = make_worker(make_application(wiki, config, counters=counters), listening, config, counters)
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        yield WikiServer(f"http://127.0.0.1:{listening.getsockname()[1]}", wiki)
    finally:
        worker.stop()
        thread.join(15)
