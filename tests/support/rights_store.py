"""A store with rights inside the test's process, and accounts in its catalogue whose hashes cost little."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from columnar.client import Connection
from columnar.config import RightsSettings
from columnar.security.credentials import hash_of, new_token
from columnar.security.passwords import Passwords
from columnar.security.scram import Verifier
from columnar.wire.idl import columnar
from tests.support.serving import Serving

PASSWORD: Final = "correct horse"
TOKEN: Final = new_token(lambda _bytes: "a" * 43)


class RightsStore:
    """``ann`` has PASSWORD, TOKEN and R on the table ``pages`` with one row; ``root`` is whoever uses ``socket``."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.socket = str(folder / "clients")
        rights = RightsSettings(is_on=True, socket=self.socket)
        self.serving = Serving(folder / "data", rights=rights, **settings)

    def __enter__(self) -> RightsStore:
        self.serving.start()
        with Connection(unix_socket=self.socket, timeout=20_000) as root:
            root.create_table("pages", {"text": {}})
            root.table("pages").put(b"home", {b"text:body": b"hello"})
            hashed = Passwords(memory_kib=1_024).hashed(PASSWORD)
            verifier = Verifier.of_password(PASSWORD, b"0123456789abcdef", 4_096).encoded
            root.call("columnarSetPassword", "ann", hashed, verifier)
            root.call("columnarAddToken", "ann", "laptop", hash_of(TOKEN))
            root.call("columnarGrant", columnar.RightsGrant(grantee="ann", rights="R", table=b"pages"))
        return self

    def __exit__(self, *_error: object) -> None:
        self.serving.stop()

    @property
    def port(self) -> int:
        return self.serving.store.port

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"
