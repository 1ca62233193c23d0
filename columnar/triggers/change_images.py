"""A row before and after a change, with the cells that its trigger requested.

Exact if the change's record has the images (``regions.write.images``).  A record has none if it was written before the
trigger requested them, or if it stands for no change (a row that a trigger begins with, a dead letter that is retried
as its row is now): then the row after the change is the row as it is now, and the row before it is what the record has,
mostly nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from columnar.model.read import Projection, ReadSpec
from columnar.model.trigger_scope import Scope
from columnar.regions.log.change_record import ChangeRecord
from columnar.regions.read.region_reads import get_whole_row
from columnar.regions.region import Region
from columnar.regions.write.images import images_of


class ChangeImages(NamedTuple):
    before: dict[bytes, bytes]
    after: dict[bytes, bytes]
    is_exact: bool


def change_images_of(region: Region, record: ChangeRecord, scope: Scope) -> ChangeImages:
    recorded = images_of(record, scope.images)
    if recorded is not None:
        return ChangeImages(recorded.before, recorded.after, is_exact=True)
    families = [
        (family, None if qualifiers is None else tuple(sorted(qualifiers)))
        for family, qualifiers in sorted(scope.images.items())
        if family in region.views
    ]
    cells = get_whole_row(region, record.row, ReadSpec(Projection(tuple(families))))
    before = {entry.family + b":" + entry.qualifier: entry.value for entry in record.before}
    return ChangeImages(
        {column: value for column, value in before.items() if scope.has_image_of(column)},
        {column: value for column, value, _ in cells},
        is_exact=False,
    )
