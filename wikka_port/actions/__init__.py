"""Actions: what ``{{name key="value"}}`` in a page becomes.  Each is a module, named as in WikkaWiki; those
that are a word or a link within a line are in ``furniture``.

``toc``, ``notoc`` and ``redirect`` are the markup's own.  An action returns safe HTML; it may raise StoreUnavailable
and ValueError, which are shown in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wikka_port.actions import (
    authors,
    backlinks,
    calendar_month,
    category,
    checklinks,
    color,
    countedits,
    countpages,
    image,
    include,
    interwikilist,
    license,
    orphanedpages,
    pageindex,
    people,
    randompage,
    recentchanges,
    search_forms,
    wantedpages,
)
from wikka_port.actions.call import ActionCall
from wikka_port.actions.furniture import FURNITURE

ACTIONS: Final[Mapping[str, Callable[[ActionCall], str]]] = {
    **FURNITURE,
    "acls": people.acls,
    "countowned": people.countowned,
    "countusers": people.countusers,
    "lastusers": people.lastusers,
    "mychanges": people.mychanges,
    "mypages": people.mypages,
    "ownedpages": people.ownedpages,
    "owner": people.owner,
    "ownerlink": people.ownerlink,
    "backlinks": backlinks.run,
    "calendar": calendar_month.run,
    "category": category.run,
    "checklinks": checklinks.run,
    "color": color.run,
    "colour": color.run,
    "contributors": authors.contributors,
    "countedits": countedits.run,
    "countpages": countpages.run,
    "highscores": authors.highscores,
    "image": image.run,
    "include": include.run,
    "interwikilist": interwikilist.run,
    "license": license.run,
    "newpage": search_forms.newpage,
    "orphanedpages": orphanedpages.run,
    "pageindex": pageindex.run,
    "randompage": randompage.run,
    "recentchanges": recentchanges.run,
    "search": search_forms.search,
    "searchform": search_forms.search,
    "textsearch": search_forms.search,
    "textsearchexpanded": search_forms.expanded,
    "wantedpages": wantedpages.run,
}
__all__ = ["ACTIONS", "ActionCall"]
