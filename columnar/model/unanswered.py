"""(pure) Servers that gave no answer to a status request, as text: on the wire, on pages and in the shell.

    s2.7                         nothing came in time
    s2.7 (its link has ended)    with the cause: a refusal, or a broken link

Knows nothing of links.
"""

from __future__ import annotations


def entry(server: str, why: str) -> str:
    """``why``: empty if nothing came in time."""
    return f"{server} ({' '.join(why.split())})" if why else server


def remark(found: str) -> str:
    """A sentence about an entry, for people."""
    server, _, why = found.partition(" (")
    said = f"did not answer ({why.removesuffix(')')})" if why else "did not answer in time"
    return f"{server} {said}: its part is not in the numbers"
