"""Notices to the service manager that started this process, as sd_notify(3) has them: it serves, reloads, stops, lives.

    starting --READY=1--> serving --STOPPING=1--> stopping
    serving --RELOADING=1--> reading its settings --READY=1--> serving
    WATCHDOG=1 from the loop, three times in the time that the manager allows (WATCHDOG_USEC)

A notice is a datagram of lines NAME=VALUE to the socket NOTIFY_SOCKET, a path, or an abstract address behind ``@``.
The variables are taken out of the environment, because child processes must not notify.  The watchdog counts the loop:
a manager so ends a process whose loop is stuck, though its threads live.

Without NOTIFY_SOCKET every method does nothing.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import MutableMapping
from time import monotonic_ns
from typing import Final

_log = logging.getLogger(__name__)

SOCKET: Final = "NOTIFY_SOCKET"
WATCHDOG: Final = "WATCHDOG_USEC"
WATCHDOG_PROCESS: Final = "WATCHDOG_PID"
_BEATS: Final = 3  # in the allowed time: two may be late


class ServiceNotifier:
    def __init__(self, address: str = "", watchdog_s: float = 0.0) -> None:
        """``address`` is empty if no manager waits; ``watchdog_s`` is 0 if it does not watch."""
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._watchdog_s = watchdog_s
        self._beat_timer: asyncio.TimerHandle | None = None
        self._is_stopping = False  # then the end of a reload is no news

    @classmethod
    def taken_from(cls, environment: MutableMapping[str, str], process: int) -> ServiceNotifier:
        """Take the variables of the process with this number out of the environment."""
        address = environment.pop(SOCKET, "")
        allowed, watched = environment.pop(WATCHDOG, ""), environment.pop(WATCHDOG_PROCESS, "")
        is_watched = allowed.isdigit() and watched in ("", str(process))
        if address[:1] not in ("/", "@") or not hasattr(socket, "AF_UNIX"):
            return cls()
        return cls(address, int(allowed) / 1_000_000 if is_watched else 0.0)

    def report_ready(self, status: str) -> None:
        """Report that the process serves, after its start or a reload; ``status`` is for people."""
        if not self._is_stopping:
            self._send(f"READY=1\nSTATUS={status}")

    def report_reloading(self) -> None:
        self._send(f"RELOADING=1\nMONOTONIC_USEC={monotonic_ns() // 1_000}")

    def report_stopping(self) -> None:
        self._is_stopping = True
        self._send("STOPPING=1\nSTATUS=stopping")

    def begin_watchdog(self) -> None:
        """Notify the watchdog from now on, as long as the loop runs."""
        if self._address and self._watchdog_s:
            self._beat()

    def _beat(self) -> None:
        self._beat_timer = asyncio.get_running_loop().call_later(self._watchdog_s / _BEATS, self._beat)
        self._send("WATCHDOG=1")

    def end_watchdog(self) -> None:
        if self._beat_timer is not None:
            self._beat_timer.cancel()
            self._beat_timer = None

    def _send(self, text: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(text.encode(), self._address)
        except OSError as error:
            notice = text.partition("\n")[0]
            _log.warning("the service manager does not get %s: %s", notice, error.strerror or error)


UNMANAGED: Final = ServiceNotifier()
