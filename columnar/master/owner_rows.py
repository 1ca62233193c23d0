r"""(pure) Rows of the catalogue for dead logs and operator settings; the values of their cells.

    row ``s/NAME.INC``   info:sealed = JSON ``[[segment, length], ...]``: a dead incarnation's log when it was fenced
                         info:whole = 1: each length is that of whole frames, which are on disk, and all of them must be
                         there; without it, by an older program, a length is that of a file
    row ``w/wishes``     info:wishes = JSON ``{"auto_split", "balancer", "drained", "unassigned"}``

The owner of a region is a cell of the region's row (``model.owner``).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from columnar.master.operator_settings import OperatorSettings
from columnar.model.owner import Incarnation, incarnation_of

if TYPE_CHECKING:
    from columnar.model.owner_messages import Segments

SEALED: Final = b"s/"
OPERATOR_SETTINGS_ROW: Final = b"w/wishes"


def sealed_row(server: Incarnation) -> bytes:
    return SEALED + str(server).encode()


def sealed_server(row: bytes) -> Incarnation:
    """ValueError for a row of another kind."""
    return incarnation_of(row.removeprefix(SEALED).decode())


def sealed_to_json(segments: Segments) -> bytes:
    return json.dumps([list(segment) for segment in segments]).encode()


def sealed_from_json(data: bytes) -> Segments:
    """ValueError, TypeError: it is none."""
    segments = tuple((name, length) for name, length in json.loads(data))
    if not all(isinstance(name, str) and isinstance(length, int) for name, length in segments):
        raise ValueError("names and lengths of segments are wanted")
    return segments


def operator_settings_to_json(settings: OperatorSettings) -> bytes:
    fields = {
        "drained": sorted(settings.drained),
        "unassigned": sorted(settings.unassigned),
        "balancer": settings.balancer,
        "auto_split": settings.auto_split,
    }
    return json.dumps(fields, sort_keys=True).encode()


def operator_settings_from_json(data: bytes) -> OperatorSettings:
    fields: dict[str, Any] = json.loads(data)
    return OperatorSettings(
        frozenset(fields["drained"]), frozenset(fields["unassigned"]), fields["balancer"], fields["auto_split"]
    )
