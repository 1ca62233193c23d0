"""(pure) WikkaWiki's actions that this wiki lacks, each with a substitute for authors, or why there is none.

A reader of a page sees nothing in their place; a preview shows its author the sentence.  ``docs/wiki.md`` has the same
names in its table, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wikka_port.texts import N_, _

_SECRETS: Final = N_("it tells strangers what the wiki runs on")
_REFERRERS: Final = N_("referrers are not kept: they draw spam and tell who reads what")

REPLACED: Final[Mapping[str, str]] = {
    "adminpages": N_("administrators find pages, and work on many, under Administration"),
    "adminusers": N_("administrators have a page of the users, under Administration"),
    "badwords": N_("the words are among the settings of antispam, which administrators see"),
    "spamlog": N_("administrators have a page of the texts that antispam keeps"),
    "contact": N_("write in the page how to reach you"),
    "feedback": N_("readers write comments, or suggest a change of the page"),
    "emailpassword": N_("a forgotten password is reset by a link, not mailed"),
    "googleform": N_("use {{searchform}}, which searches this wiki itself"),
    "titletag": N_("the title of a page is its first heading"),
    "wikkapatchlevel": N_("use {{wikkaversion}}: there are no patch levels"),
    "mindmap": N_("paste the <map>..</map> into the page: it is shown as an outline"),
}
LEFT_OUT: Final[Mapping[str, str]] = {
    "checkversion": N_("it called home"),
    "countreferrers": _REFERRERS,
    "dbinfo": _SECRETS,
    "flash": N_("no browser shows Flash any more"),
    "geshiversion": _SECRETS,
    "metatag": N_("it wrote into the head of the page, where a text has no place"),
    "mysqlversion": _SECRETS,
    "phpversion": _SECRETS,
    "randomsite": _REFERRERS,
    "referrers": _REFERRERS,
    "referrerslink": _REFERRERS,
    "rss": N_("the wiki fetches nothing from elsewhere: write a link to the feed"),
    "system": _SECRETS,
    "wikkaconfig": _SECRETS,
}
UNSUPPORTED: Final[Mapping[str, str]] = {**REPLACED, **LEFT_OUT}


def instead_of(name: str) -> str:
    """Return a sentence for the author of a page with the action ``name``, which this wiki lacks."""
    if name in UNSUPPORTED:
        why = _(UNSUPPORTED[name])
        return _("The action {name} is not here: {why}. Readers see nothing in its place.", name=name, why=why)
    return _("There is no action {name}. Readers see nothing in its place; WikiHelp lists the actions.", name=name)
