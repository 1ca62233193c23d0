"""An account ends: what it was is erased, and its edits stay under a neutral name, "Former user 3f2a".

    the account's row says "deleted", nothing else but the name and id        from now on nobody is signed in as it
    its drafts, and the changes that it suggested, are thrown away
    what it signed is signed anew (``edit_signatures``), deleted pages and
    hidden revisions among it                                                 in steps
    ``account:renamed`` is put                                                nothing is left to do

A fall in between is continued by ``finish``, which ``wikka check --repair`` calls.  Only edits that were
signed with the account are renamed: the same name, written by anybody before, is another person's.
"""

from __future__ import annotations

from typing import Final, Protocol

from wikka_port.accounts.directory import Directory
from wikka_port.accounts.records import Account
from wikka_port.accounts.rows import Rows
from wikka_port.accounts.tables import RENAMED, USERS
from wikka_port.editing.kept_drafts import Drafts, owner_of_account
from wikka_port.editing.suggestions import Suggestions

SETTLE_S: Final = 10.0  # for the triggers, before an account counts as unfinished


class Edits(Protocol):
    """``pages.Wiki`` as far as it is needed here."""

    @property
    def rows(self) -> Rows: ...

    def rename_edits(self, name: str, new: str) -> int: ...

    def settle(self, sequence: str, timeout_s: float) -> bool: ...


def neutral_name(account: Account) -> str:
    return f"Former user {account.id[:4]}"


def leave(wiki: Edits, directory: Directory, account: Account) -> int:
    """The account is erased and its edits are renamed; how many.  Raises StoreUnavailable."""
    directory.erase(account)
    return finish(wiki, account)


def finish(wiki: Edits, account: Account) -> int:
    """Rename what is left of the edits of an account that is deleted.  Doing it twice is doing it once.

    The list of changes bears the name, too, so the triggers have to have written it; if they are late, the account
    counts as unfinished, and ``wikka check`` says so.
    """
    Drafts(wiki.rows).forget(owner_of_account(account.name))
    Suggestions(wiki.rows).forget({owner_of_account(account.name)})
    has_all = wiki.settle("", SETTLE_S)
    renamed = wiki.rename_edits(account.name, neutral_name(account))
    if has_all:
        wiki.rows.put(USERS, account.row, {RENAMED: b"1"})
    return renamed
