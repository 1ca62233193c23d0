"""(pure) Filters whose answer for a row depends only on that row, so they can be restarted for each step of a scan.

A scan over several servers is run step by step at the owners of its regions.  A filter that remembers earlier rows
(a page counts them, WHILE may have ended within an OR) runs at the gateway instead.

A filter that this module does not name is taken for one that remembers.
"""

from __future__ import annotations

from typing import Final

from columnar.model import cell_filters as cells
from columnar.model import row_filters as rows
from columnar.model.filter_lists import AndList, FilterList, SkipFilter
from columnar.model.filters import Filter

_BY_ROW: Final = frozenset(
    {
        rows.RowFilter,
        rows.FirstKeyOnlyFilter,
        rows.ColumnPaginationFilter,
        cells.KeyOnlyFilter,
        cells.FamilyFilter,
        cells.QualifierFilter,
        cells.ValueFilter,
        cells.ColumnPrefixFilter,
        cells.MultipleColumnPrefixFilter,
        cells.ColumnRangeFilter,
        cells.TimestampsFilter,
        cells.ColumnValueFilter,
        cells.SingleColumnValueFilter,
        cells.SingleColumnValueExcludeFilter,
        cells.DependentColumnFilter,
    }
)
_ENDING: Final = frozenset({rows.PrefixFilter, rows.InclusiveStopFilter})  # what they remember is that the scan ends


def remembers(flt: Filter) -> bool:
    """Whether the answer for a row depends on earlier rows, after which the scan went on."""
    if isinstance(flt, AndList):  # ends as soon as one of its filters does
        return any(remembers(one) for one in flt.filters)
    return type(flt) not in _ENDING and not _is_by_row(flt)


def _is_by_row(flt: Filter) -> bool:
    if isinstance(flt, FilterList):
        return all(_is_by_row(one) for one in flt.filters)
    return _is_by_row(flt.inner) if isinstance(flt, SkipFilter) else type(flt) in _BY_ROW
