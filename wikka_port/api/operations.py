"""All operations of the API: the one list from which routes, checks and the description (``openapi``) are made.

    GET /api/v1/page?name=A/B            names of pages are parameters: a name may have slashes and any word, and
                                         servers between read a path's %2F in different ways

Statuses that several operations share are added by ``Operation.statuses``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from werkzeug.wrappers import Response

from wikka_port.accounts.api_keys import ADMIN, READ, WRITE
from wikka_port.api import comment_calls, file_calls, file_records, list_calls, notice_calls, page_calls, records
from wikka_port.api.call import Call
from wikka_port.texts import N_
from wikka_port.urls import API_PREFIX

PREFIX: Final = API_PREFIX.rstrip("/")


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str  # after PREFIX
    id: str  # a client's function
    says: str  # one line
    scope: str
    run: Callable[[Call], Response]
    parameters: type[records.Parameters]
    answers: Mapping[int, type[records.Record] | None]  # by status of success; None: no body
    body: type[records.Body] | None = None
    preconditions: str = ""  # "change": If-Match; "put": If-None-Match too; "read": If-None-Match, answered with 304
    takes_content: bool = False  # the body is a file
    sends_content: bool = False
    refusals: tuple[int, ...] = ()  # of this operation, beside the common ones
    of_account: bool = False  # it reads what an account has, so it needs a key, whatever the scope

    @property
    def needs_key(self) -> bool:
        return self.of_account or self.scope != READ

    @property
    def statuses(self) -> tuple[int, ...]:
        """Every status of a refusal that the operation has, in order."""
        found = {400, 401, 403, 422, 500, 503, *self.refusals}  # 403: a key has only scopes that it was given
        if self.scope != READ:
            found |= {429}
        if "name" in self.parameters.__struct_fields__:
            found |= {404}
        if self.body is not None:
            found |= {413, 415}
        if self.preconditions in ("change", "put"):
            found |= {412, 428}
        return tuple(sorted(found))


_PAGE: Final = records.PageRecord
_NONE: Final = records.NoParameters

OPERATIONS: Final = (
    Operation(*("GET", "/me", "readMe", N_("Whose key this is"), READ, list_calls.read_me, _NONE), {200: records.Me}),
    Operation(
        *("GET", "/pages", "listPages", N_("Names of pages, alphabetical"), READ, list_calls.list_pages),
        *(records.SomeNames, {200: records.PageNames}),
    ),
    Operation(
        *("GET", "/page", "readPage", N_("A page with its text"), READ, page_calls.read_page, records.OfPage),
        {200: _PAGE},
        preconditions="read",
    ),
    Operation(
        *("PUT", "/page", "writePage", N_("Save a page, or make one"), WRITE, page_calls.write_page, records.OfPage),
        {200: _PAGE, 201: _PAGE, 202: records.TextUnderReview},
        body=records.NewText,
        preconditions="put",
    ),
    Operation(
        *("DELETE", "/page", "deletePage", N_("Delete a page; it can be brought back"), WRITE, page_calls.delete_page),
        *(records.DeletedPage, {200: records.Deleted}),
        preconditions="change",
        refusals=(409,),
    ),
    Operation(
        *("POST", "/page/move", "movePage", N_("Rename a page"), WRITE, page_calls.move_page, records.OfPage),
        {200: records.Moved},
        body=records.NewName,
        preconditions="change",
        refusals=(409,),
    ),
    Operation(
        *("GET", "/page/revisions", "listRevisions", N_("Revisions of a page, the newest first"), READ),
        *(page_calls.list_revisions, records.SomeRevisions, {200: records.Revisions}),
    ),
    Operation(
        *("GET", "/page/revision", "readRevision", N_("A revision with its text"), READ, page_calls.read_revision),
        *(records.OneRevision, {200: records.RevisionRecord}),
    ),
    Operation(
        *("DELETE", "/page/revision", "eraseRevision", N_("Erase a revision for good, for administrators"), ADMIN),
        *(page_calls.erase_revision, records.ErasedRevision, {204: None}),
        refusals=(409,),
    ),
    Operation(
        *("GET", "/page/backlinks", "listBacklinks", N_("Pages that link to a page, or use a file of it"), READ),
        list_calls.list_backlinks,
        *(records.SomeBacklinks, {200: records.PageNames}),
        refusals=(409,),
    ),
    Operation(
        *("GET", "/page/rights", "readRights", N_("The lists of a page and its owner"), ADMIN, page_calls.read_rights),
        *(records.OfPage, {200: records.Rights}),
    ),
    Operation(
        *("PUT", "/page/rights", "writeRights", N_("Set the lists of a page and its owner"), ADMIN),
        *(page_calls.write_rights, records.OfPage, {200: records.Rights}),
        body=records.NewRights,
        preconditions="change",
        refusals=(409,),
    ),
    Operation(
        *("GET", "/page/files", "listFiles", N_("The files of a page"), READ, file_calls.list_files, records.OfPage),
        {200: file_records.Files},
    ),
    Operation(
        *("GET", "/page/comments", "listComments", N_("Comments of a page, the oldest first"), READ),
        *(comment_calls.list_comments, records.SomeComments, {200: records.Comments}),
    ),
    Operation(
        *("POST", "/page/comments", "addComment", N_("Add a comment"), WRITE, comment_calls.add_comment),
        records.OfPage,
        {201: records.CommentRecord, 202: records.TextUnderReview},
        body=records.NewComment,
        refusals=(409,),
    ),
    Operation(
        *("PUT", "/page/comment", "editComment", N_("Change one's own comment, for 15 minutes"), WRITE),
        *(comment_calls.edit_comment, records.OneComment),
        {200: records.CommentRecord, 202: records.TextUnderReview},
        body=records.CommentText,
        preconditions="change",
        refusals=(409,),
    ),
    Operation(
        *("DELETE", "/page/comment", "removeComment", N_("Remove a comment; its answers stay"), WRITE),
        *(comment_calls.remove_comment, records.OneComment, {204: None}),
        preconditions="change",
        refusals=(409,),
    ),
    Operation(
        *("GET", "/file", "readFile", N_("A file without its content"), READ, file_calls.read_file),
        *(file_records.OfFile, {200: file_records.FileRecord}),
        refusals=(409,),
    ),
    Operation(
        *("DELETE", "/file", "removeFile", N_("Remove a file; its versions stay"), WRITE, file_calls.remove_file),
        *(file_records.RemovedFile, {200: file_records.RemovalRecord}),
        preconditions="change",
        refusals=(409,),
    ),
    Operation(
        *("DELETE", "/file/version", "eraseVersion", N_("Erase a version of a file for good, for administrators")),
        *(ADMIN, file_calls.erase_version, file_records.ErasedVersion, {200: file_records.ErasureRecord}),
        refusals=(409, 412),
    ),
    Operation(
        *("GET", "/file/content", "readContent", N_("The content of a file"), READ, file_calls.read_content),
        *(file_records.VersionOfFile, {200: None}),
        preconditions="read",
        sends_content=True,
        refusals=(409, 416),
    ),
    Operation(
        *(
            "PUT",
            "/file/content",
            "writeContent",
            N_("Store a file, or a new version"),
            WRITE,
            file_calls.write_content,
        ),
        *(file_records.StoredFile, {200: file_records.FileRecord, 201: file_records.FileRecord}),
        preconditions="put",
        takes_content=True,
        refusals=(409, 411, 413, 415),
    ),
    Operation(
        *("GET", "/watches", "listWatches", N_("What the account watches"), READ, notice_calls.list_watches, _NONE),
        {200: records.Watches},
        of_account=True,
    ),
    Operation(
        *("PUT", "/watch", "watch", N_("Watch a page, or all pages below a name"), WRITE, notice_calls.watch),
        *(records.NewWatch, {200: records.WatchRecord}),
        refusals=(409,),
    ),
    Operation(
        *("DELETE", "/watch", "unwatch", N_("End a watch"), WRITE, notice_calls.unwatch, records.OneWatch),
        {204: None},
    ),
    Operation(
        *("GET", "/inbox", "readInbox", N_("Notices, the newest first"), READ, notice_calls.read_inbox),
        *(records.SomeNotices, {200: records.Inbox}),
        of_account=True,
    ),
    Operation(
        *("POST", "/inbox/read", "markRead", N_("Mark notices as read"), WRITE, notice_calls.mark_read, _NONE),
        {204: None},
        body=records.ReadUntil,
    ),
    Operation(
        *("DELETE", "/inbox", "clearInbox", N_("Delete a notice and all earlier ones"), WRITE),
        *(notice_calls.clear_inbox, records.NoticesUntil, {204: None}),
    ),
    Operation(
        *("DELETE", "/inbox/notice", "removeNotice", N_("Delete a notice"), WRITE, notice_calls.remove_notice),
        *(records.OneNotice, {204: None}),
    ),
    Operation(
        *("GET", "/search", "search", N_("Search texts and names"), READ, list_calls.search, records.Words),
        {200: records.Found},
    ),
    Operation(
        *(
            "GET",
            "/changes",
            "listChanges",
            N_("Changes after a token, the oldest first"),
            READ,
            list_calls.list_changes,
        ),
        *(records.Since, {200: records.Changes}),
    ),
)
BY_PATH: Final[Mapping[str, Mapping[str, Operation]]] = MappingProxyType(
    {path: {one.method: one for one in OPERATIONS if one.path == path} for path in {one.path for one in OPERATIONS}}
)
