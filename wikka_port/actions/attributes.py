"""The attributes of actions by name (pure), for the completion of a call while it is typed.

A test compares them with the table of ``docs/wiki.md``.  An action that is not named here has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_LABEL: Final = ("label",)
_LIMIT: Final = ("limit",)
ATTRIBUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "acls": _LABEL,
    "backlinks": ("page", "limit"),
    "calendar": ("year", "month"),
    "category": ("page", "col", "compact"),
    "checklinks": ("page",),
    "clonelink": _LABEL,
    "color": ("c", "fg", "hex", "bg", "text"),
    "colour": ("c", "fg", "hex", "bg", "text"),
    "contributors": ("page", "top"),
    "delete": _LABEL,
    "deletelink": _LABEL,
    "edit": _LABEL,
    "editlink": _LABEL,
    "highscores": ("top", "rank", "style"),
    "history": _LABEL,
    "historylink": _LABEL,
    "homepage": _LABEL,
    "homepagelink": _LABEL,
    "image": ("url", "src", "alt", "title", "class", "link", "width", "height"),
    "include": ("page",),
    "lastedit": ("show",),
    "lastusers": ("style", "max"),
    "license": ("type", "link"),
    "logout": _LABEL,
    "mychanges": ("limit", "order"),
    "newpage": ("template",),
    "orphanedpages": _LIMIT,
    "owner": ("page",),
    "ownerlink": ("page",),
    "pageindex": ("letter", "limit", "showjustletters"),
    "randompage": ("title",),
    "recentchanges": ("limit", "minor"),
    "recentchangesrss": _LABEL,
    "redirect": ("target",),
    "revertlink": _LABEL,
    "revisionlink": _LABEL,
    "revisions": _LABEL,
    "revisionsrss": _LABEL,
    "search": ("phrase",),
    "searchform": ("phrase",),
    "textsearch": ("phrase",),
    "textsearchexpanded": ("phrase",),
    "toc": ("levels", "title", "links"),
    "usersettings": _LABEL,
    "wantedpages": _LIMIT,
    "wikkachanges": _LABEL,
}
