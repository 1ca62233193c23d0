"""The maps that come with wikibench, and maps from files.

``columnar:root=Start`` is a map that comes along with another page at ``/``: a wiki's operator chooses it.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Final

from wikibench.addresses.mapping import Map, parse_map
from wikibench.errors import MapError
from wikibench.limits import MAP_BYTES

SHIPPED: Final = ("columnar", "mediawiki", "dokuwiki", "wikka", "plain")


def load_map(name: str) -> Map:
    """Return the shipped map of this name, or that of a file; raises MapError if there is neither.

    The users' file of a map is taken as lying beside it.
    """
    kind, colon, option = name.partition(":")
    if kind in SHIPPED:
        found = parse_map(name, (files(__package__) / "maps" / f"{kind}.toml").read_text(encoding="utf-8"))
        return _with_root(found, option) if colon else found
    path = Path(name)
    try:
        data = path.read_bytes()[: MAP_BYTES + 1]
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MapError(name, f"a map is TOML, in UTF-8 ({error})") from error
    except OSError as error:
        known = ", ".join(SHIPPED)
        raise MapError(name, f"neither one of {known} nor a file that can be read ({error.strerror})") from error
    if len(data) > MAP_BYTES:
        raise MapError(name, f"a map has up to {MAP_BYTES} bytes")
    found = parse_map(name, text)
    if found.login is None or not found.login.users:
        return found
    return replace(found, login=replace(found.login, users=str(path.parent / found.login.users)))


def _with_root(found: Map, option: str) -> Map:
    key, _, root = option.partition("=")
    if key != "root" or not root.strip():
        raise MapError(found.name, f"behind the name of a map stands root=NAME, the page at /, and not {option!r}")
    return replace(found, wiki=replace(found.wiki, root=root))
