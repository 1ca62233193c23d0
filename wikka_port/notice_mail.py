"""The mails of notices: their text, in the account's language, and the link that ends them.

The rights of the account are read when a mail is written.  Addresses in a mail come from the wiki's public address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from wikka_port.accounts.directory import Directory
from wikka_port.accounts.factory import public_address
from wikka_port.accounts.mail import Mail, deliver_by
from wikka_port.accounts.records import Account
from wikka_port.accounts.sessions import visitor_of
from wikka_port.config import WikiConfig
from wikka_port.editing.suggestions import id_of_row
from wikka_port.limits import NOTICED_MOVES
from wikka_port.notices.mailing import Due, Sender
from wikka_port.notices.notice_rows import COMMENT, NEW
from wikka_port.notices.unsubscribing import unsubscribe_token
from wikka_port.pages import Wiki, clock_ms
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.rights.guarded_notices import ListedNotice
from wikka_port.site_settings import present_settings
from wikka_port.texts import N_
from wikka_port.texts.catalogue import Catalogue, Languages
from wikka_port.urls import page_path, site_path

_SENTENCES: Final = {
    NEW: N_("{by} wrote the page {page}"),
    COMMENT: N_("{by} commented on {page}"),
    "edit": N_("{by} edited {page}"),
    "renamed": N_("{by} gave {page} its name"),
    "deleted": N_("{by} deleted {page}"),
    "restored": N_("{by} brought back {page}"),
    "accepted edit": N_("Your edit of {page} was accepted"),
    "refused edit": N_("Your edit of {page} was refused"),
    "accepted comment": N_("Your comment on {page} was accepted"),
    "refused comment": N_("Your comment on {page} was refused"),
    "accepted suggestion": N_("Your suggestion for {page} was accepted"),
    "refused suggestion": N_("Your suggestion for {page} was refused"),
}
_RENAMED: Final = N_("{by} renamed {former} to {page}")
_SEVERAL: Final = {
    "renamed": N_("{by} renamed {count} pages, {page} among them"),
    "deleted": N_("{by} deleted {count} pages, {page} among them"),
    "restored": N_("{by} brought back {count} pages, {page} among them"),
    "moved": N_("{by} renamed or deleted {count} pages, {page} among them"),
}
_MENTIONED: Final = N_("{by} mentioned you on {page}")
_DIGEST: Final = N_("News for you")
_FOOT: Final = N_("""\
You get this mail since your settings there ask for notices by mail. No more such mails:

    {address}""")


@dataclass(frozen=True, slots=True)
class NoticeWriter:
    wiki: Wiki
    config: WikiConfig
    directory: Directory
    languages: Languages
    base: str  # the wiki's public address, without a slash at its end

    @property
    def site_name(self) -> str:
        return present_settings(self.wiki.rights, self.config).name

    def letter(self, account: Account, due: Due) -> Mail | None:
        if account.status != "active" or not account.email or not account.settings.mail:
            return None
        listed = GuardedWiki(self.wiki, visitor_of(account, "")).notices.listed(due.notices)
        if not listed:
            return None
        said = self.languages.catalogue(account.settings.language or self.config.language)
        token = unsubscribe_token(self.directory.secret, account.row, account.id)
        leave = self.base + site_path("unsubscribe", token=token)
        first = said.gettext(_DIGEST) if due.is_digest else sentence_of(said, listed[0])
        return Mail(
            to=account.email,
            subject=" ".join(f"{self.site_name}: {first}".split()),  # a line break would make another header
            text=self._text(said, listed, leave),
            message_id=f"notice.{due.message_id}",
            headers={"List-Unsubscribe": f"<{leave}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"},
        )

    def _text(self, said: Catalogue, listed: Sequence[ListedNotice], leave: str) -> str:
        parts = [
            "\n".join(line for line in (sentence_of(said, one), _quoted(one), f"    {self.base}{path_of(one)}") if line)
            for one in listed
        ]
        foot = said.gettext(_FOOT).format(address=leave)
        return "\n\n".join([*parts, f"-- \n{self.site_name}, {self.base}/\n{foot}\n"])


def make_sender(wiki: Wiki, config: WikiConfig, deliver: Callable[[Mail], None] | None = None) -> Sender:
    """Make the sender of a process; ``config`` has a mail server."""
    assert config.mail is not None, "without one nothing is sent"
    directory = Directory(wiki.rows, clock_ms)
    writer = NoticeWriter(wiki, config, directory, Languages.found(config.languages), public_address(config))
    return Sender(wiki.rows, directory, writer, deliver or deliver_by(config.mail), clock_ms)


def sentence_of(said: Catalogue, one: ListedNotice) -> str:
    """Return a notice as a sentence, in a language."""
    change, former = one.change, ""
    count = f"{len(change.moves)}{'+' if len(change.moves) == NOTICED_MOVES else ''}"  # the notice names no more
    if change.review is not None:
        sentence = _SENTENCES[f"{change.review.state} {change.review.kind}"]
    elif count not in ("0", "1"):
        sentence = _SEVERAL[one.kind]
    elif one.kind == "renamed" and change.moves[0].former:
        sentence, former = _RENAMED, change.moves[0].former
    else:
        sentence = _MENTIONED if one.notice.mention else _SENTENCES[one.kind]
    return said.gettext(sentence).format(by=change.author, page=one.page, former=former, count=count)


def _quoted(one: ListedNotice) -> str:
    return f"    {one.beginning}" if one.beginning else ""


def path_of(one: ListedNotice) -> str:
    """Return where a notice leads: the comment, the new or moved page, what the edit changed, or one's own text."""
    number = one.notice.head.number
    if one.change.review is not None:
        return site_path("held", page=one.change.review.page, id=id_of_row(one.notice.review))
    if one.change.moves:
        return page_path(one.page)
    if one.notice.kind == COMMENT:
        return f"{page_path(one.page, 'comments', at=one.notice.comment)}#c{one.notice.comment}"
    return page_path(one.page) if one.notice.kind == NEW else page_path(one.page, "diff", a=number - 1, b=number)
