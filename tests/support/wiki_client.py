"""The wiki without a server: a MemoryWiki behind the application, asked through Werkzeug's test client."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any

from werkzeug.test import Client, TestResponse

from tests.support.memory_wiki import MemoryWiki
from wikka_port.app import make_application
from wikka_port.config import WikiConfig

_FIELD = re.compile(r'<input type="hidden" name="(csrf|base)" value="([^"]*)"')


class WikiClient:
    """``now`` is the clock of tokens and rates, in seconds."""

    def __init__(self, **config: Any) -> None:
        self.wiki = MemoryWiki()
        self.now = 1_000_000.0
        self.config = replace(WikiConfig(secret=b"s" * 32), **config)
        self.application = make_application(self.wiki, self.config, clock=lambda: self.now)
        self.client = Client(self.application)

    def other_visitor(self) -> WikiClient:
        other = object.__new__(WikiClient)
        other.__dict__ = {**self.__dict__, "client": Client(self.application)}
        return other

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.client.get(path, **options)

    def form(self, path: str) -> dict[str, str]:
        """The hidden fields of the form at ``path``."""
        return {key: unescape(value) for key, value in _FIELD.findall(self.get(path).text)}

    def save(self, path: str, body: str, **fields: str) -> TestResponse:
        """What a browser does: fetch the form of the page at ``path`` and send it back."""
        return self.post(path + "/edit", {**self.form(path + "/edit"), "body": body, **fields})

    def post(self, path: str, fields: dict[str, str], **options: Any) -> TestResponse:
        return self.client.post(path, data=fields, **options)
