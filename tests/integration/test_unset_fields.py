"""Thrift lets a client leave any field out: every method answers it with a result or a declared error, never a bug."""

from __future__ import annotations

from typing import Any

import pytest
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.thrift import TApplicationException, TClient, TException, TType
from thriftpy2.transport import TBufferedTransport, TSocket

from columnar.wire.definitions import WireError
from columnar.wire.idl import SERVICE
from tests.support.store_thread import StoreThread

NAMED = {"column": b"a:x", "tableName": b"t", "table": b"t", "tableNameOrRegionName": b"t", "value": b"v"}
PLAIN = {TType.BINARY: b"a:x", TType.STRING: "x", TType.I32: 1, TType.I64: 1, TType.BOOL: False, TType.DOUBLE: 1.0}
UNSAFE = {"columnarWait", "columnarTriggerWait"}  # waits as long as it is told


def filled(field: tuple[Any, ...]) -> Any:
    """A value of the field's type; structs with all of their fields."""
    kind, name, *of = field
    if kind == TType.STRUCT:
        return of[0](**{inner[1]: filled(inner) for inner in of[0].thrift_spec.values()})
    if kind == TType.LIST:
        inner = of[0] if isinstance(of[0], tuple) else (of[0], None)
        return [filled((inner[0], name, inner[1]))]
    if kind == TType.MAP:
        return {}
    if kind == TType.I32 and of and not isinstance(of[0], bool):
        return 0  # a member of an enumeration
    return NAMED[name] if kind == TType.BINARY and name in NAMED else PLAIN.get(kind)


def arguments(method: str) -> list[tuple[Any, ...]]:
    return [field for _, field in sorted(getattr(SERVICE, method + "_args").thrift_spec.items())]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with StoreThread(tmp_path_factory.mktemp("unset") / "data") as store:
        connection = store.connection()
        connection.create_table("t", {"a": {}}, attributes={"ROW_GROUP": "length:1"})
        connection.close()
        yield store.port


def variants(method: str) -> list[list[Any]]:
    """Every argument left out, one at a time and together; and each field of a struct among them."""
    fields = arguments(method)
    found: list[list[Any]] = [[None] * len(fields)]
    for place, field in enumerate(fields):
        given = [filled(one) for one in fields]
        given[place] = None
        found.append(given)
        inner = field[2][1] if field[0] == TType.LIST and isinstance(field[2], tuple) else field[2]
        if field[0] in (TType.STRUCT, TType.LIST) and hasattr(inner, "thrift_spec"):
            for _, name, *_ in inner.thrift_spec.values():
                given = [filled(one) for one in fields]
                struct = given[place] if field[0] == TType.STRUCT else given[place][0]
                setattr(struct, name, None)
                found.append(given)
    return found


@pytest.mark.parametrize("method", sorted(set(SERVICE.thrift_services) - UNSAFE - {"getRowOrBefore"}))
def test_what_is_left_out_is_answered(port: int, method: str) -> None:
    transport = TBufferedTransport(TSocket("127.0.0.1", port, socket_timeout=20_000))
    transport.open()
    client = TClient(SERVICE, TBinaryProtocol(transport, decode_response=False))
    wrong = []
    for given in variants(method):
        try:
            getattr(client, method)(*given)
        except TApplicationException as error:
            if error.type != TApplicationException.MISSING_RESULT:
                wrong.append(f"{given}: {error.message}")
        except (TException, WireError) as error:
            if not getattr(error, "message", b""):
                wrong.append(f"{given}: {error!r}")
        if method in ("disableTable", "deleteTable", "enableTable"):
            break  # only the first, without a table: the others need theirs
    transport.close()
    assert wrong == []
