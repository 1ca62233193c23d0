"""(pure) The sites whose pictures pages may show.

    none     pictures from elsewhere are links
    listed   those of the listed hosts are shown: ``commons.example``, ``*.photos.example``, ``pictures.example:8443``
    all      all are shown, by https

The same choice is ``img-src`` of the Content-Security-Policy, so that a picture is not loaded either if it comes into a
page by a way that is not known here.  Each picture that is loaded tells its site the network address of a reader.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

HOSTS_MAX: Final = 100  # in the header of every answer
_HOST: Final = re.compile(
    r"(?:\*\.)?[a-z0-9](?:[a-z0-9\-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9\-]*[a-z0-9])?)*(?::[0-9]{1,5})?"
)


@dataclass(frozen=True, slots=True)
class PictureSources:
    kind: Literal["none", "listed", "all"] = "all"
    hosts: tuple[str, ...] = ()  # as ``checked_host`` returns them; only of "listed"
    origin: str = ""  # at which the wiki's own files are served, if not at the wiki's own

    def allows(self, host: str) -> bool:
        """Return whether pictures of a host are shown, which ``file_slots.host_of`` found; "" is this site."""
        if self.kind == "all" or not host:
            return True
        if self.kind == "none":
            return False
        return any(host == one or (one[:2] == "*." and host.endswith(one[1:])) for one in self.hosts)

    @property
    def policy(self) -> str:
        """The value of ``img-src``."""
        own = (self.origin,) if self.origin else ()
        if self.kind == "all":
            return " ".join(("'self'", "https:", "data:", *own))
        listed = (f"https://{host}" for host in self.hosts if self.kind == "listed")
        return " ".join(("'self'", "data:", *own, *listed))


ALL_PICTURES: Final = PictureSources()


def checked_host(given: str) -> str:
    """Return a host of the list in lower case.  Raises ValueError with a sentence for the operator."""
    host = given.strip().lower()
    if len(host) > 255 or not _HOST.fullmatch(host):
        raise ValueError(f"'{given}' is no host: write pictures.example, or *.pictures.example for all below it")
    return host
