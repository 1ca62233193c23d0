"""Settings of the site, for administrators: a form with the history of its changes, and the sheet of the site's colour.

GET  /-/site                    the form; POST stores it
GET  /-/colour.css?c=0a6c74     the style sheet of a colour: no store is read, and any cache may keep it
"""

from __future__ import annotations

from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Request, Response

from wikka_port.accent_colours import is_colour, style_sheet
from wikka_port.accounts.audit import note_settings
from wikka_port.accounts.sign_in_form import client_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.files.content_types import PICTURE_TYPES
from wikka_port.forms import answer_form, form_page
from wikka_port.kept_settings import TYPED_BELOW, SettingsChanged
from wikka_port.markup.formats import FORMATS
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site, redirect, unindexed
from wikka_port.site_settings import (
    CAMEL_CASES,
    CONFIGURED,
    KEPT,
    MENUS,
    REGISTRATIONS,
    USUAL,
    BadSetting,
    SiteSettings,
    changed_settings,
    fields_of,
    set_values,
)
from wikka_port.texts import N_, _
from wikka_port.urls import site_path
from wikka_port.visitors import NOBODY

FIELDS = ("name", "logo", "logo_alt", "colour", *MENUS, "registration", "markup", "camel_case", "old_zone")
_REGISTRATIONS = {
    "open": N_("everybody"),
    "approval": N_("everybody; an administrator lets each account in"),
    "invitation": N_("people with an invitation"),
    "closed": N_("nobody; administrators make accounts"),
}
_CAMEL_CASES = {"wikka": N_("in Wikka markup"), "all": N_("in every format"), "none": N_("on no page that is saved")}
assert tuple(_CAMEL_CASES) == CAMEL_CASES, "each has its words"
assert tuple(_REGISTRATIONS) == REGISTRATIONS, "each has its words"
_FOREVER = "public, max-age=31536000, immutable"


def handle_site_settings(site: Site, request: Request, _name: str) -> Response:
    site.wiki.moves.require_site()
    rows = site.accounts.rows
    stored = KEPT.read(rows)

    def form(status: int, problem: str) -> Response:
        typed = request.form if request.method == "POST" else {}
        given = {setting: getattr(site.config, field) for field, setting in CONFIGURED.items()}
        values = {
            "fields": {**fields_of(stored.value), **{key: typed[key] for key in FIELDS if key in typed}},
            "revision": stored.revision if status == 409 else typed.get("revision", stored.revision),
            "registrations": {key: _(words) for key, words in _REGISTRATIONS.items()},
            "camel_cases": {key: _(words) for key, words in _CAMEL_CASES.items()},
            "formats": {key: _(words) for key, words in FORMATS.items()},
            "given": {setting: value for setting, value in given.items() if value},
            "usual": USUAL,
            "history": [(one, set_values(one.value)) for one in KEPT.history(rows)],
            "problem": problem,
        }
        return form_page(site, request, "site.html", status=status, **values)

    def change() -> Response:
        given = {key: request.form.get(key, "") for key in FIELDS if key in request.form}
        if request.form.get("revision", "") != stored.revision:
            raise Refused(f"{SettingsChanged()} {_(TYPED_BELOW)}", 409)
        try:
            settings = changed_settings(stored.value, given)
        except BadSetting as bad:
            raise Refused(str(bad), 400) from None
        store_settings(site, stored.revision, stored.value, settings, client_of(request).network)
        return redirect(site_path("site"))

    return answer_form(site, request, form, change)


def store_settings(site: Site, revision: str, before: SiteSettings, settings: SiteSettings, network: str = "") -> None:
    """Store the settings, which count in every process within a second, and note it in the audit.

    Raises Refused, StoreUnavailable.
    """
    if settings == before:
        return
    if settings.logo != before.logo:
        _check_logo(site, settings.logo)
    by, now_ms = site.visitor.signature, site.accounts.clock_ms()
    changed_fields = [key for key, value in fields_of(settings).items() if value != fields_of(before)[key]]
    try:
        KEPT.write(site.accounts.rows, revision, settings, by=by, now_ms=now_ms)
    except SettingsChanged as changed:
        raise Refused(str(changed), 409) from None
    site.wiki.rights.memory.forget()
    note_settings(site.accounts.audit, "site settings", changed_fields, by=by, network=network)


def _check_logo(site: Site, logo: str) -> None:
    """Raise Refused unless the file is a picture that everybody may see."""
    page, _slash, name = logo.rpartition("/")
    if not page:
        return
    try:
        found = site.for_visitor(NOBODY).wiki.files_of([page]).get(page, {}).get(name)
    except NotAllowed:
        found = None
    if found is None or not found.is_there:
        said = N_("There is no file “{file}” at the page {page} that everybody may see. Upload it there first.")
        raise Refused(_(said, file=name, page=page), 400)
    if found.media_type not in PICTURE_TYPES:
        raise Refused(_("“{file}” is no picture that browsers show.", file=name), 400)


def handle_colour(site: Site, request: Request, _name: str) -> Response:
    colour = f"#{request.args.get('c', '')}"
    if not is_colour(colour):
        raise NotFound
    return unindexed(style_sheet(colour), "text/css", cache=_FOREVER)
