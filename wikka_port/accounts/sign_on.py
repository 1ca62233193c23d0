"""Sign-on by a proxy: it has identified the person, by OpenID Connect or otherwise, and says so in a header.

The header is believed from addresses that are named in the configuration, and from no others: the address is that
of the connection, not one that ``X-Forwarded-For`` claims.  The proxy must take the header out of what visitors send.
A name that has no account yet gets one, without a password.
"""

from __future__ import annotations

from dataclasses import dataclass

from werkzeug.wrappers import Request

from wikka_port.accounts.audit import Audit
from wikka_port.accounts.directory import Directory, NameTaken
from wikka_port.accounts.records import Account
from wikka_port.accounts.registration import Policy
from wikka_port.accounts.session_store import visitor_of
from wikka_port.accounts.user_names import Allowed, Unsuitable, checked_name
from wikka_port.visitors import Visitor


@dataclass(frozen=True, slots=True)
class SignOn:
    header: str  # "": no person is signed on so
    proxies: frozenset[str]
    policy: Policy
    names: Allowed
    directory: Directory
    audit: Audit

    def name(self, request: Request) -> str:
        """Return the name that the proxy gives; "": none, or no proxy of ours."""
        if not self.header:
            return ""
        original = request.environ.get("werkzeug.proxy_fix.orig", {})
        connected = original.get("REMOTE_ADDR") or request.environ.get("REMOTE_ADDR", "")
        return request.headers.get(self.header, "").strip() if connected in self.proxies else ""

    def visitor(self, name: str, network_hash: str) -> Visitor | None:
        """None: no account has the name, and none can be made for it.  Raises StoreUnavailable."""
        try:
            account = self.directory.account(name) or self._made(checked_name(name, self.names))
        except (Unsuitable, NameTaken):
            return None
        if account is None or account.status == "deleted":
            return None
        return visitor_of(account, network_hash, f"proxy:{account.id}".encode())

    def _made(self, name: str) -> Account | None:
        if self.policy in ("closed", "invitation"):
            return None
        account = self.directory.make(name, status="pending" if self.policy == "approval" else "active")
        self.audit.note("register", user=name, note="by the proxy's sign-on")
        return account
