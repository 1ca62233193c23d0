"""A compare-and-set store in etcd 3.4 or later, by HTTP to etcd's JSON gateway, without a client library.

    POST /v3/kv/txn      create, put, delete: comparisons of ``mod_revision``, then one request
    POST /v3/kv/range    read, list; linearizable, because ``serializable`` is not set
    POST /v3/auth/authenticate      exchanges user and password for a token

Keys and values are encoded in base64.  A key begins with the prefix of the cluster, so that several clusters can share
an etcd.  A version is the key's ``mod_revision``.

Endpoints are used one at a time.  A call that gets no connection tries the next endpoint, until its time is over.  A
call without an answer also switches to the next endpoint, because the machine may be frozen:

    a read     is sent to the next endpoint while time is left
    a write    is not repeated, because it was sent; the call raises CasOutcomeUnknown

Etcd answers "database space exceeded" to writes that it does not carry out because it is full, and also to the write by
which it becomes full, which it does carry out.  So after that answer the key is read: CasRefused is raised if nothing
was written, else CasOutcomeUnknown.

A token that etcd no longer knows (etcd restarted, or ``auth-token-ttl`` passed) is replaced at most once in a call.

Knows nothing of leases.  Belongs to one thread at a time.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from columnar.coordination.cas import (
    FOLDER,
    CasOutcomeUnknown,
    CasRefused,
    CasUnavailable,
    Condition,
    VersionConflict,
    Versioned,
    check_key,
)

TIMEOUT_S: Final = 0.6  # of a call: a lease of 1.5 s survives two failed calls
ATTEMPT_SHARE: Final = 0.5  # of the remaining time is given to one endpoint, so that the next can still answer
ATTEMPT_S: Final = 0.05  # at least
_MISSING: Final = 0  # etcd's revision of a missing key
_JSON: Final = {"Content-Type": "application/json"}
# gRPC codes after which the operator must act and nothing was written (but see ``_Full``); after any other a write may
# have taken effect.
_REFUSALS: Final = {3: "invalid", 7: "permission denied", 8: "exhausted", 9: "failed precondition", 12: "unimplemented"}
_UNAUTHENTICATED: Final = 16
# A server sends these before it has read a request.  With TLS 1.3 they come when the client waits for the answer.
_CERTIFICATE_ALERTS: Final = {
    "SSLV3_ALERT_BAD_CERTIFICATE",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED",
    "SSLV3_ALERT_CERTIFICATE_REVOKED",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED",
    "TLSV1_ALERT_UNKNOWN_CA",
}
# etcd with users refuses a request to its gateway by a client whose certificate has a CommonName.
_COMMON_NAME: Final = b"CommonName of client"
_NAMELESS: Final = "where etcd has users, make the node's certificate without a CommonName (CN)"
# etcd that is full refuses every write but deletions: it keeps each old value until a compaction.
_FULL: Final = "database space exceeded"
_REPAIR: Final = (
    "the old values of its keys fill it. 'etcdctl compact REVISION', with the revision of 'etcdctl endpoint status -w "
    "json', 'etcdctl defrag --cluster' and 'etcdctl alarm disarm', in this order, make room; start each etcd with "
    "--auto-compaction-mode=revision --auto-compaction-retention=10000, so that it does not fill up again"
)
# etcd rejects a token from before its restart, or one that is too old, with these words under various codes.
_TOKEN_WORDS: Final = ("invalid auth token", "revision of auth store is old")


@dataclass(frozen=True, slots=True)
class EtcdAccount:
    """User and password, if etcd has authentication enabled."""

    user: str
    password: str


class _NoAnswer(Exception):
    """The request was not answered; ``was_sent`` tells whether at least a part of it may have arrived."""

    def __init__(self, why: str, *, was_sent: bool) -> None:
        super().__init__(why)
        self.was_sent = was_sent


class _Unauthenticated(Exception):
    """Etcd does not know the token, and did not carry the request out."""


class _Full(CasRefused):
    """Etcd is full; it may have carried out the write all the same, if by that write it became full."""


class CasEtcd:
    """``CasStore`` over etcd."""

    def __init__(
        self,
        endpoints: Sequence[str],
        prefix: str,
        *,
        timeout_s: float = TIMEOUT_S,
        account: EtcdAccount | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take the settings; the first call connects.

        ``endpoints`` are URLs; ``tls`` returns the context of a new connection to an ``https`` server.
        """
        self._endpoints = [_endpoint(url) for url in endpoints]
        self._prefix = prefix.rstrip("/") + "/"
        self._timeout_s = timeout_s
        self._account = account
        self._tls = tls
        self._clock = clock
        self._used = 0  # the endpoint's number
        self._connection: http.client.HTTPConnection | None = None
        self._token: str | None = None

    # --- CasStore ------------------------------------------------------------------------------------

    def create_key(self, key: str, value: bytes) -> int:
        check_key(key, value)
        return self._write(key, _MISSING, [self._has_revision(key, _MISSING)], {"requestPut": self._put(key, value)})

    def put_key(self, key: str, value: bytes, version: int) -> int:
        check_key(key, value)
        return self._write(key, version, [self._is_at(key, version)], {"requestPut": self._put(key, value)})

    def delete_key(self, key: str, version: int, also: Condition | None = None) -> None:
        check_key(key)
        conditions = [self._is_at(key, version)]
        if also is not None:
            conditions.append(self._is_at(also.key, also.version))
        self._write(key, version, conditions, {"requestDeleteRange": {"key": self._encoded(key)}})

    def read_key(self, key: str) -> Versioned | None:
        check_key(key)
        found = self._call("range", {"key": self._encoded(key)}).get("kvs")
        return _versioned(found[0]) if found else None

    def list_keys(self, folder: str) -> dict[str, Versioned]:
        assert FOLDER.fullmatch(folder), folder
        end = b64encode(f"{self._prefix}{folder}0".encode()).decode()  # "0" follows "/"
        found = self._call("range", {"key": self._encoded(f"{folder}/"), "range_end": end}).get("kvs", [])
        return {b64decode(one["key"]).decode()[len(self._prefix) :]: _versioned(one) for one in found}

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- requests ------------------------------------------------------------------------------------

    def _encoded(self, key: str) -> str:
        return b64encode((self._prefix + key).encode()).decode()

    def _put(self, key: str, value: bytes) -> dict[str, str]:
        return {"key": self._encoded(key), "value": b64encode(value).decode()}

    def _is_at(self, key: str, version: int) -> dict[str, str]:
        """Return the comparison.  Raises VersionConflict for a version that no key can have."""
        if version <= _MISSING:  # for a missing key etcd would find this true and create the key
            raise VersionConflict(key)
        return self._has_revision(key, version)

    def _has_revision(self, key: str, revision: int) -> dict[str, str]:
        return {"key": self._encoded(key), "target": "MOD", "result": "EQUAL", "modRevision": str(revision)}

    def _write(
        self, key: str, version: int, conditions: list[dict[str, str]], operation: dict[str, dict[str, str]]
    ) -> int:
        """Carry the operation out if all conditions hold; returns the store's revision, which is the key's version."""
        until_s = self._clock() + self._timeout_s
        try:
            answer = self._call("txn", {"compare": conditions, "success": [operation]}, until_s, written=key)
        except _Full as refusal:
            if self._revision(key, until_s) != version:
                raise CasOutcomeUnknown(key, refusal.text) from refusal
            raise
        if not answer.get("succeeded", False):
            raise VersionConflict(key)
        return int(answer["header"]["revision"])

    def _revision(self, key: str, until_s: float) -> int | None:
        """Return the key's version, or None if no endpoint answers in time."""
        try:
            found = self._call("range", {"key": self._encoded(key)}, until_s).get("kvs")
        except (CasUnavailable, CasRefused):
            return None
        return _versioned(found[0]).version if found else _MISSING

    def _call(
        self, method: str, body: dict[str, Any], until_s: float | None = None, written: str | None = None
    ) -> dict[str, Any]:
        """Call the gateway until an endpoint answers or time is over; ``written`` is the key that a write changes."""
        if until_s is None:
            until_s = self._clock() + self._timeout_s
        has_new_token, why = False, "no endpoint was tried"
        for attempt in range(2 * len(self._endpoints) + 2):
            left_s = until_s - self._clock()
            if attempt and left_s < ATTEMPT_S:
                break
            try:
                if self._account is not None and self._token is None:
                    self._authenticate(max(ATTEMPT_S, left_s * ATTEMPT_SHARE))
                    has_new_token = True
                return self._post(f"/v3/kv/{method}", body, max(ATTEMPT_S, left_s * ATTEMPT_SHARE))
            except _Unauthenticated as error:
                if has_new_token or self._account is None:
                    raise CasRefused(str(error)) from error
                self._token = None
            except _NoAnswer as error:
                why = str(error)
                self._use_next()
                if written is not None and error.was_sent:
                    raise CasOutcomeUnknown(written, why) from error
        raise CasUnavailable(why)

    def _authenticate(self, timeout_s: float) -> None:
        assert self._account is not None
        body = {"name": self._account.user, "password": self._account.password}
        try:
            self._token = str(self._post("/v3/auth/authenticate", body, timeout_s)["token"])
        except _NoAnswer as error:
            raise _NoAnswer(str(error), was_sent=False) from error  # the write itself was not sent
        except _Unauthenticated as error:
            raise CasRefused(str(error)) from error

    # --- one HTTP request ----------------------------------------------------------------------------

    def _post(self, path: str, body: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        url = self._endpoints[self._used]
        connection = self._connected(url, timeout_s)
        headers = _JSON if self._token is None else {**_JSON, "Authorization": self._token}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            reply = connection.getresponse()
            text = reply.read()
        except (OSError, http.client.HTTPException) as error:
            self._check_certificates(url, error)
            raise _NoAnswer(f"{url}: {str(error) or type(error).__name__}", was_sent=True) from error
        return self._answer(url, reply.status, text)

    def _connected(self, url: str, timeout_s: float) -> http.client.HTTPConnection:
        if self._connection is None:
            parts = urlsplit(url)
            assert parts.hostname is not None
            if parts.scheme == "https":
                self._connection = http.client.HTTPSConnection(
                    parts.hostname,
                    parts.port,
                    timeout=timeout_s,
                    context=self._tls() if self._tls is not None else None,
                )
            else:
                self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
            try:
                self._connection.connect()
            except OSError as error:
                self._check_certificates(url, error)
                raise _NoAnswer(f"{url}: {error}", was_sent=False) from error
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.sock.settimeout(timeout_s)
        return self._connection

    def _check_certificates(self, url: str, error: Exception) -> None:
        """Raise CasRefused if one side does not accept the other's certificate.

        The next call tries the next endpoint, because the certificate of a single server may have expired.
        """
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"the certificate of {url}: {error.verify_message}"
        elif isinstance(error, ssl.SSLError) and error.reason in _CERTIFICATE_ALERTS:
            why = f"{url} does not accept this node's certificate, or wants one: {error.reason}"
        else:
            return
        self._use_next()
        raise CasRefused(why) from error

    def _answer(self, url: str, status: int, text: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(text)
        except ValueError as error:
            if _COMMON_NAME in text:
                raise CasRefused(f"{url}: {text.decode(errors='replace').strip()}; {_NAMELESS}") from error
            raise _NoAnswer(f"{url}: HTTP {status} without JSON", was_sent=True) from error
        if status == 200 and isinstance(answer, dict):
            return answer
        code, why = (answer.get("code"), str(answer.get("error"))) if isinstance(answer, dict) else (None, "no object")
        if code == _UNAUTHENTICATED or any(word in why for word in _TOKEN_WORDS):
            raise _Unauthenticated(f"{url}: {why}")
        if code in _REFUSALS:
            raise _Full(f"{url}: {why}; {_REPAIR}") if _FULL in why else CasRefused(f"{url}: {why}")
        raise _NoAnswer(f"{url}: {why}", was_sent=True)

    def _use_next(self) -> None:
        self.close()
        self._used = (self._used + 1) % len(self._endpoints)


def _endpoint(url: str) -> str:
    parts = urlsplit(url)
    assert parts.scheme in ("http", "https"), f"{url} is not an address of etcd"
    assert parts.hostname, f"{url} names no host"
    return f"{parts.scheme}://{parts.netloc}"


def _versioned(found: dict[str, str]) -> Versioned:
    return Versioned(b64decode(found.get("value", "")), int(found["mod_revision"]))
