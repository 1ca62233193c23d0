"""Connections to machines by name: the names are looked up in threads of their own.

A resolver that does not answer holds a thread for half a minute.  The loop's own threads open and close regions, and
asyncio's ``create_connection`` would fill them with names (uvloop's: the four threads that all lookups of the process
share).  At most LOOKUPS_AT_ONCE threads of one ``NameLookup`` wait for names; the caller bounds the time, and a lookup
that it gives up before it has begun does not begin any more.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any, Final

LOOKUPS_AT_ONCE: Final = 2

_Place = tuple[socket.AddressFamily, Any]  # and the address of a socket


class NameLookup:
    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None  # made for the first name; an address needs none
        self._is_closed = False

    async def connect(self, host: str, port: int) -> socket.socket:
        """Return a socket that is connected to the first address of ``host`` that answers.  Raises OSError."""
        loop, failure = asyncio.get_running_loop(), OSError(f"{host} has no address")
        for family, address in await self._places(host, port):
            connecting = socket.socket(family, socket.SOCK_STREAM)
            try:
                connecting.setblocking(False)
                connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await loop.sock_connect(connecting, address)
            except OSError as error:
                connecting.close()
                failure = error
            except BaseException:  # it is given up
                connecting.close()
                raise
            else:
                return connecting
        raise failure

    async def _places(self, host: str, port: int) -> list[_Place]:
        if _is_address(host):
            return _resolved_places(host, port)
        if self._is_closed:
            raise OSError(f"{host} is not looked up any more")
        if self._threads is None:
            self._threads = ThreadPoolExecutor(LOOKUPS_AT_ONCE, thread_name_prefix="columnar-names")
        return await asyncio.get_running_loop().run_in_executor(self._threads, _resolved_places, host, port)

    def close(self) -> None:
        """End the threads, when they have the names that they wait for; begin no further lookup."""
        self._is_closed = True
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _resolved_places(host: str, port: int) -> list[_Place]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in found]
