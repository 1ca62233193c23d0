"""Certificates for tests, made by the openssl command: an authority, and certificates that it signs."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from columnar.client import ClientTls


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key."""

    cert: str
    key: str


class Authority:
    """An authority that signs certificates; its own certificate is the file ``ca``."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._made = 0
        self._pair = Pair(str(folder / f"{name}.crt"), str(folder / f"{name}.key"))
        new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"]
        _openssl(*new, "-subj", f"/CN={name}", "-keyout", self._pair.key, "-out", self._pair.cert)
        self.ca = self._pair.cert

    def sign(self, name: str, *, days: int = 30, host: str = "127.0.0.1", field: str = "CN", usage: str = "") -> Pair:
        """Return a signed certificate; with negative ``days`` it has expired.

        ``field`` of its subject has the name; ``usage`` is its extendedKeyUsage, if it is to have one.
        """
        self._made += 1
        stem = f"{self._name}-{self._made}-{name.replace('/', '-')}"
        made = Pair(str(self._folder / f"{stem}.crt"), str(self._folder / f"{stem}.key"))
        new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        request = _openssl(*new, "-subj", f"/{field}={name}", "-keyout", made.key)
        names = self._folder / f"{stem}.ext"
        names.write_text(f"subjectAltName=IP:{host},DNS:localhost\n" + (f"extendedKeyUsage={usage}\n" if usage else ""))
        by = ["-CA", self._pair.cert, "-CAkey", self._pair.key, "-CAcreateserial", "-days", str(days)]
        _openssl("x509", "-req", *by, "-extfile", str(names), "-out", made.cert, text=request)
        return made

    def client(self, pair: Pair | None = None) -> ClientTls:
        """Return the settings of a client that trusts this authority."""
        return ClientTls(self.ca, *((pair.cert, pair.key) if pair is not None else ()))


def _openssl(*words: str, text: str = "") -> str:
    done = subprocess.run(["openssl", *words], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
