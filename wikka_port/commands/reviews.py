"""``wikka held``: the edits and comments that antispam keeps until somebody has looked at them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import click

from wikka_port.commands.serving_options import camel_case_option, language_option
from wikka_port.commands.store_options import StoreOptions, json_option, store_options
from wikka_port.config import WikiConfig
from wikka_port.diffs import rows
from wikka_port.editing.suggestions import WAITING, Suggestion
from wikka_port.feeds import iso_time
from wikka_port.handlers.review import is_of_same
from wikka_port.handlers.review_decisions import Decided, NotAccepted, accept_review, refuse_review, sentences
from wikka_port.site import Site, make_site
from wikka_port.visitors import OPERATOR

REFUSED: Final = 1  # exit status
_ID_CHARS_MIN: Final = 4
_NONE_GIVEN: Final = WikiConfig()
_ALL = click.option("--all", "of_author", is_flag=True, help="And everything else of its author that waits.")


@contextmanager
def _site(store: StoreOptions, config: WikiConfig = _NONE_GIVEN) -> Iterator[Site]:
    with store.open_wiki() as wiki:
        yield make_site(wiki, config, time.time).for_visitor(OPERATOR)


@click.group()
def reviews() -> None:
    """Edits and comments that antispam keeps until somebody has looked at them.

    \b
    List what waits, and show one text with the reasons:
      wikka held list
      wikka held show 3f2a9c
    Save it as its author's, or refuse it with a word to the author:
      wikka held accept 3f2a9c
      wikka held refuse 3f2a9c --say "No shops, please."
    """


@reviews.command("list")
@json_option
@store_options
def list_reviews(store: StoreOptions, as_json: bool) -> None:
    """List the texts that wait, the oldest first."""
    with _site(store) as site:
        found = site.wiki.reviews.waiting()
    if as_json:
        click.echo(json.dumps([_as_data(one) for one in found], indent=1, ensure_ascii=False))
        return
    for one in found:
        review = one.review
        assert review is not None, "it waits"
        click.echo(f"{one.id}  {iso_time(one.time_ms)}  {review.kind}  {review.page}  {one.who}  {review.network}")
        click.echo(f"  {' '.join(sentences(review))}")
    if not found:
        click.echo("Nothing waits.")


@reviews.command()
@click.argument("review_id", metavar="ID")
@json_option
@store_options
def show(store: StoreOptions, review_id: str, as_json: bool) -> None:
    """Show a text with its reasons: the difference of an edit, or the whole of a comment."""
    with _site(store) as site:
        one = _named(site, review_id)
        page = site.wiki.page(_page(one)) if one.base else None
    if as_json:
        click.echo(json.dumps({**_as_data(one), "text": one.text}, indent=1, ensure_ascii=False))
        return
    review = one.review
    assert review is not None, "it waits"
    click.echo(f"{review.kind} of {one.who} for {review.page}, {iso_time(one.time_ms)}  {one.note}".rstrip())
    for sentence in sentences(review):
        click.echo(f"  {sentence}")
    for row in rows(page.body if page is not None and review.kind == "edit" else "", one.text or ""):
        for mark, line in (("-", row.old if row.kind != "equal" else None), ("+", row.new)):
            if line and row.kind not in ("skip", "cut", "equal"):
                click.echo(f"{mark} {''.join(span.text for span in line)}")


@reviews.command()
@click.argument("review_id", metavar="ID")
@_ALL
@camel_case_option
@language_option
@json_option
@store_options
def accept(store: StoreOptions, review_id: str, of_author: bool, camel_case: Any, language: str, as_json: bool) -> None:
    """Save it as its author's, merged with what was saved since.

    A new page follows the settings of the site. If 'wikka serve' was started with --camel-case or --language, give them
    here, too.
    """
    config = WikiConfig(camel_case=camel_case, language=language)
    _decide(store, review_id, of_author, as_json, accept_review, config)


@reviews.command()
@click.argument("review_id", metavar="ID")
@click.option("--say", default="", help="A word to the author.")
@_ALL
@json_option
@store_options
def refuse(store: StoreOptions, review_id: str, say: str, of_author: bool, as_json: bool) -> None:
    """Refuse it; its author still sees the text for 30 days."""
    _decide(store, review_id, of_author, as_json, lambda site, one: refuse_review(site, one, say))


def _decide(
    store: StoreOptions,
    review_id: str,
    of_author: bool,
    as_json: bool,
    decide: Callable[[Site, Suggestion], Decided],
    config: WikiConfig = _NONE_GIVEN,
) -> None:
    problems, done = [], []
    with _site(store, config) as site:
        first = _named(site, review_id)
        others = [one for one in site.wiki.reviews.waiting() if is_of_same(one, first) and one.id != first.id]
        for one in (first, *(others if of_author else ())):
            whole = site.wiki.reviews.reviewed(_page(one), one.id)
            try:
                if whole is not None:
                    done.append(decide(site, whole).place)
            except NotAccepted as refused:
                problems.append(f"{_page(one)}: {refused}")
    if as_json:
        click.echo(json.dumps({"done": done, "problems": problems}, ensure_ascii=False))
    for place in () if as_json else done:
        click.echo(place)
    for problem in problems:
        click.echo(f"wikka: {problem}", err=True)
    if problems:
        raise SystemExit(REFUSED)


def _named(site: Site, review_id: str) -> Suggestion:
    """Return what waits and has an id that begins so, with its text."""
    found = [one for one in site.wiki.reviews.waiting() if one.id.startswith(review_id)]
    if len(review_id) < _ID_CHARS_MIN or len(found) != 1:
        _refuse(f"{len(found)} texts that wait have an id that begins with {review_id!r}; see: wikka held list")
    whole = site.wiki.reviews.reviewed(_page(found[0]), found[0].id)
    if whole is None or whole.review is None or whole.review.state != WAITING:
        _refuse("somebody has decided on it at this moment")
    return whole


def _page(one: Suggestion) -> str:
    review = one.review
    return "" if review is None else review.page


def _as_data(one: Suggestion) -> dict[str, Any]:
    review = one.review
    assert review is not None, "it waits"
    return {
        "id": one.id,
        "page": review.page,
        "kind": review.kind,
        "author": one.who,
        "account": one.signed != "visitor",
        "network": review.network,
        "time": iso_time(one.time_ms),
        "note": one.note,
        "reasons": [{"code": code, **values} for code, values in review.reasons],
        "sentences": sentences(review),
    }


def _refuse(message: str) -> NoReturn:
    click.echo(f"wikka: {message}", err=True)
    raise SystemExit(REFUSED)
