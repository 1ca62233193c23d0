"""Checks the logs of servers that are over: reads every one that the catalogue or the folder names, as a start does.

Reads and changes nothing; for a data folder that nobody serves.  Blocks.
"""

from __future__ import annotations

import os
from typing import Final

from columnar.checking.findings import Report, Severity
from columnar.errors import ColumnarError
from columnar.master.catalogue import Catalogue
from columnar.master.dead_servers import DeadServerLog, contradictions, read_dead_server_logs
from columnar.model.owner import Incarnation
from columnar.storage.data_folder import SERVERS
from columnar.storage.dead_logs import remedy_of
from columnar.storage.server_folders import have_logs, log_of

NAMED: Final = 3  # regions in one finding
_LEFT: Final = "servers of this folder were killed, and their logs may hold writes that regions lack"


def say_server_logs(report: Report, data: str, catalogue: Catalogue) -> None:
    try:
        pasts = read_dead_server_logs(catalogue, data)
        for text in contradictions(catalogue, data):
            report.add(Severity.ERROR, "catalogue", text, remedy_of(data))
    except ColumnarError as error:
        report.add(Severity.ERROR, SERVERS, error.text)
        return
    for server, log in sorted(pasts.items()):
        if log.damage:
            report.add(Severity.ERROR, _place(data, server), log.damage, closed_text(log))
    if have_logs(data) and not any(log.damage for log in pasts.values()):
        report.add(Severity.NOTE, SERVERS, _LEFT, "the next start brings them in")


def closed_text(log: DeadServerLog) -> str:
    """Return the regions that stay closed for the damage, as a clause."""
    regions = sorted({region for region, _ in log.named})
    more = f" and {len(regions) - NAMED} more" if len(regions) > NAMED else ""
    return f"until then {len(regions)} regions stay closed: {', '.join(regions[:NAMED])}{more}" if regions else ""


def _place(data: str, server: Incarnation) -> str:
    return os.path.relpath(log_of(data, str(server)), data)
