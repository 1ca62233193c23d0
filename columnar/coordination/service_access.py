"""Settings by which a node proves itself to its coordination service: user and password, certificates.

Every process of a store has these settings, so this module imports nothing of TLS; ``service_address`` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

PASSWORD_FILE: Final = "--coordination-password-file"  # noqa: S105 - an option's name
PASSWORD: Final = "COLUMNAR_COORDINATION_PASSWORD"  # noqa: S105 - the name of a variable of the environment


@dataclass(frozen=True, slots=True)
class ServiceAccess:
    """The user of the service and PEM files; "" for what is not used.

    A password on a command line can be read by every user of the machine, so it comes from a file or the environment.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    password_file: str = ""  # used if ``password`` is empty
    ca_file: str = ""  # authorities that sign the servers' certificates; "": those that the system trusts
    cert_file: str = ""  # this node's certificate, for servers that require one
    key_file: str = ""

    def read_password(self) -> str:
        """Return the password.  Raises HostError if the file cannot be read or is empty.  Blocks."""
        if self.password or not self.password_file:
            return self.password
        from columnar.errors import HostError  # which loads asyncio: the help of commands has this module too

        try:
            with open(self.password_file, encoding="utf-8", errors="replace") as file:
                found = file.read().rstrip("\r\n")
        except OSError as error:
            raise HostError(f"cannot read {self.password_file} ({PASSWORD_FILE}): {error.strerror}") from error
        if not found:
            raise HostError(f"{self.password_file} ({PASSWORD_FILE}) is empty; write the password into it")
        return found


NO_ACCESS: Final = ServiceAccess()
