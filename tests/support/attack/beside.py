"""Payloads beside the texts of pages: comments, names and contents of files, notes, notices, feeds and mails.

``store_beside`` stores them, past the checks of forms too, as an import or an older version may have, and returns the
addresses at which a browser looks.  ``findings_of_feeds`` and ``findings_of_mails`` check what no browser shows: a feed
must be well formed and lead nowhere but into the wiki, a mail must be one part of plain text with the headers that the
wiki means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from email import message_from_bytes, policy
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit
from xml.etree import ElementTree

from tests.support.file_forms import PNG, upload
from tests.support.wiki_scene import Scene
from wikka_port.accounts.api_keys import FEED
from wikka_port.accounts.mail import message_of
from wikka_port.comments.stored_comments import NewComment
from wikka_port.editing.suggestions import REFUSED, Review, Suggestion
from wikka_port.markup.formats import FORMATS
from wikka_port.moving.journal import DONE, MOVES, RENAME, STATE, Move
from wikka_port.names import InvalidName, normalise, page_key
from wikka_port.notice_mail import NoticeWriter
from wikka_port.notices.fan_out import cells_of_notice
from wikka_port.notices.mailing import Due
from wikka_port.notices.notice_rows import INBOX, MOVED, Notice, id_of_moves, inbox_row
from wikka_port.schema import Head, cells_of
from wikka_port.texts.catalogue import Languages
from wikka_port.urls import file_path, page_path, site_path

COMMENTS_EACH: Final = 40  # of a page
NAMES_EACH: Final = 40
ENDINGS: Final = ("svg", "html", "pdf", "txt", "xml", "png", "md", "xhtml")
SVG: Final = '<svg xmlns="http://www.w3.org/2000/svg"><a href="{0}">{0}</a></svg>'
TOLD: Final = "Told"
READER: Final = "Rita"


def store_beside(scene: Scene, payloads: Sequence[str]) -> list[str]:
    """Store the payloads, and return addresses."""
    paths = [*_comments(scene, payloads), *_named_files(scene, payloads), *_contents(scene, payloads)]
    _notices(scene, payloads)
    return [*paths, site_path("recentcomments"), site_path("held"), *_inboxes(scene)]


def _pieces(payloads: Sequence[str], size: int) -> Iterator[tuple[int, Sequence[str]]]:
    for number, begin in enumerate(range(0, len(payloads), size)):
        yield number, payloads[begin : begin + size]


def _comments(scene: Scene, payloads: Sequence[str]) -> Iterator[str]:
    """Store each payload as text, author and browser of a comment, on pages of each format."""
    formats = sorted(FORMATS)
    for number, piece in _pieces(payloads, COMMENTS_EACH):
        page = f"Commented {number}"
        scene.wiki.save(page, "A text.", author="Ann", base=0, markup=formats[number % len(formats)])
        for place, payload in enumerate(piece):
            signed = ("visitor", "account", "key", "", "wiki")[place % 5]
            new = NewComment(payload, payload, signed, f"{number} {place}", formats[number % len(formats)], place % 3)
            scene.wiki.comments.add(page, b"", new, allow=lambda _name, _rights: None)
        yield page_path(page, "comments")
        yield page_path(page)


def _named_files(scene: Scene, payloads: Sequence[str]) -> Iterator[str]:
    """Store files with payloads as names and descriptions: the name as a form takes it, and as it is."""
    for number, piece in _pieces(payloads, NAMES_EACH):
        page = f"Named {number}"
        scene.wiki.save(page, "{{files}}\n\n{{image src='x'}}", author="Ann", base=0)
        upload(scene.web, ("real.png", PNG), page=page_path(page))
        real = scene.wiki.files.files_of(page)["real.png"]
        for place, payload in enumerate(piece):
            name = f"{payload}.{ENDINGS[place % len(ENDINGS)]}"
            picture = {"width": 2, "height": 2} if place % 2 else {}
            media_type = ("image/svg+xml", "text/html", "application/pdf", "image/png")[place % 4]
            scene.wiki.attach(
                page,
                name,
                alt=payload,
                media_type=media_type,
                sha256=real.sha256,
                size_bytes=real.size_bytes,
                **picture,
            )
        upload(
            scene.web,
            *[(f"{one}.txt", b"a text") for one in piece[:4]],
            page=page_path(page),
            note=piece[0],
            alt=piece[0],
        )
        yield page_path(page, "files")
        yield page_path(page)
        for name in islice(scene.wiki.files.files_of(page), 2):
            yield page_path(page, "file", file=name)
            yield file_path(page, name)


def _contents(scene: Scene, payloads: Sequence[str]) -> Iterator[str]:
    """Upload files that are payloads, with the endings of types that a browser might run."""
    page = "Contents"
    scene.wiki.save(page, "{{files}}", author="Ann", base=0)
    for number, piece in _pieces(payloads, NAMES_EACH):
        ending = ENDINGS[number % len(ENDINGS)]
        text = "\n".join(piece)
        body = {"svg": SVG.format(text), "pdf": f"%PDF-1.7\n{text}\n%%EOF", "png": f"\x89PNG\r\n\x1a\n{text}"}
        upload(
            scene.web, (f"{number}.{ending}", body.get(ending, text).encode("latin-1", "replace")), page=page_path(page)
        )
    yield page_path(page, "files")
    for name in scene.wiki.files.files_of(page):
        yield page_path(page, "file", file=name)
        yield file_path(page, name)


def _notices(scene: Scene, payloads: Sequence[str]) -> None:
    """Give Rita notices of edits, of comments, of moves and of decisions whose texts are payloads."""
    wiki, rita = scene.wiki, READER.lower().encode()
    wiki.save(TOLD, "A text.", author="Ann", base=0)
    for number, payload in enumerate(payloads):
        other = payloads[(number + 7) % len(payloads)]
        move = Move(
            *(b"%016x" % number, RENAME, _page_name(other), TOLD, b"", Head(1, b"t", page_key(TOLD)), number + 1),
            *(payload, ("account", "visitor", "", "wiki")[number % 4], other, False),
        )
        wiki.rows.put(MOVES, move.id, {STATE: DONE, **cells_of(move)})
        notice = Notice(number + 1, id_of_moves(move.id, b""), MOVED, TOLD, page_key(TOLD), moves=move.id)
        wiki.rows.put(INBOX, inbox_row(rita, notice), cells_of_notice(notice))
        sent = Suggestion(READER, f"account {READER}", "account", number, 0, "wikka", payload, other)
        kept = wiki.suggestions.add_for_review(sent, Review(_page_name(payload), "edit", (), "", form=str(number)))
        wiki.suggestions.decide(kept, REFUSED, other)
    for number, payload in enumerate(payloads):
        given: dict[str, Any] = {"author": payload, "note": payload, "notify": "", "mentions": (READER.lower(),)}
        wiki.save(TOLD, f"A text {number}.", base=number + 1, **given)


def _page_name(payload: str) -> str:
    try:
        return normalise(payload[:100])
    except InvalidName:
        return TOLD


def _inboxes(scene: Scene) -> list[str]:
    """Return the parts of Rita's inbox."""
    found, path = [], site_path("inbox")
    rita = scene.enter(READER)
    while path and len(found) < 200:
        found.append(path)
        _, _, rest = rita.get(path).text.partition('href="/-/inbox?before=')
        path = site_path("inbox", before=rest.partition('"')[0]) if rest else ""
    return found


# --- what no browser shows -----------------------------------------------------------------------


def findings_of_feeds(scene: Scene) -> list[str]:
    """Return what is wrong with the feeds: not well formed, of another type, or with addresses elsewhere."""
    account = scene.directory.account(READER)
    assert account is not None
    key = scene.accounts.keys.issue(account, label="x", scopes=[FEED], days=1)
    pages = (TOLD, "Commented 0", "Named 0")
    paths = [site_path("recentchanges.xml"), site_path("comments.xml"), site_path("inbox.xml", key=key)]
    paths += [page_path(page, handler) for page in pages for handler in ("revisions.xml", "comments.xml")]
    return [f"{path}: {wrong}" for path in paths for form in ("", "rss") for wrong in _feed(scene, path, form)]


def _feed(scene: Scene, path: str, form: str) -> Iterator[str]:
    answer = scene.web.get(path + ("&" if "?" in path else "?") + f"format={form}" if form else path)
    if answer.status_code != 200 or "xml" not in answer.headers["Content-Type"]:
        yield f"answered {answer.status_code} {answer.headers['Content-Type']}"
        return
    try:
        feed = ElementTree.fromstring(answer.data)
    except ElementTree.ParseError as problem:
        yield f"is not well formed: {problem}"
        return
    for one in feed.iter():
        name = one.tag.rpartition("}")[2]
        address = one.get("href") or (one.text if name in ("link", "guid", "url", "id") else None)
        if address and urlsplit(address).scheme not in ("http", "https"):
            yield f"leads to {address[:80]}"


def findings_of_mails(scene: Scene, payloads: Sequence[str]) -> list[str]:
    """Return what is wrong with mails of Rita's notices, one mail for each, and one digest."""
    account = scene.directory.account(READER)
    assert account is not None
    scene.directory.set_settings(account, type(account.settings)(mail="now"))
    account = scene.directory.account(READER)
    assert account is not None
    config = scene.web.config
    writer = NoticeWriter(
        scene.wiki, config, scene.directory, Languages.found(config.languages), "https://wiki.example"
    )
    notices, _ = scene.wiki.notices.part(account.row, limit=4 * len(payloads))
    found, count = list[str](), 0
    for group, is_digest in [*(([one], False) for one in notices), (notices[:50], True)]:
        mail = writer.letter(account, Due(account.row, [], group, is_digest, 0))
        if mail is not None:
            count += 1
            sent = message_of(mail, "wiki@wiki.example").as_bytes(policy=policy.SMTP)
            found += [f"mail {mail.subject[:60]!r}: {wrong}" for wrong in _mail(sent)]
    return found + ([] if count > 2 * len(payloads) else [f"{count} mails of {len(notices)} notices"])


_HEADERS: Final = frozenset(
    {"to", "from", "subject", "date", "message-id", "content-type", "content-transfer-encoding", "mime-version"}
    | {"list-unsubscribe", "list-unsubscribe-post", "auto-submitted", "precedence"}
)


def _mail(sent: bytes) -> Iterator[str]:
    mail = message_from_bytes(sent, policy=policy.default)
    further = {name.lower() for name, _ in mail.items()} - _HEADERS
    if further:
        yield f"has the headers {sorted(further)}"
    if mail.is_multipart() or mail.get_content_type() != "text/plain":
        yield f"is {mail.get_content_type()}"
    if mail["To"] != "rita@mail.example" or mail.defects:
        yield f"goes to {mail['To']}, with the defects {mail.defects}"
