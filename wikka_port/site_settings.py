"""Settings of the site that administrators change while it serves: name, logo, colour, menus, registration, formats.

They lie in the row of the rules (``rights.rules``): ``acl:settings`` has those that are set, ``acl:settings-revision``
"N:token" of the last change; the history is in the table ``site`` (``kept_settings``).  So they come with the call that
reads the rules, and count in every process within a second at no call of their own.

A setting that was given to the process (by a flag, a variable or its file) wins over the stored one, and that over the
default; an empty stored setting is none.

A menu is a list of lines, ``Words | Target``: a page, a page of the wiki itself (/-/recentchanges), or an address of
another site.  An empty menu is the wiki's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any, Final, cast

from wikka_port.accent_colours import LEAST, darker, is_colour, least_contrast
from wikka_port.accounts.registration import Policy
from wikka_port.accounts.settings import is_zone
from wikka_port.config import WikiConfig
from wikka_port.kept_settings import KeptSettings
from wikka_port.limits import MENU_CHARS, MENU_ITEMS_MAX, SITE_NAME_CHARS
from wikka_port.markup.formats import FORMATS, WIKKA
from wikka_port.names import InvalidName, normalise
from wikka_port.rights.rules import RULES_ROW, SETTINGS, SETTINGS_REVISION
from wikka_port.rights.stored import StoredRights
from wikka_port.schema import PAGES
from wikka_port.store import StoreUnavailable
from wikka_port.texts import N_, _
from wikka_port.urls import SITE_HANDLERS, file_path, page_path
from wikka_port.visitors import Visitor

REGISTRATIONS: Final = ("open", "approval", "invitation", "closed")
CAMEL_CASES: Final = ("wikka", "all", "none")
MENUS: Final = ("menu_visitors", "menu_users", "menu_administrators")
# Fields of WikiConfig, None unless they were given to the process, and the setting that each wins over.
CONFIGURED: Final = {
    "site_name": "name",
    "registration": "registration",
    "markup": "markup",
    "camel_case": "camel_case",
}
_OWN_PAGE: Final = re.compile(r"/-/([a-z.]+)(\?[!-~]*)?")
_FOREIGN: Final = re.compile(r"https?://[!-~]+")


class BadSetting(ValueError):
    """Nothing was changed; ``str()`` is a sentence for the administrator."""


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """The values that are set; "" and () mean that one is not."""

    name: str = ""
    logo: str = ""  # page and file, "HomePage/Logo.png"
    logo_alt: str = ""  # in the place of the picture; "": it says no more than the name beside it
    colour: str = ""  # "#0a6c74"
    menu_visitors: tuple[str, ...] = ()
    menu_users: tuple[str, ...] = ()
    menu_administrators: tuple[str, ...] = ()
    registration: str = ""
    markup: str = ""  # of new pages
    camel_case: str = ""  # formats in which CamelCase words are links, on new pages; "none": on no page that is saved
    old_zone: str = ""  # "Europe/Berlin": of times in addresses of the wiki that moved here; "": UTC


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame of every page for a visitor."""

    name: str
    logo: str  # its path, "": the wiki's own
    logo_alt: str
    colour: str
    menu: tuple[tuple[str, str], ...]  # words and addresses; (): the wiki's own


NOTHING_SET: Final = SiteSettings()
USUAL: Final = SiteSettings(name="Wiki", registration=REGISTRATIONS[0], markup=WIKKA, camel_case=CAMEL_CASES[0])
_KEYS: Final = frozenset(one.name for one in fields(SiteSettings))


def pack_settings(settings: SiteSettings) -> bytes:
    kept = {key: value for key, value in asdict(settings).items() if value}
    return json.dumps(kept, ensure_ascii=False, sort_keys=True).encode()


@lru_cache(maxsize=16)
def settings_in(cell: bytes) -> SiteSettings:
    """Return the settings in a cell; an unknown or damaged one is not set."""
    try:
        found = json.loads(cell) if cell else {}
    except ValueError:
        return NOTHING_SET
    settings = NOTHING_SET
    for key, value in found.items() if isinstance(found, dict) else ():
        try:
            settings = changed_settings(settings, {key: value})
        except BadSetting:
            continue
    return settings


KEPT: Final = KeptSettings(
    table=PAGES,
    row=RULES_ROW,
    value=SETTINGS,
    revision=SETTINGS_REVISION,
    history_row=b"settings history",
    pack=pack_settings,
    parse=settings_in,
)


def changed_settings(settings: SiteSettings, given: Mapping[str, Any]) -> SiteSettings:
    """Return the settings with those ``given``; a menu may be a text of a line an entry.  Raises BadSetting."""
    taken = {key: _checked(key, value) for key, value in given.items()}
    return replace(settings, **taken)


def _checked(key: str, value: Any) -> Any:
    if key not in _KEYS:
        raise BadSetting(_("There is no setting “{name}”.", name=key))
    if key in MENUS:
        return _checked_menu(value)
    text = " ".join(str(value).split())
    if not text:
        return ""
    most = SITE_NAME_CHARS if key == "name" else MENU_CHARS
    if not text.isprintable() or len(text) > most:
        said = N_("“{typed}” has more than {most} characters, or one without a shape.")
        raise BadSetting(_(said, typed=text[:40], most=most))
    if key == "colour":
        return _checked_colour(text.lower())
    if key == "logo":
        return _checked_logo(text)
    if key == "old_zone":
        return _checked_zone(text)
    choices = {"registration": REGISTRATIONS, "markup": tuple(FORMATS), "camel_case": CAMEL_CASES}.get(key)
    if choices is not None and text not in choices:
        raise BadSetting(_("“{typed}” is none of: {choices}.", typed=text[:40], choices=", ".join(choices)))
    return text


def _checked_colour(text: str) -> str:
    colour = text if text.startswith("#") else f"#{text}"
    if not is_colour(colour):
        raise BadSetting(_("“{typed}” is no colour: write it as #0a6c74.", typed=text[:40]))
    found = least_contrast(colour)
    if found < LEAST:
        said = N_(
            "{colour} is too light for links on white: its contrast is {found}, and {least} is needed. {darker} has it."
        )
        raise BadSetting(
            _(
                said,
                colour=colour,
                found=f"{found:.1f}",
                least=f"{LEAST:.1f}",
                darker=darker(colour),
            )
        )
    return colour


def _checked_logo(text: str) -> str:
    page, slash, file = text.rpartition("/")
    try:
        name = normalise(page)
    except InvalidName as invalid:
        raise BadSetting(str(invalid)) from None
    if not slash or not file:
        raise BadSetting(_("“{typed}” names no file of a page: write Page/File.png.", typed=text[:40]))
    return f"{name}/{file}"


def _checked_zone(text: str) -> str:
    if not is_zone(text):
        said = N_("There is no time zone “{zone}”. Write it like Europe/Berlin, or nothing for UTC.")
        raise BadSetting(_(said, zone=text[:40]))
    return text


def _checked_menu(value: Any) -> tuple[str, ...]:
    lines = value.splitlines() if isinstance(value, str) else [str(one) for one in value]
    kept = tuple(" ".join(line.split()) for line in lines if line.strip())
    if len(kept) > MENU_ITEMS_MAX:
        raise BadSetting(_("A menu has {most} entries at most.", most=MENU_ITEMS_MAX))
    for line in kept:
        _menu_item(line)
    return kept


def _menu_item(line: str) -> tuple[str, str]:
    """Return words and address of a line of a menu.  Raises BadSetting."""
    words, bar, target = (part.strip() for part in line.rpartition("|"))
    if len(line) > MENU_CHARS or not line.isprintable() or (bar and not words) or not target:
        raise BadSetting(_("“{typed}” is no entry of a menu: write Words | Page.", typed=line[:40]))
    own = _OWN_PAGE.fullmatch(target)
    if _FOREIGN.fullmatch(target) or (own and own[1] in SITE_HANDLERS):
        return words or target, target
    if target.startswith("/-/") or "://" in target:
        said = N_("“{typed}” leads nowhere: name a page, a page of the wiki as /-/recentchanges, or https://…")
        raise BadSetting(_(said, typed=target[:80]))
    try:
        return words or target, page_path(normalise(target))
    except InvalidName as invalid:
        raise BadSetting(str(invalid)) from None


# --- what counts -------------------------------------------------------------------------------


def effective(stored: SiteSettings, config: WikiConfig) -> SiteSettings:
    """Return the settings that count in a process with this configuration."""
    return _effective(stored, config.site_name, config.registration, config.markup, config.camel_case)


@lru_cache(maxsize=32)
def _effective(
    stored: SiteSettings, name: str | None, registration: str | None, markup: str | None, camel_case: str | None
) -> SiteSettings:
    return replace(
        stored,
        name=name or stored.name or USUAL.name,
        registration=registration or stored.registration or USUAL.registration,
        markup=markup or stored.markup or USUAL.markup,
        camel_case=camel_case or stored.camel_case or USUAL.camel_case,
    )


def present_settings(rights: StoredRights, config: WikiConfig) -> SiteSettings:
    """Return the settings that count now, at most a second old; older ones while the store is unavailable."""
    try:
        rules = rights.rules()
    except StoreUnavailable:
        rules = rights.memory.latest()
    return effective(settings_in(rules.settings), config)


def latest_settings(rights: StoredRights, config: WikiConfig) -> SiteSettings:
    """Return the settings as they were last read, of any age, without a call of the store."""
    return effective(settings_in(rights.memory.latest().settings), config)


def registration_of(settings: SiteSettings) -> Policy:
    return cast("Policy", settings.registration)  # checked when it was set


def frame_of(settings: SiteSettings, visitor: Visitor) -> Frame:
    """Return the frame of a visitor's pages by the ``effective`` settings."""
    menu = settings.menu_administrators if visitor.administers else settings.menu_users
    return _frame(settings, menu if visitor.name else settings.menu_visitors)


@lru_cache(maxsize=32)
def _frame(settings: SiteSettings, menu: tuple[str, ...]) -> Frame:
    page, _slash, file = settings.logo.rpartition("/")
    return Frame(
        settings.name,
        file_path(page, file) if page else "",
        settings.logo_alt,
        settings.colour,
        tuple(map(_menu_item, menu)),
    )


def fields_of(settings: SiteSettings) -> dict[str, str]:
    """Return the settings as the fields of a form: a menu is a text of a line an entry."""
    return {key: "\n".join(value) if key in MENUS else value for key, value in asdict(settings).items()}


def set_values(settings: SiteSettings) -> dict[str, str]:
    """Return what is set, in one line each."""
    return {key: value.replace("\n", ", ") for key, value in fields_of(settings).items() if value}
