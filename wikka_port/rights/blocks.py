"""(pure) Blocks: accounts and networks that may read, and write nothing until a moment.

The row RULES_ROW of ``pages`` (``rights.rules``) has a cell for each block, so that a page's own call brings the blocks
with the rules, and a block counts within a second in every process:

    acl:block:<id>   JSON: user or network, until (ms; 0: for good), reason, by, made (ms), accounts

A block is one cell: it is put and deleted in one step, and no crash leaves half of it.

    user       an account, by its folded name
    network    an address or a range (CIDR) of IPv4 or IPv6.  It stops visitors without an account, and with
               ``accounts`` also those who are signed in.  No account can be registered from there

Invariants:
    B1. A block that is over counts no more: ``Blocks`` leaves it out, and says when the next one ends.
    B2. Administrators are never stopped by a block, so that a wrong range can be taken back.
    B3. At most BLOCKS_MAX blocks, each of a bounded size: every process reads them once a second at most.

Knows nothing of the store and of the clock.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from wikka_port.schema import TIME_MAX_MS, folded
from wikka_port.texts import N_, _
from wikka_port.visitors import Visitor

BLOCK: Final = b"acl:block:"
BLOCKS_MAX: Final = 500
REASON_CHARS: Final = 200
# The widest range: a wider one stops a country.
PREFIX_LENGTH_MIN: Final = {4: 8, 6: 19}
BLOCKED: Final = N_("{who} is blocked")
_ID: Final = re.compile("[0-9a-f]{16}")
_SPAN: Final = re.compile(r"(\d{1,4})\s*([^\W\d_]{1,20})\.?")
_HOUR_MS: Final = 3_600_000
# A language's words for each are accepted beside the English ones, with a blank between two.
_UNITS: Final = (
    (N_("h hour hours"), _HOUR_MS),
    (N_("d day days"), 24 * _HOUR_MS),
    (N_("w week weeks"), 7 * 24 * _HOUR_MS),
    (N_("month months"), 30 * 24 * _HOUR_MS),
)

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class BadBlock(Exception):
    """Nothing is blocked; ``str()`` is a sentence for the administrator."""


@dataclass(frozen=True, slots=True)
class Block:
    id: str
    user: str = ""  # "": a network
    network: str = ""
    until_ms: int = 0  # 0: for good
    reason: str = ""
    by: str = ""
    made_ms: int = 0
    accounts: bool = False  # of a network: also visitors who are signed in

    @property
    def target(self) -> str:
        return self.user or self.network

    def is_over(self, now_ms: int) -> bool:
        return 0 < self.until_ms <= now_ms


def block_column(block_id: str) -> bytes:
    return BLOCK + block_id.encode()


def is_block_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def pack_block(block: Block) -> bytes:
    kept = {key: value for key, value in asdict(block).items() if key != "id" and value}
    return json.dumps(kept, ensure_ascii=False, sort_keys=True).encode()


def block_in(column: bytes, cell: bytes) -> Block | None:
    """Return the block in a cell, or None if the cell is damaged."""
    try:
        found = Block(column.removeprefix(BLOCK).decode(), **json.loads(cell))
        if found.network:
            ipaddress.ip_network(found.network)
    except (ValueError, TypeError):
        return None
    return found if found.target else None


def target_of(text: str) -> tuple[str, str]:
    """Return the user and the network that a text names, one of them empty.  Raises BadBlock."""
    typed = " ".join(text.split())
    try:
        network = ipaddress.ip_network(typed, strict=False)
    except ValueError:
        if not typed or "/" in typed:
            raise BadBlock(_("Write the name of a user, an address, or a range such as 203.0.113.0/24.")) from None
        return typed, ""
    if network.prefixlen < PREFIX_LENGTH_MIN[network.version]:
        least = PREFIX_LENGTH_MIN[network.version]
        raise BadBlock(_("{network} is too wide: a range has at least /{least}.", network=str(network), least=least))
    return "", str(network)


def _unit_ms(word: str) -> int:
    """Return the length of a unit of time by a word of English or of the reader's language, or 0."""
    wanted = folded(word)
    return next((ms for words, ms in _UNITS if wanted in folded(f"{words} {_(words)}").split()), 0)


def until_of(text: str, now_ms: int) -> int:
    """Return the end of a block that lasts as long as ``text`` says, or until the moment that it names; 0: for good.

    Raises BadBlock.
    """
    typed = text.strip()
    if not typed:
        return 0
    span = _SPAN.fullmatch(typed)
    unit_ms = 0 if span is None else _unit_ms(span[2])
    if span is not None and unit_ms:
        return min(now_ms + int(span[1]) * unit_ms, TIME_MAX_MS)
    try:
        moment = datetime.fromisoformat(typed)
        until_ms = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)
    except (ValueError, OverflowError):
        raise BadBlock(_("Write how long, as 3 days or 12 h, or until when, as 2026-12-24 (UTC).")) from None
    if not now_ms < until_ms <= TIME_MAX_MS:
        raise BadBlock(_("This moment is over."))
    return until_ms


class Blocks:
    """The blocks in force at a moment.  Immutable."""

    def __init__(self, cells: Mapping[bytes, bytes], now_ms: int = 0) -> None:
        """Take the blocks in the cells of RULES_ROW that are not over at ``now_ms``."""
        found = (block_in(column, cell) for column, cell in cells.items() if column.startswith(BLOCK))
        self.all: Final = tuple(one for one in found if one is not None and not one.is_over(now_ms))
        self._of_users: Final = {folded(one.user): one for one in self.all if one.user}
        networks = [(ipaddress.ip_network(one.network), one) for one in self.all if one.network]
        # The narrowest first: it says most about the visitor.
        self._of_networks: Final = sorted(networks, key=lambda pair: (-pair[0].prefixlen, pair[1].id))
        self.end_ms: Final = min((one.until_ms for one in self.all if one.until_ms), default=TIME_MAX_MS)

    def __bool__(self) -> bool:
        return bool(self.all)

    def of(self, visitor: Visitor) -> Block | None:
        """Return the block that stops the visitor, or None."""
        if not self.all or (visitor.admin and visitor.is_active):
            return None
        found = self._of_users.get(folded(visitor.name)) if visitor.name is not None else None
        if found is not None:
            return found
        return self.of_address(visitor.address, signed_in=visitor.name is not None)

    def of_address(self, address: str, *, signed_in: bool = False) -> Block | None:
        """Return the block of an address, for visitors who are signed in or not."""
        parsed = _parsed(address) if self._of_networks else None
        if parsed is None:
            return None
        of_address = (one for network, one in self._of_networks if parsed in network)
        return next((one for one in of_address if one.accounts or not signed_in), None)


@lru_cache(maxsize=1024)
def _parsed(address: str) -> _Address | None:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    return parsed.ipv4_mapped or parsed if isinstance(parsed, ipaddress.IPv6Address) else parsed
