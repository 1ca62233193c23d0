"""(pure) ``Mutation`` of the IDL, written out: bulk loads consist of them, and compiled it is four fields.

``definitions`` takes it in place of the class that it would make, as long as the IDL says the same; what it
must be like is ``definitions.Struct``.
"""

from __future__ import annotations

from typing import Any, ClassVar


class Mutation:
    """Fields as the IDL names them; what was left out is its default, or None."""

    thrift_spec: ClassVar[dict[int, tuple[Any, ...]]] = {
        1: (2, "isDelete", False),
        2: (18, "column", False),
        3: (18, "value", False),
        4: (2, "writeToWAL", False),
    }
    default_spec: ClassVar[list[tuple[str, Any]]] = [
        ("isDelete", False),
        ("column", None),
        ("value", None),
        ("writeToWAL", True),
    ]

    __slots__ = ("column", "isDelete", "value", "writeToWAL")

    def __init__(
        self,
        isDelete: Any = False,  # noqa: N803 - the IDL's names
        column: Any = None,
        value: Any = None,
        writeToWAL: Any = True,  # noqa: N803
    ) -> None:
        self.isDelete = isDelete
        self.column = column
        self.value = value
        self.writeToWAL = writeToWAL

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mutation) and self._fields() == other._fields()

    def __repr__(self) -> str:
        return f"Mutation{self._fields()!r}"

    def _fields(self) -> tuple[Any, Any, Any, Any]:
        return self.isDelete, self.column, self.value, self.writeToWAL

    def read(self, protocol: Any) -> None:
        """As thriftpy2's clients call it."""
        protocol.read_struct(self)

    def write(self, protocol: Any) -> None:
        protocol.write_struct(self)
