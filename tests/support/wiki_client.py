"""The wiki without a server: a MemoryWiki behind the application, called through Werkzeug's test client."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any, Self

from werkzeug.test import Client, TestResponse

from tests.support.memory_wiki import MemoryWiki
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.sessions import Sessions
from wikka_port.app import make_application
from wikka_port.config import WikiConfig
from wikka_port.counters import Counters
from wikka_port.visitors import Status

_FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


class WikiClient:
    """A client of the wiki; ``now`` is the clock of tokens and rates, in seconds."""

    def __init__(self, wiki: Any = None, **config: Any) -> None:
        """Take ``wiki``, a wiki over a store in the place of a MemoryWiki."""
        self.wiki = MemoryWiki() if wiki is None else wiki
        self.now = 1_000_000.0
        self.config = replace(WikiConfig(secret=b"s" * 32, password_memory_kib=64), **config)
        self.counters = Counters.of_process()
        self.application = make_application(self.wiki, self.config, clock=lambda: self.now, counters=self.counters)
        self.client = Client(self.application)

    def other_visitor(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__ = {**self.__dict__, "client": Client(self.application)}
        return other

    def signed_in(self, name: str, *, status: Status = "active", admin: bool = False) -> Self:
        """Return a browser in which a new account of that name is signed in."""
        account = Directory(self.wiki.rows, self._clock_ms).make(name, status=status, admin=admin)
        other = self.other_visitor()
        cookie = Sessions(self.wiki.rows, self._clock_ms).begin(account, network="192.0.2.0", agent="a test")
        assert cookie is not None
        other.client.set_cookie("wikka_session", cookie)
        return other

    def _clock_ms(self) -> int:
        return int(self.now * 1_000)

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.client.get(path, **options)

    def form(self, path: str) -> dict[str, str]:
        """Return the hidden fields of the form at ``path``."""
        return self.form_of(self.get(path))

    @staticmethod
    def form_of(answer: TestResponse) -> dict[str, str]:
        return {key: unescape(value) for key, value in _FIELD.findall(answer.text)}

    def save(self, path: str, body: str, **fields: str) -> TestResponse:
        """Save as a browser does: fetch the form of the page at ``path`` and send it back."""
        return self.post(path + "/edit", {**self.form(path + "/edit"), "body": body, **fields})

    def post(self, path: str, fields: dict[str, str], **options: Any) -> TestResponse:
        return self.client.post(path, data=fields, **options)
