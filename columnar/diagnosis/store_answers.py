"""The answers of a store for a support archive, as they are: over its port and its pages.

Each question is asked alone, and a failure is noted beside the answers.  Blocks.
"""

from __future__ import annotations

import base64
import json
import ssl
import urllib.request
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from columnar.client import ClientTls, ClusterAdmin, Connection
from columnar.client.admin import RegionStatus
from columnar.client.cluster import ClusterStatus, Decision, Transition
from columnar.client.user_options import ClientUser
from columnar.wire.browsers import is_loopback

ANSWER_S: Final = 60.0
PAGE_S: Final = 15.0
PAGE_BYTES: Final = 8 * 1024 * 1024
LISTED_TABLES: Final = 1_000  # with their regions; of further tables the status has the sizes


@dataclass(slots=True)
class StoreAnswers:
    report: Any = None  # StatusReport; None without an answer, as are the next
    regions: dict[str, list[RegionStatus]] = field(default_factory=dict)  # by table
    cluster: ClusterStatus | None = None
    transitions: list[Transition] | None = None
    decisions: list[Decision] | None = None
    metrics: bytes | None = None
    slow: list[dict[str, Any]] | None = None  # the fields of ``SlowRequest``
    failures: dict[str, str] = field(default_factory=dict)  # by question: the class of the error

    def query_store(self, address: str, tls: ClientTls | None, user: ClientUser | None) -> None:
        """Ask the store at its port; after a status without an answer no more, because each question would wait."""
        connection = self._try("store", lambda: _connected(address, tls, user))
        if connection is None:
            return
        with closing(connection):
            self.report = self._try("status", connection.status)
            if self.report is None:
                return
            for table in self.report.tables[:LISTED_TABLES]:
                name = table.name.decode("utf-8", "replace")
                found = self._try(f"regions of {name}", partial(connection.admin.regions, table.name))
                if found is not None:
                    self.regions[name] = found
            admin = ClusterAdmin(connection)
            self.cluster = self._try("servers", admin.servers)
            self.transitions = self._try("transitions", admin.transitions)
            self.decisions = self._try("decisions", admin.decisions)

    def read_pages(self, url: str, tls: ClientTls | None, user: ClientUser | None) -> None:
        """Read metrics and slow requests from the pages at ``url``, which ends with a slash."""
        context = tls.context() if tls is not None else None
        headers = self._try("sign-in to the pages", lambda: _authorization(url, user)) or {}
        self.metrics = self._try("metrics", lambda: _page(f"{url}metrics", headers, context))
        slow = self._try("slow requests", lambda: json.loads(_page(f"{url}requests?form=json", headers, context)))
        if isinstance(slow, list):
            self.slow = [one for one in slow if isinstance(one, dict)]

    def _try(self, question: str, call: Callable[[], Any]) -> Any:
        """Return the answer, or None after noting why there is none."""
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - whatever a broken store answers; its text may be data
            self.failures[question] = type(error).__name__
            return None


def _connected(address: str, tls: ClientTls | None, user: ClientUser | None) -> Connection:
    context = tls.context() if tls is not None else None
    secrets = user.secrets() if user is not None else {}
    return Connection.at(address, timeout=round(ANSWER_S * 1_000), tls=context, **secrets)


def _authorization(url: str, user: ClientUser | None) -> dict[str, str]:
    """Return the headers by which the user signs in; none where the network could read the secret."""
    parts = urlsplit(url)
    if user is None or not (parts.scheme == "https" or is_loopback(parts.hostname or "")):
        return {}
    name, secret = user.secrets().values()
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()}


def _page(url: str, headers: dict[str, str], context: ssl.SSLContext | None) -> bytes:
    own = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )  # a proxy of the environment would see the store
    with own.open(urllib.request.Request(url, headers=headers), timeout=PAGE_S) as answer:  # noqa: S310 - http or https
        found: bytes = answer.read(PAGE_BYTES)
        return found
