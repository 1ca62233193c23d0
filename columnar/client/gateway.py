"""Calls to any server of a store: over a connection to the first address that answers, and the next once it breaks.

not sent            the call is sent to the next address; each address is tried once, the only one twice
sent, then broken   a call that changes nothing is sent again to the next address; another is not, because its
                    outcome is unknown
no answer in time   is raised; the next call goes to the next address
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from columnar.client.addresses import Address
from columnar.client.call_kinds import REPEATABLE
from columnar.client.store_link import BROKEN, Call, NotSent, StoreLink
from columnar.client.store_socket import NoAnswer, NotConnected, NotSignedIn

MakeLink = Callable[[Address], StoreLink]  # not yet open


class Gateway:
    def __init__(self, addresses: Sequence[Address], make_link: MakeLink) -> None:
        self._addresses = addresses  # constant, at least one
        self._attempts = max(2, len(addresses))
        self._make_link = make_link
        self._at = 0  # of the address that is used, or tried next
        self._link: StoreLink | None = None

    @property
    def address(self) -> Address:
        """The address of the last connection."""
        return self._addresses[self._at]

    def usable_link(self) -> StoreLink:
        """Return a usable link.  Raises NotConnected, which names all addresses, if none of them answers.

        Raises NotSignedIn if the first that answers refuses the user.
        """
        if self._link is not None:
            if self._link.is_usable:
                return self._link
            self._leave()
        failures = []
        for _ in self._addresses:
            link = self._make_link(self.address)
            try:
                link.connect()
            except NotSignedIn:
                link.close()
                raise  # the other servers have the same users, and would count a failure each
            except BROKEN as error:
                link.close()
                failures.append(error)
                self._try_next()
            else:
                self._link = link
                return link
        if len(failures) == 1:
            raise failures[0]
        raise NotConnected(NotConnected.NOT_OPEN, "; ".join(map(str, failures))) from failures[-1]

    def call(self, call: Call) -> Any:
        for _ in range(self._attempts):
            link = self.usable_link()
            try:
                link.send(call)
            except NotSent as error:
                self._leave()
                failure = error.cause
                continue
            try:
                return link.receive(call)
            except NoAnswer:
                self._leave()
                raise
            except BROKEN as error:
                self._leave()
                failure = error
                if call.method not in REPEATABLE:
                    raise
        raise failure

    def _try_next(self) -> None:
        self._at = (self._at + 1) % len(self._addresses)

    def _leave(self) -> None:
        """Close the link, and go to the next address."""
        self.close()
        self._try_next()

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
