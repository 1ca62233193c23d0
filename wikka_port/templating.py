"""The templates of pages, with the values and filters that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from wikka_port import urls
from wikka_port.assets import Asset, texts_asset
from wikka_port.config import WikiConfig
from wikka_port.feeds import iso_time
from wikka_port.files.content_types import PICTURE_TYPES
from wikka_port.files.file_words import kind_text, size_text
from wikka_port.files.thumbnails import widths_of
from wikka_port.local_time import local_time, zone_label
from wikka_port.names import pages_above
from wikka_port.texts import N_
from wikka_port.texts.catalogue import Catalogue, direction
from wikka_port.texts.folding import speak_in

UTC: Final = N_("Times are UTC.")
ZONE: Final = N_("Times are of the time zone {zone}.")
_CLOCK: Final = 11  # the time of day begins at this character, after the day
PREVIEW_BYTES_MAX: Final = 1_000_000  # a list of files shows smaller pictures themselves
LANGUAGES_KEPT: Final = 8  # languages whose templates stay compiled, some 3 MB each


class _Settings(NamedTuple):
    """A wiki's configuration, as compiled templates hold it."""

    root_page: str
    max_note_chars: int
    edit_notes: int
    language: str
    assets: tuple[tuple[str, str], ...]  # file name and URL


class Templates:
    """Templates, compiled once for each language; wikis of one process with the same settings share them."""

    def __init__(self, config: WikiConfig, assets: Mapping[str, Asset]) -> None:
        settings = _Settings(
            root_page=config.root_page,
            max_note_chars=config.max_note_chars,
            edit_notes=config.edit_notes,
            language=config.language,
            assets=tuple((name, asset.url) for name, asset in assets.items()),
        )
        self._environment = lru_cache(maxsize=LANGUAGES_KEPT)(
            lambda catalogue: _environment(settings, texts_asset(assets, catalogue).url, catalogue)
        )

    def page(self, name: str, catalogue: Catalogue) -> Template:
        return self._environment(catalogue).get_template(name)


@lru_cache(maxsize=LANGUAGES_KEPT)
def _environment(settings: _Settings, texts_url: str, catalogue: Catalogue) -> Environment:
    """Make an environment, which is never changed afterwards, since threads and wikis share it."""
    environment = Environment(
        loader=PackageLoader("wikka_port"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
    )
    urls_of = {**dict(settings.assets), "texts.js": texts_url}
    environment.globals.update(
        root_page=settings.root_page,
        page_path=urls.page_url,
        file_path=urls.file_path,
        picture_types=PICTURE_TYPES,
        preview_bytes_max=PREVIEW_BYTES_MAX,
        widths_of=widths_of,
        site_path=urls.site_path,
        pages_above=pages_above,
        assets=urls_of,
        max_note_chars=settings.max_note_chars,
        edit_notes=settings.edit_notes,
    )
    speak_in(environment, catalogue)
    environment.globals["text_language"] = lru_cache(maxsize=None)(
        lambda code, guessed=False: _text_language(code or settings.language, catalogue, guessed=guessed)
    )
    environment.globals["text_lang"] = lru_cache(maxsize=None)(lambda code: _lang(code or settings.language, catalogue))
    environment.filters["when"] = _moment()
    environment.filters["clock"] = _moment(from_char=_CLOCK)
    environment.filters["figure"] = catalogue.figure
    environment.filters["file_size"] = size_text
    environment.filters["file_kind"] = kind_text
    environment.filters["asset"] = urls_of.__getitem__
    environment.filters["site_path"] = urls.site_path  # for a constant, evaluated when a template is compiled
    environment.filters["zoned"] = _moment(has_zone=True)
    environment.filters["zoned_clock"] = _moment(from_char=_CLOCK, has_zone=True)
    environment.globals["zone_note"] = pass_context(lambda context: zone_note(context, catalogue))
    return environment


def _moment(*, from_char: int = 0, has_zone: bool = False) -> Callable[[Context, int], Markup]:
    """Make a filter that shows a moment in the visitor's time zone, from the character ``from_char`` on.

    The element also has the moment for machines.  ``has_zone`` adds the zone, on a page that shows one moment and has
    no ``zone_note``.
    """

    @pass_context
    def moment(context: Context, time_ms: int) -> Markup:
        zone = context["visitor"].settings.zone_info
        text = local_time(time_ms, zone)[from_char:]
        text = f"{text} {zone_label(time_ms, zone)}" if has_zone else text
        return Markup('<time datetime="{}">{}</time>').format(iso_time(time_ms), text)

    return moment


def zone_note(context: Context, catalogue: Catalogue) -> Markup:
    """Return a note on the zone of all times on a page; ``static/times.js`` may replace its text."""
    zone = context["visitor"].settings.zone
    said = catalogue.gettext(ZONE).format(zone=zone) if zone else catalogue.gettext(UTC)
    return Markup('<span class="zone-note">{}</span>').format(said)


def _text_language(code: str, catalogue: Catalogue, *, guessed: bool = False) -> Markup:
    """Return the attributes ``lang`` and ``dir`` of an element whose text is not in the page's language.

    A comment is ``guessed`` to be in the language of its page; its direction is that of its own first letter.
    """
    side = "auto" if guessed else direction(code)
    return _lang(code, catalogue) + (Markup(' dir="{}"').format(side) if side != catalogue.direction else "")


def _lang(code: str, catalogue: Catalogue) -> Markup:
    return Markup(' lang="{}"').format(code) if code != catalogue.code else Markup()
