"""Calls of a client to the owners of rows, instead of to a server that forwards them.

    a row          goes to the owner of its region.  A refusal that names another owner corrects the locations, and the
                   call goes there; after REFUSALS of them, and if the owner cannot be reached, the call goes to any
                   server, which forwards it and waits for the owner
    several rows   are cut by owners; all parts are sent before the first answer is received
    broken         a part that only reads goes to any server; a write whose outcome is unknown is raised

A part of several rows that meets a server which owns some of them no longer is answered all the same: the server
forwards these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from thriftpy2.thrift import TApplicationException, TException

from columnar.client.addresses import Address
from columnar.client.call_kinds import CUT, LISTED_ROWS, REPEATABLE, ROW_OF, as_bytes, merged
from columnar.client.errors import IOError
from columnar.client.gateway import Gateway
from columnar.client.locations import Locations, Piece
from columnar.client.owner_links import OwnerLinks
from columnar.client.store_link import BROKEN, EXTENSION, Call, NotSent, StoreLink
from columnar.client.store_socket import NoAnswer
from columnar.model.record_codec import unpack_records
from columnar.model.region_location import Location, NewOwner, new_owner_of

REFUSALS: Final = 3  # of one call

Part = tuple[StoreLink, Call, list[int]]  # with the places of its rows in the whole call


class OwnerCalls:
    def __init__(self, gateway: Gateway, links: OwnerLinks, now_s: Callable[[], float]) -> None:
        self._gateway = gateway
        self._links = links
        self._now_s = now_s
        self._locations = Locations()
        self._is_supported = True  # the servers know ``columnarRegionOwners``

    def call(self, call: Call) -> Any:
        """Return the answer to a call of the gateway's service, from the owners of its rows if it names rows."""
        row_of = ROW_OF.get(call.method)
        if row_of is not None:
            table, row = map(as_bytes, row_of(call.args))
            if table and row is not None:
                return self._call_row(call, table, row)
        elif call.method in CUT and len(call.args) > 1:
            cut = self._cut(call)
            if cut is not None:
                return self._call_parts(call, *cut)
        return self._gateway.call(call)

    # --- a row -------------------------------------------------------------------------------------

    def _call_row(self, call: Call, table: bytes, row: bytes) -> Any:
        refused_by: Address | None = None
        for _ in range(REFUSALS):
            owner = self.owner(table, row)
            link = self.link(owner)
            if owner is None or link is None or owner == refused_by:
                break
            try:
                link.send(call)
            except NotSent:
                self._links.close_link(owner)  # the next attempt makes another link, or finds out that it cannot
                continue
            try:
                return link.receive(call)
            except IOError as error:
                moved = _moved(error)
                if moved is None:
                    raise
                self._locations.moved(table, row, moved, self._gateway.address.host)
                refused_by = owner
            except BROKEN as error:
                self.left(owner)
                if call.method not in REPEATABLE or isinstance(error, NoAnswer):
                    raise
                break
        return self._gateway.call(call)

    # --- several rows ------------------------------------------------------------------------------

    def _cut(self, call: Call) -> tuple[bytes, list[bytes]] | None:
        """Return the table and the rows of the call, or None if it names none or does it wrongly."""
        table, listed = as_bytes(call.args[0]), call.args[1]
        if not table or not isinstance(listed, list | tuple) or not listed:
            return None
        rows = listed if call.method in LISTED_ROWS else [getattr(one, "row", None) for one in listed]
        found = [row for row in map(as_bytes, rows) if row is not None]
        return (table, found) if len(found) == len(rows) else None

    def _call_parts(self, call: Call, table: bytes, rows: list[bytes]) -> Any:
        self._request(table)
        cut = self._locations.cut(table, rows)
        left: list[list[int]] = []  # the places of parts for any server
        sent: list[Part] = []
        try:
            for owner, places in cut.items():
                part = self._sent(call, owner, places)
                if part is None:
                    left.append(places)
                else:
                    sent.append(part)
            answers, failure = self._received(sent, left)
        except BaseException:
            for link, _, _ in sent:
                link.close()  # its answer is not read
            raise
        if failure is not None:
            raise failure
        answers += [(places, self._gateway.call(_part_of(call, places))) for places in left]
        return answers[0][1] if len(answers) == 1 and len(cut) == 1 else merged(call.method, rows, answers)

    def _sent(self, call: Call, owner: Address | None, places: list[int]) -> Part | None:
        """Send a part to its owner; returns None if it was not sent."""
        link = self.link(owner)
        if link is None:
            return None
        part = _part_of(call, places)
        try:
            link.send(part)
        except NotSent:
            self._links.close_link(link.address)
            return None
        return link, part, places

    def _received(
        self, sent: Sequence[Part], left: list[list[int]]
    ) -> tuple[list[tuple[list[int], Any]], Exception | None]:
        """Receive all answers, also after a failure; returns the first failure.

        Adds to ``left`` the parts that are to be called again.
        """
        answers: list[tuple[list[int], Any]] = []
        failure: Exception | None = None
        for link, part, places in sent:
            try:
                answers.append((places, link.receive(part)))
            except BROKEN as error:
                self.left(link.address)
                if part.method in REPEATABLE and not isinstance(error, NoAnswer):
                    left.append(places)
                else:
                    failure = failure or error
            except TException as error:
                failure = failure or error
        return answers, failure

    # --- locations and links, for scans too ----------------------------------------------------------

    def owner(self, table: bytes, row: bytes) -> Address | None:
        """Return the owner of the row; None: any server."""
        self._request(table)
        return self._locations.owner(table, row)

    def piece(self, table: bytes, row: bytes) -> Piece:
        """Return the neighbouring regions from the row on that have one owner."""
        self._request(table)
        return self._locations.piece(table, row)

    def last_owner(self, table: bytes) -> Address | None:
        self._request(table)
        return self._locations.last_owner(table)

    def link(self, owner: Address | None) -> StoreLink | None:
        """Return a link to the owner; None if it is not known or cannot be reached."""
        if owner is None:
            return None
        link = self._links.link(owner, self._now_s())
        if link is None:
            self._locations.left(owner)
        return link

    def left(self, server: Address) -> None:
        """Note that the connection to the server broke."""
        self._links.close_link(server)
        self._locations.left(server)

    def _request(self, table: bytes) -> None:
        """Ask any server for the table's locations if they are not known or too old."""
        now_s = self._now_s()
        if not self._is_supported or not self._locations.is_outdated(table, now_s):
            return
        try:
            answer = self._gateway.call(Call(EXTENSION, "columnarRegionOwners", (table,)))
        except TApplicationException as error:
            if error.type != TApplicationException.UNKNOWN_METHOD:
                raise
            self._is_supported = False  # a plain HBase, or an older version: any server answers every call
        except IOError:  # the call itself is answered with the reason
            self._locations.no_answer(table, now_s)
        else:
            self._locations.store_locations(table, unpack_records(answer, Location), self._gateway.address.host, now_s)

    def close(self) -> None:
        self._links.close()


def _part_of(call: Call, places: Sequence[int]) -> Call:
    listed = call.args[1]
    if len(places) == len(listed):
        return call
    table, _, *more = call.args
    return call._replace(args=(table, [listed[place] for place in places], *more))


def _moved(error: Any) -> NewOwner | None:
    message = error.message
    return new_owner_of(message.decode(errors="replace") if isinstance(message, bytes) else message or "")
