"""A program that calls the wiki's API with a key."""

from __future__ import annotations

from typing import Any, Final

from werkzeug.test import Client, TestResponse

from tests.support.account_pages import PASSWORD
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.factory import Accounts, make_accounts
from wikka_port.accounts.passwords import Passwords
from wikka_port.edit_buckets import EditBuckets

PREFIX: Final = "/api/v1"
ALL: Final = ("read", "write", "admin")


class ApiClient:
    def __init__(self, client: Client, token: str = "") -> None:
        self.client = client
        self.token = token

    def call(self, method: str, path: str, *, headers: dict[str, str] | None = None, **given: Any) -> TestResponse:
        key = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return self.client.open(PREFIX + path, method=method, headers={**key, **(headers or {})}, **given)

    def get(self, path: str, headers: dict[str, str] | None = None, **parameters: Any) -> TestResponse:
        return self.call("GET", path, query_string=parameters, headers=headers)

    def save(self, name: str, text: str, etag: str = "", **fields: Any) -> TestResponse:
        """Save a page: a new one without ``etag``."""
        return self.call(
            "PUT",
            "/page",
            query_string={"name": name},
            json={"text": text, **fields},
            headers={"If-Match": etag} if etag else {"If-None-Match": "*"},
        )

    def etag(self, name: str) -> str:
        return str(self.get("/page", name=name).headers["ETag"])


class ApiScene:
    """A wiki with Ada, who administers it, and Rita, who does not; each has keys."""

    def __init__(self, **config: Any) -> None:
        self.web = web = WikiClient(**{"edit_burst": 100_000, "count_age_s": 0.0, **config})
        web.now = 1_750_000_000.0
        self.wiki = web.wiki
        self.accounts: Accounts = make_accounts(self.wiki.rows, web.config, lambda: web.now, EditBuckets.opened(100))
        hashed = Passwords(1, memory_kib=web.config.password_memory_kib).hashed(PASSWORD)
        for name, admin in (("Ada", True), ("Rita", False)):
            self.accounts.directory.make(name, status="active", password=hashed, admin=admin)
        self.anonymous = ApiClient(web.client)

    def program(self, name: str, *scopes: str, days: int = 30) -> ApiClient:
        account = self.accounts.directory.account(name)
        assert account is not None
        token = self.accounts.keys.issue(account, label="a test", scopes=scopes or ALL, days=days)
        return ApiClient(self.web.client, token)
