"""SIGHUP: settings file and certificate are read again; what can change at once does, and the log says what did.

    SIGHUP --> a child reads the settings --> compared with those in force --> taken (``config.LIVE``)
                         |                                                 \\--> named: they need a restart
                         \\--> it refuses them: one ERROR line, and every setting stays

The child is ``columnar config check`` with the words, the variables and the file of the start.  So there is one
mechanism by which flags, variables, file and defaults become settings, flags and variables keep their precedence, and
this process never loads the command line (3 MB, 0.1 s of the loop).

The certificate is read again in each case, from the files in force, and the log file is opened again.  A SIGHUP that
arrives meanwhile is followed by another reading, and one during the start by a reading after it (``begin_reading``).
Owned by the loop.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from columnar.config import LIVE, NodeConfig, StandaloneConfig
from columnar.coordination.service_access import PASSWORD
from columnar.model.node_messages import LiveSettings
from columnar.runtime.background import Background
from columnar.runtime.command_run import run_to_end
from columnar.runtime.log_lines import reopen_log, set_levels
from columnar.runtime.log_settings import LogSettings
from columnar.runtime.service_notify import UNMANAGED, ServiceNotifier
from columnar.settings.changes import Changes

READ_S: Final = 30.0  # of the child; it takes 0.3 s
_TLS: Final = frozenset({"tls-cert", "tls-key"})  # live, unless TLS begins or ends
SERVES: Final = "serves"  # the status that a service manager shows
_log = logging.getLogger("columnar.settings")
_log.setLevel(logging.INFO)  # whatever the level of other lines: an operator asked


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """The words and the file that this process has its settings from."""

    file: str | None  # None: there is no file
    command: str  # standalone or node
    arguments: Sequence[str]  # the command's words
    values: Mapping[str, Any]  # by key, as they were resolved at the start


class Unreadable(Exception):
    """The settings cannot be read; the text says why."""


def changes_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
    """(pure) Compare the values of two readings of a store's settings."""
    return Changes.between(before, after, LIVE if before["tls-cert"] and after["tls-cert"] else LIVE - _TLS)


class SettingsReload:
    def __init__(
        self,
        source: SettingsSource,
        live: LiveSettings,
        password: str = "",
        service: ServiceNotifier = UNMANAGED,
    ) -> None:
        """Pass the settings in force.  ``password``: the coordination service's; ``service`` is notified."""
        self._source = source
        self._values = dict(source.values)
        self._live = live
        self._takers: tuple[Callable[[LiveSettings], None], ...] | None = None  # None: before ``begin_reading``
        self._password = password
        self._service = service
        self._is_requested = False
        self._is_reading = False
        self._work = Background("the settings")

    def request(self) -> None:
        """Read the settings again; the handler of SIGHUP."""
        self._is_requested = True
        if self._takers is not None and not self._is_reading:
            self._is_reading = True
            self._work.spawn(self._read_until_done(self._takers))

    def begin_reading(self, takers: Iterable[Callable[[LiveSettings], None]]) -> None:
        """Do what was requested until now, and then each request: the store has started.  Pass who takes settings."""
        self._takers = tuple(takers)
        if self._is_requested:
            self.request()

    async def _read_until_done(self, takers: Sequence[Callable[[LiveSettings], None]]) -> None:
        self._service.report_reloading()
        try:
            while self._is_requested:
                self._is_requested = False
                await self._read(takers)
        finally:
            self._is_reading = False
            self._service.report_ready(SERVES)

    async def _read(self, takers: Sequence[Callable[[LiveSettings], None]]) -> None:
        if self._source.file is not None:
            try:
                found = await self._resolve()
                changes = changes_between(self._values, found["source"]["values"])
                live = _live_of(found)
            except (Unreadable, ValueError, KeyError, TypeError) as error:
                _log.error("no setting is changed, for the settings cannot be read: %s", error)
            else:
                self._note(changes, live)
        set_levels(self._live.log_level, self._live.log_levels)  # those that 'columnar log-level' has set end
        reopen_log()
        for take in takers:
            take(self._live)

    def _note(self, changes: Changes, live: LiveSettings) -> None:
        for is_warning, line in changes.lines(str(self._source.file)):
            _log.log(logging.WARNING if is_warning else logging.INFO, "%s", line)
        self._values = {**self._values, **changes.taken}
        if not changes.taken.keys() & _TLS:
            live = replace(live, tls_cert=self._live.tls_cert, tls_key=self._live.tls_key)
        self._live = live

    async def _resolve(self) -> dict[str, Any]:
        """Return the settings as a start would have them now.  Raises Unreadable, ValueError."""
        source = self._source
        words = ["-m", "columnar", "config", "check", "--json", source.command, "--", *source.arguments]
        environment = {**os.environ, "COLUMNAR_CONFIG": source.file or os.devnull, "COLUMNAR_COMPILED": "no"}
        if self._password:
            environment[PASSWORD] = self._password
        safe_path = ["-P"] if sys.flags.safe_path else []
        try:
            ended = await run_to_end([sys.executable, *safe_path, *words], environment, READ_S, "settings")
        except OSError as error:
            raise Unreadable(f"no process can be started: {error}") from error
        if not ended.is_whole:
            raise Unreadable(f"{source.file} was not read within {READ_S:g} s")
        if ended.status:
            raise Unreadable(ended.last_line.removeprefix("columnar: ").removeprefix("Error: "))
        found: dict[str, Any] = json.loads(ended.output)
        return found

    def close(self) -> None:
        """Read no more."""
        self._work.close()


def _live_of(settings: Mapping[str, Any]) -> LiveSettings:
    return LiveSettings(
        settings["log"]["level"],
        settings["slow_request_ms"],
        tuple(settings["allow_origins"]),
        settings["tls_cert"],
        settings["tls_key"],
        tuple(settings["log"]["levels"]),
    )


def reload_of(
    source: SettingsSource | None,
    config: StandaloneConfig,
    log: LogSettings,
    node: NodeConfig | None,
    service: ServiceNotifier = UNMANAGED,
) -> SettingsReload | None:
    """Return the reading of the settings of this process, or None if there is nothing to read again."""
    if source is None or (source.file is None and not config.tls_cert and not log.file):
        return None
    live = LiveSettings(
        log.level, config.slow_request_ms, config.allow_origins, config.tls_cert, config.tls_key, log.levels
    )  # fmt: skip
    return SettingsReload(source, live, node.access.password if node is not None else "", service)
