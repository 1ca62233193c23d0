"""(pure) Packs rows in the form that a gateway requests: structs of its client's service and protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from columnar.cluster.row_forms import PROTOCOL_BYTES, THRIFT1, THRIFT2, Block, ReplyForm
from columnar.regions.read.found_rows import FoundRows
from columnar.regions.read.row_reader import Cells
from columnar.storage.stored_cells import PackedRows
from columnar.wire import codec_results
from columnar.wire.codec_replies import compact_packed_row, packed_row
from columnar.wire.codec_results import RowPieces, compact_packed_result, packed_result
from columnar.wire.detect import Protocol

PackRow = Callable[[bytes, Cells], bytes]

_FORMS: Final = {
    (service, protocol, in_order): ReplyForm(service, byte, in_order)
    for service in (THRIFT1, THRIFT2)
    for protocol, byte in PROTOCOL_BYTES.items()
    for in_order in (False, True)
}
_BINARY: Final = PROTOCOL_BYTES[Protocol.BINARY]
BLOCK_BYTES: Final = 128 * 1024


def reply_form(service: int, protocol: Protocol, in_order: bool = False) -> ReplyForm:
    return _FORMS[service, protocol, in_order]


def is_map_of_binary(form: ReplyForm | None) -> bool:
    """Return whether rows of this form can be packed as they are stored (``codec_replies.map_rows``)."""
    return form is not None and form.service == THRIFT1 and form.protocol == _BINARY and not form.in_order


def packer(form: ReplyForm) -> PackRow:
    """Return the function that packs one row."""
    is_binary, in_order = form.protocol == _BINARY, form.in_order
    if form.service == THRIFT1:
        pack = packed_row if is_binary else compact_packed_row
        return lambda row, cells: pack(row, cells, in_order=in_order)
    pack_result = packed_result if is_binary else compact_packed_result
    return lambda row, cells: pack_result(row, list(cells))


def pieces_of(form: ReplyForm) -> RowPieces:
    """Return the packer for one row that comes in pieces."""
    is_binary = form.protocol == _BINARY
    if form.service == THRIFT2:
        return RowPieces(codec_results.RESULT if is_binary else codec_results.COMPACT_RESULT)
    if form.in_order:
        return RowPieces(codec_results.SORTED if is_binary else codec_results.COMPACT_SORTED)
    return RowPieces(codec_results.MAP if is_binary else codec_results.COMPACT_MAP)


def blocks_of(found: FoundRows, form: ReplyForm) -> tuple[Block, ...]:
    """Return all rows in blocks: packed rows as they are, all others in blocks of some BLOCK_BYTES."""
    return tuple(_blocks(found, packer(form)))


def _blocks(found: FoundRows, pack: PackRow) -> Iterable[Block]:
    parts: list[bytes] = []
    size, cell_count, last = 0, 0, b""
    for one in found.each():
        if parts and (size >= BLOCK_BYTES or isinstance(one, PackedRows)):
            yield Block(b"".join(parts), len(parts), cell_count, last)
            parts, size, cell_count = [], 0, 0
        if isinstance(one, PackedRows):
            yield Block(one.data, one.row_count, one.cell_count, one.last_key)
            continue
        last = one[0]
        parts.append(pack(last, one[1]))
        size += len(parts[-1])
        cell_count += len(one[1])
    if parts:
        yield Block(b"".join(parts), len(parts), cell_count, last)
