"""A request and its answer over HTTP, returned as an outcome rather than as an exception.

aiohttp does the HTTP: kept-alive connections, bodies checked against their length and
encoding.  If the server has closed a kept-alive connection meanwhile, aiohttp sends a GET on it once more, as every
browser does; such repeats are counted in ``retried``, and both attempts are in the latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import aiohttp
import yarl

from . import __version__
from .limits import BODY_BYTES
from .outcome import Outcome


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer.  ``body`` is empty unless the caller keeps it; ``size_bytes`` counts the body in any case."""

    status: int
    location: str = ""
    body: str = ""
    size_bytes: int = 0
    cookies: str = ""  # as a Cookie header sends them back


@dataclass(frozen=True, slots=True)
class NoAnswer:
    outcome: Outcome
    why: str


class Wire:
    """The connections of one replay.  Owned by the event loop it was made in."""

    def __init__(self, *, timeout_s: float, headers: dict[str, str]) -> None:
        self.opened = 0  # connections made
        self.retried = 0  # requests sent once more on a fresh connection
        tracing = aiohttp.TraceConfig()
        tracing.on_connection_create_end.append(self._on_opened)
        tracing.on_connection_reuseconn.append(self._on_reused)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),  # the injector bounds open requests, and counts their wait
            cookie_jar=aiohttp.DummyCookieJar(),  # visitors share nothing; each edit keeps its own cookies
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            headers={"User-Agent": f"wikibench/{__version__}", "Accept-Encoding": "identity", **headers},
            trace_configs=[tracing],
        )

    async def _on_opened(self, _session: object, context: SimpleNamespace, _params: object) -> None:
        self.opened += 1
        context.trace_request_ctx.connections += 1

    async def _on_reused(self, _session: object, context: SimpleNamespace, _params: object) -> None:
        context.trace_request_ctx.connections += 1

    async def exchange(
        self,
        method: str,
        url: str,
        *,
        data: bytes | None = None,
        headers: dict[str, str] | None = None,
        keep: bool = False,
    ) -> Answer | NoAnswer:
        """Send one request and read its whole answer; with ``keep`` return its text too.  Never follows a redirect."""
        attempts = SimpleNamespace(connections=0)
        try:
            async with self._session.request(
                method,
                yarl.URL(url, encoded=True),
                data=data,
                headers=headers,
                allow_redirects=False,
                trace_request_ctx=attempts,
            ) as response:
                return await _read(response, keep)
        except TimeoutError:
            return NoAnswer(Outcome.TIMEOUT, "no whole answer within the timeout")
        except aiohttp.ClientConnectorDNSError as error:
            return NoAnswer(Outcome.REFUSED, f"the name {error.host} cannot be resolved: {error.os_error.strerror}")
        except aiohttp.ClientConnectorError as error:
            return NoAnswer(Outcome.REFUSED, str(error))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return NoAnswer(Outcome.BROKEN, f"{type(error).__name__}: {error}")
        finally:
            self.retried += max(0, attempts.connections - 1)

    async def close(self) -> None:
        await self._session.close()


async def _read(response: aiohttp.ClientResponse, keep: bool) -> Answer | NoAnswer:
    size, chunks = 0, []
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > BODY_BYTES:
            response.close()
            return NoAnswer(Outcome.BROKEN, f"an answer of over {BODY_BYTES} bytes")
        if keep:
            chunks.append(chunk)
    cookies = "; ".join(f"{name}={morsel.coded_value}" for name, morsel in response.cookies.items()) if keep else ""
    text = b"".join(chunks).decode(errors="replace")
    return Answer(response.status, response.headers.get("Location", ""), text, size, cookies)
