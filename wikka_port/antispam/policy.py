"""(pure) The site's settings of antispam: their values, the defaults, and the form in which they are stored.

    {"page_links": 15, "comment_links": 6, ..., "words": ["..."], ...}      JSON; an absent key has its default

Knows nothing of the store: ``stored_policy`` reads and changes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Final, Literal, get_args

from wikka_port.antispam.additions import Terms, host_of
from wikka_port.limits import ANTISPAM_ANSWERS_MAX, ANTISPAM_ENTRIES_MAX, ANTISPAM_ENTRY_CHARS
from wikka_port.texts import _

FirstEdits = Literal["accept", "mark", "review"]
FIRST_EDITS: Final = get_args(FirstEdits)
LINKS_MAX: Final = 1_000
FORM_SECONDS_MAX: Final = 60


class BadPolicy(Exception):
    """The settings are as they were; ``str()`` is a sentence for who changes them."""


@dataclass(frozen=True)
class Policy:
    judging: bool = True  # False: every text is accepted, as in a wiki that only its own people reach
    page_links: int = 15  # new links to other sites in an edit, as in WikkaWiki; with more it waits for a review
    comment_links: int = 6
    suggestion_links: int = 6
    words: tuple[str, ...] = ()  # words and phrases; a text that adds one waits
    domains: tuple[str, ...] = ()  # sites, with all below them; a text that adds a link to one waits
    advertising: bool = True  # whether the wiki's own list of advertising counts (``advertising``)
    form_seconds: int = 2  # from a form to its return with a new link; 0: at once
    first_edits: FirstEdits = "accept"  # of visitors without an account, and of new accounts
    question: str = ""  # for visitors without an account; "": none
    answers: tuple[str, ...] = ()  # of which one suffices; case and accents do not count

    @cached_property
    def terms(self) -> Terms:
        return Terms(self.words)


DEFAULT_POLICY: Final = Policy()
_KEYS: Final = {one.name: one.type for one in fields(Policy)}
_LISTS: Final = {"words": ANTISPAM_ENTRIES_MAX, "domains": ANTISPAM_ENTRIES_MAX, "answers": ANTISPAM_ANSWERS_MAX}
SWITCHES: Final = ("judging", "advertising")
_NUMBERS: Final = {
    "page_links": LINKS_MAX,
    "comment_links": LINKS_MAX,
    "suggestion_links": LINKS_MAX,
    "form_seconds": FORM_SECONDS_MAX,
}


def pack_policy(policy: Policy) -> bytes:
    """Return the settings that differ from the defaults."""
    default = asdict(DEFAULT_POLICY)
    kept = {key: value for key, value in asdict(policy).items() if value != default[key]}
    return json.dumps(kept, ensure_ascii=False, sort_keys=True).encode()


def policy_in(cell: bytes) -> Policy:
    """Return the settings in a cell; an unknown or damaged one has its default, so that nothing stops editing."""
    try:
        found = json.loads(cell) if cell else {}
    except ValueError:
        return DEFAULT_POLICY
    if not isinstance(found, dict):
        return DEFAULT_POLICY
    policy = DEFAULT_POLICY
    for key, value in found.items():
        try:
            policy = changed_policy(policy, {key: value})
        except BadPolicy:
            continue
    return policy


def changed_policy(policy: Policy, given: Mapping[str, Any]) -> Policy:
    """Return the settings with those ``given``, of which lists may be texts of an entry a line.  Raises BadPolicy."""
    taken: dict[str, Any] = asdict(policy)
    for key, value in given.items():
        taken[key] = _checked(key, value)
    if taken["question"] and not taken["answers"]:
        raise BadPolicy(_("The question needs an answer: write one a line."))
    return Policy(**taken)


def _checked(key: str, value: Any) -> Any:
    if key not in _KEYS:
        raise BadPolicy(_("There is no setting “{name}”.", name=key))
    if key in _LISTS:
        return _checked_entries(key, value)
    if key in _NUMBERS:
        return _checked_number(value, _NUMBERS[key])
    if key in SWITCHES:
        return value in (True, "yes", "1")
    text = " ".join(str(value).split())
    if key == "first_edits" and text not in FIRST_EDITS:
        raise BadPolicy(_("First edits are one of: {choices}.", choices=", ".join(FIRST_EDITS)))
    if len(text) > ANTISPAM_ENTRY_CHARS:
        raise BadPolicy(_("An entry has {most} characters at most.", most=ANTISPAM_ENTRY_CHARS))
    return text


def _checked_number(value: Any, most: int) -> int:
    text = str(value).strip()
    if not (text.isascii() and text.isdigit() and int(text[:9]) <= most):
        raise BadPolicy(_("“{typed}” is no number from 0 to {most}.", typed=text[:40], most=most))
    return int(text)


def _checked_entries(key: str, value: Any) -> tuple[str, ...]:
    lines = value.splitlines() if isinstance(value, str) else [str(one) for one in value]
    entries = tuple(dict.fromkeys(" ".join(line.split()) for line in lines if line.strip()))
    if key == "domains":
        entries = tuple(dict.fromkeys(_domain(entry) for entry in entries))
    if len(entries) > _LISTS[key]:
        raise BadPolicy(
            _("The list has {count} entries and {most} are the most.", count=len(entries), most=_LISTS[key])
        )
    if any(len(entry) > ANTISPAM_ENTRY_CHARS for entry in entries):
        raise BadPolicy(_("An entry has {most} characters at most.", most=ANTISPAM_ENTRY_CHARS))
    return entries


def _domain(entry: str) -> str:
    """Return the domain that an entry names; people type whole addresses, too.  Raises BadPolicy."""
    host = host_of(entry if "://" in entry else f"http://{entry}").removeprefix("*.")
    if "." not in host or " " in host:
        raise BadPolicy(_("“{typed}” is no name of a site, such as casino.example.", typed=entry[:80]))
    return host
