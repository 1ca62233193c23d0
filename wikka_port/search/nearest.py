"""Suggestions for an address without a page: names that fold alike, differ in one letter, or have the same beginning.

Case, accents, blanks and the humps of CamelCase do not count, so /homepage, /home_page and /Homepgae mean HomePage.
Names come from the index of names, which is ordered by folded names with their blanks.  It reads

    all names       if the wiki has at most ALL_PAGES pages
    else            names that begin with one form of the typed name: as typed, without blanks, with blanks at its
                    humps, or without its last "/" part.  If none of these has an equal folded form, it also reads
                    names that begin with the first half or the first third of its letters; a slip nearer to the
                    beginning is not found

Cost: at most len(forms) + 2 scans of a bounded number of keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from columnar.client import Connection
from wikka_port import schema
from wikka_port.schema import folded
from wikka_port.search.page_text import title_text

MOST: Final = 5  # names shown
CANDIDATES: Final = 40  # names returned, of which a visitor may read some
ALL_PAGES: Final = 500
_ALL_ROWS: Final = ALL_PAGES + ALL_PAGES // 5  # the number of pages is known only roughly
_FORM_ROWS: Final = 50
_PART_ROWS: Final = 200
SHORTEST: Final = 3  # letters; shorter names have too many similar ones
_ALIKE, _ONE_OFF, _BEGINS = range(3)


def nearest(connection: Connection, typed: str, pages: int) -> list[str]:
    """Return up to CANDIDATES names, the most similar first; ``pages`` is the rough number of all pages."""
    if pages <= ALL_PAGES:
        return ranked(typed, _names(connection, "", _ALL_ROWS))
    found = {name for form in forms(typed) for name in _names(connection, form, _FORM_ROWS)}
    if not any(_rank(typed, name) == _ALIKE for name in found):
        found.update(name for part in _parts(typed) for name in _names(connection, part, _PART_ROWS))
    return ranked(typed, found)


def _names(connection: Connection, prefix: str, most: int) -> Iterator[str]:
    rows = connection.table(schema.NAMES).scan(
        row_prefix=prefix.encode() or None, columns=[b"meta"], batch_size=most, limit=most
    )
    return (schema.name_of_row(row) for row, _ in rows)


# --- which names are near (pure) -----------------------------------------------------------------


def ranked(typed: str, names: Iterable[str]) -> list[str]:
    near = [(rank, len(name), name) for name in names if name != typed and (rank := _rank(typed, name)) is not None]
    return [name for _, _, name in sorted(near)[:CANDIDATES]]


def forms(typed: str) -> list[str]:
    """Return up to four beginnings in the index that the intended name may have."""
    above = typed.rpartition("/")[0]
    made = (folded(typed), _squashed(typed), folded(title_text(typed).rpartition("\n")[2]), folded(above))
    return list(dict.fromkeys(form for form in made if form))


def _parts(typed: str) -> list[str]:
    bare = folded(typed)
    return list(dict.fromkeys(bare[: len(bare) // part] for part in (2, 3) if len(bare) // part > 1))


def _squashed(name: str) -> str:
    return folded(name).replace(" ", "")


def _rank(typed: str, name: str) -> int | None:
    """Return how similar ``name`` is to the typed one (less is nearer), or None if it is not similar."""
    one, other = _squashed(typed), _squashed(name)
    if one == other:
        return _ALIKE
    if min(len(one), len(other)) < SHORTEST:
        return None
    if is_one_off(one, other):
        return _ONE_OFF
    return _BEGINS if other.startswith(one) or other == _squashed(typed.rpartition("/")[0]) else None


def is_one_off(one: str, other: str) -> bool:
    """Return whether the two differ in one letter wrong, missing or added, or in two neighbours swapped."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1 or short == long:
        return False
    same = next((at for at, letter in enumerate(short) if letter != long[at]), len(short))
    if len(short) < len(long):
        return short[same:] == long[same + 1 :]
    swapped = short[same + 1 : same + 2] + short[same] + short[same + 2 :]
    return short[same + 1 :] == long[same + 1 :] or swapped == long[same:]
