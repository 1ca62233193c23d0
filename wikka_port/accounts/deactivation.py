"""Deletion of an account: its data is erased, and its edits stay under a neutral name, "Former user 3f2a".

    1. the account's row keeps the status "deleted", the name and the id     from now on nobody is signed in as it
    2. its drafts, suggestions, watches and notices are deleted, and files
       that wait for the first save of a page
    3. its signatures are replaced (``edit_signatures``), also on deleted
       pages and hidden revisions                                            in steps
    4. ``account:renamed`` is put                                            nothing is left to do

After a crash in between, ``finish``, which ``wikka check --repair`` calls, continues.  Only edits signed with the
account are renamed: the same name in an edit without an account belongs to a different person.
"""

from __future__ import annotations

from typing import Final, Protocol

from wikka_port.accounts.directory import Directory
from wikka_port.accounts.records import Account
from wikka_port.accounts.rows import Rows
from wikka_port.accounts.tables import ALL_RENAMED, RENAMED, USERS
from wikka_port.editing.kept_drafts import Drafts, owner_of_account
from wikka_port.editing.suggestions import Suggestions
from wikka_port.files.stored_files import StoredFiles
from wikka_port.notices.stored_notices import StoredNotices

SETTLE_S: Final = 10.0  # the longest wait for the triggers; then the deletion counts as unfinished


class Edits(Protocol):
    """The methods of ``pages.Wiki`` that this module needs."""

    @property
    def rows(self) -> Rows: ...

    @property
    def files(self) -> StoredFiles: ...

    @property
    def notices(self) -> StoredNotices: ...

    def rename_edits(self, name: str, new: str) -> int: ...

    def settle(self, sequence: str, timeout_s: float) -> bool: ...


def neutral_name(account: Account) -> str:
    return f"Former user {account.id[:4]}"


def leave(wiki: Edits, directory: Directory, account: Account) -> int:
    """Erase the account and rename its edits; return their number.  Raises StoreUnavailable."""
    directory.erase(account)
    return finish(wiki, account)


def finish(wiki: Edits, account: Account) -> int:
    """Rename the remaining edits of a deleted account; a second call changes nothing.

    The list of changes has the name, too, so the triggers must have written it before.  If they are late, the deletion
    counts as unfinished, and ``wikka check`` reports it.
    """
    Drafts(wiki.rows).forget(owner_of_account(account.name))
    wiki.files.waiting.forget(owner_of_account(account.name))
    Suggestions(wiki.rows).forget({owner_of_account(account.name)})
    wiki.notices.forget(account.row)
    has_all = wiki.settle("", SETTLE_S)
    renamed = wiki.rename_edits(account.name, neutral_name(account))
    if has_all:
        wiki.rows.put(USERS, account.row, {RENAMED: ALL_RENAMED})
    return renamed
