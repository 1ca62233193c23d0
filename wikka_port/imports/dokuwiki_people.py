"""Rights and accounts of a DokuWiki, moved before its pages, so that nobody reads meanwhile what a list hides.

Accounts come first, for only those that came are named in lists.  Each namespace with lines of its own gets lists for
its prefix, and the whole wiki gets the lists of ``*``, unless this wiki has other ones there.  Each page for which
these lists then mean something else than the DokuWiki's gets own lists.  A page whose readers would still be
others, because somebody changed its rights here, is left out.  So no page admits more readers than there, whatever
lists this wiki had.

A killed move is continued by calling it again.  Rights that were changed here stay (``wikkawiki.rights_move``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from wikka_port.accounts.factory import Accounts
from wikka_port.imports.dokuwiki_accounts import DokuWikiUsers, logins_moved
from wikka_port.imports.dokuwiki_acl import NOBODY, Acl, bare_lines
from wikka_port.imports.dokuwiki_conf import USE_ACL
from wikka_port.imports.dokuwiki_folder import DokuWikiFolder
from wikka_port.names import InvalidName
from wikka_port.pages import Wiki
from wikka_port.rights.acl import BadList
from wikka_port.rights.rules import Privilege, effective
from wikka_port.rights.stored import RightsChanged
from wikka_port.wikkawiki.account_move import AccountMove, AccountReport, compare_accounts
from wikka_port.wikkawiki.comparison import Compared
from wikka_port.wikkawiki.rights_move import Lists, RightsMove, RightsReport, compare_rights

ORIGIN: Final = "dokuwiki"
_SPREAD_S: Final = 1.0  # until every process knows that pages have own lists (``rights.stored``)


@dataclass(slots=True)
class PeopleReport:
    """Outcome of the move; each entry of a list is a line for a person."""

    accounts: AccountReport = field(default_factory=AccountReport)
    rights: RightsReport = field(default_factory=RightsReport)
    prefixes: list[str] = field(default_factory=list)  # that got lists
    others: list[str] = field(default_factory=list)  # prefixes with lists of this wiki, so that pages got their own
    weaker: list[str] = field(default_factory=list)
    too_long: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def acl_of(users_text: str, acl_text: str, settings: Mapping[str, str]) -> Acl | None:
    """Return the rights of a DokuWiki, or None if it has none: everybody may do everything there.

    If no file of settings says whether rights count, they do if there are any.  Raises TooManyLines.
    """
    if settings.get(USE_ACL, "1" if any(bare_lines(acl_text)) else "0") == "0":
        return None
    users = DokuWikiUsers(users_text, settings.get("superuser"), AccountReport()).users()
    return Acl.of(acl_text, users, settings.get("defaultgroup", "user").lower() or "user")


class DokuWikiPeople:
    """The accounts and rights of one folder."""

    def __init__(
        self,
        folder: DokuWikiFolder,
        acl: Acl | None,
        users_text: str,
        superusers: str | None,
        *,
        prefix: str,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take the text of users.auth.php, and the setting ``superuser``, None if it is not set.

        Without ``acl`` there are no rights.
        """
        self.report = PeopleReport()
        self._folder = folder
        self._prefix = prefix
        self._pause = pause
        self._users_text = users_text
        self._superusers = superusers
        self.acl = acl
        if acl is not None and acl.unread:
            self.report.unread.append(f"{acl.unread:,} lines of acl.auth.php")
        self._logins: set[str] = set()

    def before_pages(self, wiki: Wiki, accounts: Accounts) -> None:
        """Move accounts, and rights.  Raises StoreUnavailable."""
        move = AccountMove(accounts.directory, accounts.registration.passwords, self.report.accounts, source=ORIGIN)
        for moved in DokuWikiUsers(self._users_text, self._superusers, self.report.accounts):
            move.move(moved)
        self._logins = logins_moved(self.acl.users if self.acl is not None else (), self.report.accounts.names)
        self._folder.note_accounts(self.report.accounts.names)
        if self.acl is None:
            return
        self._set_prefixes(wiki)
        move_rights = RightsMove(wiki.rights, self.report.rights)
        move_rights.prepare(self.rights(wiki))
        move_rights.open_present(self.rights(wiki))  # no revision of a DokuWiki is hidden
        self._folder.leave_out(self._differing(wiki))
        if self.report.rights.added or self.report.rights.written or self.report.prefixes:
            self._pause(_SPREAD_S)

    def _differing(self, wiki: Wiki) -> set[str]:
        """Return the pages that others may read here than there: somebody has changed their rights here."""
        assert self.acl is not None
        rules = wiki.rights.rules()
        wanted = {name: self._lists_of(page)[Privilege.READ] for page, name in self._folder.names.items()}
        own = wiki.rights.of(list(wanted))
        return {
            name for name, text in wanted.items() if effective(name, own[name], rules, Privilege.READ)[0].text != text
        }

    def _lists_of(self, page: str) -> dict[Privilege, str]:
        assert self.acl is not None
        return self.acl.lists(page.replace("/", ":"), self._logins)

    def after_pages(self, wiki: Wiki) -> None:
        """Remove the rights of pages that did not come."""
        if self.acl is not None:
            RightsMove(wiki.rights, self.report.rights).finish(self.rights(wiki))

    def compared(self, wiki: Wiki, accounts: Accounts) -> list[Compared]:
        """Compare accounts and rights of both sides."""
        source = DokuWikiUsers(self._users_text, self._superusers, AccountReport())
        found = [compare_accounts(accounts.directory, source, self.report.accounts)]
        if self.acl is not None:
            found.append(compare_rights(wiki.rights, self.rights(wiki), self.report.rights))
        return found

    # --- lists --------------------------------------------------------------------------------------

    def _set_prefixes(self, wiki: Wiki) -> None:
        assert self.acl is not None
        for namespace in self.acl.namespaces:
            place = f"{namespace}:*" if namespace else "*"
            lists = self.acl.lists(place, self._logins)
            prefix = self._prefix_of(namespace)
            if prefix is None:
                continue
            if NOBODY in lists.values() and len(self._logins) and self._is_too_long(place):
                self.report.too_long.append(f"{place}: more names than a list can have")
            weaker = self.acl.weaker(place)
            if weaker:
                self.report.weaker.append(f"{place}: {', '.join(weaker[:10])}")
            rules = wiki.rights.rules()
            there = {one: rules.lists.get((one, rules.folded_prefix(prefix))) for one in lists}
            if all(found is not None and found.text == lists[one] for one, found in there.items()):
                continue
            if any(found is not None for found in there.values()):
                self.report.others.append(f"names that begin with {prefix!r}" if prefix else "the whole wiki")
                continue
            try:
                wiki.rights.change_rules(prefix, lists, rules)
                self.report.prefixes.append(prefix or "the whole wiki")
            except (BadList, RightsChanged) as problem:
                self.report.others.append(f"{prefix or 'the whole wiki'}: {problem}")

    def _is_too_long(self, place: str) -> bool:
        assert self.acl is not None
        texts = self.acl.lists(place, self._logins).values()
        few = self.acl.lists(place, ()).values()
        return any(text == NOBODY != other for text, other in zip(texts, few, strict=True))

    def _prefix_of(self, namespace: str) -> str | None:
        if not namespace:
            return f"{self._prefix}/" if self._prefix else ""
        try:
            return self._folder.ids.name_of(namespace.replace(":", "/") + "/x").removesuffix("X")
        except InvalidName:
            return None

    def rights(self, wiki: Wiki) -> Iterator[tuple[str, str, Lists]]:
        """Yield name, owner and own lists of each page: none where the lists of prefixes mean the same."""
        assert self.acl is not None
        rules = wiki.rights.rules()
        for page, name in sorted(self._folder.names.items()):
            wanted = self._lists_of(page)
            given: dict[Privilege, str] = {one: rules.list_for(name, one)[0].text for one in wanted}
            yield name, "", {} if given == wanted else wanted
