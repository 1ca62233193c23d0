"""The functions of the triggers of watches and notices; ``triggers`` registers them.

    wiki-watchers   ``watches``                             the row of ``watchers``
    wiki-notices    ``pages``: meta:notify, comment:*       rows of ``inbox`` for all watchers, and ``account:news``
    wiki-decisions  ``suggestions``: at:review              the same for the author of a text that was under review
    wiki-moves      ``moves``: m:state, m:notified              ``move_notices``

``notices`` reads the watchers of a target in steps of FAN_OUT_STEP, yields their rows, and then a checkpoint with the
last watcher read; after a crash it goes on behind the checkpoint.  A barrier follows the rows of each FAN_OUT_SLICE
watchers, and ends a slice of the worker.  Without it a slice has 500 rows, which take 10 to 20 ms of the one
interpreter, and no other trigger begins beside a slice that computes 5 ms or more (``columnar.flows.fair_share``).
While the rows of a slice become durable, the worker runs others.

Nothing here checks a right: a notice has no content (``notice_rows``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from columnar.client import Connection
from columnar.triggers.api import Barrier, Change, Checkpoint, Delete, Effect, Put
from wikka_port import schema
from wikka_port.accounts.records import account_of
from wikka_port.accounts.tables import NEWS, USERS, user_row
from wikka_port.comments.comment_rows import (
    COMMENTS,
    COMMENTS_HEAD,
    COMMENTS_NAMED,
    Comment,
    comment_of,
    comment_row,
    comments_in,
    committed_cells,
)
from wikka_port.editing.suggestions import ACCEPTED, REFUSED, suggestion_of, unpack_review
from wikka_port.editing.suggestions import FOLLOWED as REVIEW_FOLLOWED
from wikka_port.editing.suggestions import REVIEW as REVIEW_CELL
from wikka_port.limits import FAN_OUT_SLICE, FAN_OUT_STEP
from wikka_port.notices.mentions import mentioned
from wikka_port.notices.notice_rows import (
    COMMENT,
    HOW,
    INBOX,
    MAIL,
    MENTION,
    MINOR,
    NOTIFY,
    OUTGOING,
    REVIEW,
    WATCH_FAMILY,
    WATCHERS,
    YES,
    News,
    Notice,
    due_ms,
    id_of_comment,
    id_of_review,
    inbox_row,
    news_of_save,
    outgoing_row,
    rows_of_target,
    targets_of,
    turned,
    watcher_cells,
)
from wikka_port.page_rows import head_of, is_there, text_in
from wikka_port.schema import KEY_BYTES, folded

FOLLOWED: Final = (NOTIFY, COMMENTS_HEAD, COMMENTS_NAMED, schema.STAMP)  # of ``pages``; the last one tells a move


def watcher_effects(row: bytes, now: Mapping[bytes, bytes]) -> Iterator[Effect]:
    """Yield the effect on ``watchers`` of a row of ``watches`` that is ``now``."""
    derived = turned(row)
    if not derived:
        return
    cells = watcher_cells(now)
    yield Put(WATCHERS, derived, cells) if cells else Delete(WATCHERS, derived, [WATCH_FAMILY])


def watchers_of_batch(batch: Sequence[Change]) -> Iterator[tuple[Change, Effect]]:
    for change in batch:
        for effect in watcher_effects(change.row, change.now):
            yield change, effect


def notices(change: Change, client: Connection) -> Iterator[Effect]:
    """Yield the notices of a change of a page to all who watch it, or of a change of a comment to who is mentioned."""
    news = _news(change, client)
    if news is not None:
        if not change.progress:
            yield from _to_accounts(news, client)
        if news.is_of_watchers:
            yield from _fan_out(news, client, change.progress)


def _to_accounts(news: News, client: Connection) -> Iterator[Effect]:
    """Yield the rows of the accounts that the change names, and of the one whose comment it answers."""
    mentioned_rows = {name.encode() for name in news.mentions}
    names = sorted(({news.answered.encode()} | mentioned_rows) - {b"", news.by})
    if not names:
        return
    cells = cells_of_notice(news.notice)
    for row, stored in client.table(USERS).rows(names, columns=[b"account", b"settings"]):
        account = account_of(row, stored)
        if account is not None and account.status == "active":
            more = {MENTION: YES} if row in mentioned_rows else {}
            yield from to_account(row, news.notice, {**cells, **more}, account.settings.mail.encode())


def notice_of_decision(change: Change, client: Connection) -> Iterator[Effect]:
    """Yield the notice of a decision on a text under review to its author; an author without an account gets none."""
    put = {cell.column: cell for cell in change.changes if cell.kind == "put"}
    one = suggestion_of(change.row, change.now) if REVIEW_CELL in put and not change.is_repeat else None
    if one is None or one.signed not in schema.OF_ACCOUNTS or not put[REVIEW_CELL].value:  # "": a suggestion that waits
        return
    if change.now.get(REVIEW_FOLLOWED) == b"%d" % put[REVIEW_CELL].timestamp:
        return  # its page was renamed: the notice of the decision finds it
    decided, time_ms = unpack_review(put[REVIEW_CELL].value.decode()), put[REVIEW_CELL].timestamp
    if decided.state not in (ACCEPTED, REFUSED):
        return
    row = user_row(one.who)
    account = account_of(row, client.table(USERS).row(row, columns=[b"account", b"settings"]))
    if account is not None and account.status != "deleted":
        notice = Notice(time_ms, id_of_review(change.row, decided.state), REVIEW, decided.page, b"", review=change.row)
        yield from to_account(row, notice, cells_of_notice(notice), account.settings.mail.encode())


def to_account(account: bytes, notice: Notice, cells: Mapping[bytes, bytes], how: bytes) -> Iterator[Effect]:
    yield Put(INBOX, inbox_row(account, notice), cells)
    yield Put(USERS, account, {NEWS: b"%d" % notice.time_ms})
    if how:
        yield Put(OUTGOING, outgoing_row(due_ms(notice.time_ms, how), account, notice.place), {HOW: how})


def cells_of_notice(notice: Notice) -> dict[bytes, bytes]:
    """Return the cells of a notice without ``i:mention``, so that those of a watch do not replace it."""
    return {column: cell for column, cell in schema.cells_of(notice).items() if cell and column != MENTION}


def _news(change: Change, client: Connection) -> News | None:
    put = {cell.column: cell for cell in change.changes if cell.kind == "put"}
    if len(change.row) != KEY_BYTES or change.is_repeat:
        return None  # no page, or an operator has the change delivered again
    if NOTIFY in put:
        return news_of_save(change.row, put[NOTIFY].value, put[NOTIFY].timestamp)
    if schema.STAMP in put:  # a move has brought the page with its comments
        return None
    return _news_of_comment(change, client) if COMMENTS_HEAD in put else None


def _news_of_comment(change: Change, client: Connection) -> News | None:
    """Return the news of a comment that was added or mentions others by now, unless it is imported or not shown.

    An addition by an older program does not say whom it mentions: the present text does.
    """
    put = {cell.column: cell.value for cell in change.changes if cell.kind == "put"}
    before, head = comments_in(change.before), comments_in(put)
    is_new = head.of > before.number and head.of == head.number
    if not is_there(change.now) or not (is_new or (0 < head.of <= before.number and COMMENTS_NAMED in put)):
        return None
    history = head_of(change.now).place(change.row)
    stored = client.table(COMMENTS).row(comment_row(history, head.of))
    cells = committed_cells(head.of, stored, head)
    if not cells:
        return None
    comment = comment_of(head.of, cells)
    if comment.origin or not comment.is_visible:
        return None
    by = folded(comment.author).encode() if comment.is_of_account else b""
    page = text_in(change.now, schema.NAME)
    notice = Notice(head.at_ms, id_of_comment(history, head.of), COMMENT, page, history, comment=head.of)
    names = tuple(map(str, json.loads(put[COMMENTS_NAMED]))) if COMMENTS_NAMED in put else mentioned(comment.text)
    answered = _answered(history, comment, client) if is_new else ""
    return News(notice, by, mentions=names, answered=answered, is_of_watchers=is_new)


def _answered(history: bytes, comment: Comment, client: Connection) -> str:
    """Return the folded name of the account whose comment is answered, or "" if there is none."""
    if not comment.parent:
        return ""
    cells = client.table(COMMENTS).row(comment_row(history, comment.parent))
    parent = comment_of(comment.parent, cells) if cells else None
    return folded(parent.author) if parent is not None and parent.is_of_account and parent.is_visible else ""


def _fan_out(news: News, client: Connection, progress: bytes) -> Iterator[Effect]:
    """Yield the rows of all watchers; ``progress`` is the last row of ``watchers`` of an earlier run."""
    notice = news.notice
    cells = cells_of_notice(notice)
    targets = targets_of(notice.history, notice.page)
    waiting = 0  # watchers since the last barrier
    begun = next((n for n, one in enumerate(targets) if progress.startswith(rows_of_target(one)[0])), 0)
    for target in targets[begun if progress else 0 :]:
        first, stop = rows_of_target(target)
        start = progress + b"\0" if progress.startswith(first) else first
        while True:
            found = list(
                client.table(WATCHERS).scan(row_start=start, row_stop=stop, limit=FAN_OUT_STEP, batch_size=FAN_OUT_STEP)
            )
            for row, watcher in found:
                account = row[len(first) :]
                if account != news.by and (not news.minor or watcher.get(MINOR) == YES):
                    yield from to_account(account, notice, cells, watcher.get(MAIL, b""))
                waiting += 1
                if waiting >= FAN_OUT_SLICE:
                    waiting = 0
                    yield Barrier()
            if len(found) < FAN_OUT_STEP:
                break
            start = found[-1][0] + b"\0"
            yield Checkpoint(found[-1][0])
