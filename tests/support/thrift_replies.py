"""Unpacking of replies, for clients with a transport of their own."""

from __future__ import annotations

from typing import Any

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TApplicationException, TMessageType
from thriftpy2.transport.memory import TCyMemoryBuffer

from columnar.wire.idl import SERVICE


def unpacked(method: str, reply: bytes) -> Any:
    """Return the success of ``reply``, a message without a frame in the binary protocol, or raise its error."""
    protocol = TCyBinaryProtocol(TCyMemoryBuffer(reply), decode_response=False)
    kind = protocol.read_message_begin()[1]
    if kind == TMessageType.EXCEPTION:
        failure = TApplicationException()
        protocol.read_struct(failure)
        raise failure
    result = getattr(SERVICE, f"{method}_result")()
    protocol.read_struct(result)
    for _, name, *_ in result.thrift_spec.values():
        found = getattr(result, name)
        if name != "success" and found is not None:
            raise found
    return getattr(result, "success", None)
