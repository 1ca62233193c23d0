"""A server at the other end of a socket: it is given calls and gives plain answers.

Keeps what a client must: the numbers of the scanners that were opened, a new connection where the old one
ended, and the clock.  Two writes that the server's clock stamps are kept apart by more than a millisecond: in
the same one, one of the two would win by chance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from thriftpy2.protocol.compact import TCompactProtocolFactory
from thriftpy2.protocol.cybin import TCyBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.thrift import TApplicationException, TException
from thriftpy2.transport import (
    TCyBufferedTransportFactory,
    TCyFramedTransportFactory,
    TFramedTransportFactory,
    TTransportException,
)

from columnar.wire.idl import hbase
from tests.differential import answers
from tests.differential.answers import Answer
from tests.differential.calls import Call, Scanner, to_thrift

_DECLARED: Final = (hbase.IOError, hbase.IllegalArgument, hbase.AlreadyExists)
_READS: Final = ("get", "scanner", "isTable")
_NO_SCANNER: Final = 2_000_000_000
SLOW_S: Final = 10.0


class Endpoint:
    def __init__(self, host: str, port: int, prefix: bytes, *, framed: bool = False, compact: bool = False) -> None:
        """Tables whose names do not begin with ``prefix`` are somebody else's: they are not looked at."""
        self._address = (host, port)
        self._prefix = prefix
        self._protocol = TCompactProtocolFactory() if compact else TCyBinaryProtocolFactory(decode_response=False)
        framing = TFramedTransportFactory if compact else TCyFramedTransportFactory
        self._transport = framing() if framed else TCyBufferedTransportFactory()
        self._client: Any = None
        self._scanners: dict[Scanner, int] = {}
        self._stamped_ms = 0
        self.texts: list[str] = []  # of the last error, for a person
        self.slow: list[tuple[float, str]] = []
        self.spent_s = 0.0

    @classmethod
    def at(cls, address: str, prefix: bytes) -> Endpoint:
        """Of ``host:port``, ``host:port/framed``, ``host:port/compact`` or ``host:port/framed/compact``."""
        place, *how = address.split("/")
        host, _, port = place.rpartition(":")
        return cls(host, int(port), prefix, framed="framed" in how, compact="compact" in how)

    def run(self, call: Call) -> Answer:
        reads = call.method.startswith(_READS)
        if not reads:
            self._wait_for_the_clock()
        began = time.monotonic()
        try:
            return self._answer(call)
        finally:
            took = time.monotonic() - began
            self.spent_s += took
            if took > SLOW_S:
                self.slow.append((took, str(call)))
            if not reads:
                self._stamped_ms = time.time_ns() // 1_000_000

    def _wait_for_the_clock(self) -> None:
        while time.time_ns() // 1_000_000 <= self._stamped_ms + 1:
            time.sleep(0.0002)

    def _answer(self, call: Call) -> Answer:
        arguments = [self._number(one) if isinstance(one, Scanner) else one for one in to_thrift(call)]
        self.texts = []
        try:
            result = getattr(self._connected(), call.method)(*arguments)
        except _DECLARED as error:
            self.texts = [str(error.message)[:400]]
            return answers.declared(error)
        except TApplicationException as error:
            self.texts = [str(error.message)[:400]]
            if error.type == TApplicationException.MISSING_RESULT:  # HBase's null; thriftpy2 makes an error of it
                return ["ok", None]
            return answers.application(error.type)
        except (TTransportException, TException, OSError, EOFError) as error:
            self.texts = [repr(error)]
            self.close()
            return answers.ended()
        if call.opens:
            self._scanners[call.opens] = result
        if call.method == "getTableNames":
            result = [name for name in result if name.startswith(self._prefix)]
        elif call.method == "getTableNamesWithIsTableEnabled":
            result = {name: enabled for name, enabled in result.items() if name.startswith(self._prefix)}
        return answers.ok(call, result)

    def _number(self, scanner: Scanner) -> int:
        """A scanner that did not open has a number that nobody gave out."""
        return self._scanners.get(scanner, _NO_SCANNER)

    def _connected(self) -> Any:
        if self._client is None:
            self._client = make_client(
                hbase.Hbase, *self._address, proto_factory=self._protocol, trans_factory=self._transport,
                timeout=240_000,
            )  # fmt: skip
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def drop_tables(self, prefix: bytes, told: Callable[[str], None] = lambda _: None) -> None:
        """Every table whose name begins so."""
        names: Iterable[bytes] = self._connected().getTableNames()
        for name in names:
            if name.startswith(prefix):
                told(f"dropping {name.decode()}")
                if self._connected().isTableEnabled(name):
                    self._connected().disableTable(name)
                self._connected().deleteTable(name)
