"""A call of the API as its operation gets it, and the kinds of answers.

A page that the caller may not read and a page that does not exist have the same answer.  The refusals of the wiki's
own exceptions are made in one place, ``refusal_of``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec
from werkzeug.wrappers import Request, Response

from wikka_port.accounts.api_keys import READ
from wikka_port.accounts.signing_in import Refused
from wikka_port.api.records import PageRecord, Problem, Record
from wikka_port.comments.refusals import CommentRefused, NoPageToComment, NoSuchComment
from wikka_port.files.content_types import NotAccepted
from wikka_port.files.file_names import InvalidFileName
from wikka_port.files.refusals import FileConflict, FileRefused, NoSavedPage, NoSuchFile, NoSuchVersion, TooLarge
from wikka_port.moving.refusals import NotMoved
from wikka_port.names import InvalidName
from wikka_port.next_revision import PageTooBig
from wikka_port.pages import Conflict
from wikka_port.refusals import sentence
from wikka_port.rights.guarded_comments import NotYours
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site
from wikka_port.texts import _

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
_TITLES: Final = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    412: "Precondition Failed",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    428: "Precondition Required",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Call:
    site: Site  # as the caller may see it
    request: Request
    parameters: Any  # of the operation's type
    body: Any = None  # of the operation's type; None: the operation has none
    scopes: frozenset[str] = frozenset({READ})


class Rejected(Exception):
    """The call is refused, and nothing was changed; ``str()`` is the detail."""

    def __init__(self, status: int, detail: str, current: PageRecord | None = None, wait_s: int = 0) -> None:
        super().__init__(detail)
        self.status = status
        self.current = current
        self.wait_s = wait_s


def answer(record: Record, status: int = 200, etag: str = "") -> Response:
    response = Response(msgspec.json.encode(record), status=status, content_type=JSON)
    if etag:
        response.headers["ETag"] = etag
    return response


def no_content(status: int = 204, etag: str = "") -> Response:
    response = Response(status=status)
    del response.headers["Content-Type"]
    if etag:
        response.headers["ETag"] = etag
    return response


def problem(status: int, detail: str, current: PageRecord | None = None) -> Response:
    said = Problem(title=_TITLES[status], status=status, detail=detail, current=current)
    response = Response(msgspec.json.encode(said), status=status, content_type=PROBLEM)
    if current is not None:
        response.headers["ETag"] = current.etag
    return response


def rejection(rejected: Rejected) -> Response:
    response = problem(rejected.status, str(rejected), rejected.current)
    if rejected.wait_s:
        response.headers["Retry-After"] = str(rejected.wait_s)
    return response


def missing() -> Rejected:
    return Rejected(404, _("There is no page of this name."))


def refusal_of(site: Site, error: Exception) -> Rejected | None:
    """Return the refusal that an exception of the wiki means, or None if it means none."""
    match error:
        case Rejected():
            return error
        case NotAllowed(privilege=Privilege.READ):
            return missing()
        case NotAllowed():
            return Rejected(403, sentence(site, error))
        case Conflict():
            current = None if error.current is None else PageRecord.of(error.current)
            return Rejected(412, _("The page was changed meanwhile."), current)
        case PageTooBig() | TooLarge():
            return Rejected(413, str(error))
        case InvalidName() | InvalidFileName():
            return Rejected(422, str(error))
        case NoSavedPage():
            return missing()
        case NoSuchFile() | NoSuchVersion():
            return Rejected(404, str(error))
        case FileConflict():
            return Rejected(412, str(error))
        case NoPageToComment():
            return missing()
        case NoSuchComment():
            return Rejected(404, str(error))
        case NotYours():
            return Rejected(403, str(error))
        case NotMoved() | FileRefused() | CommentRefused():
            return Rejected(409, str(error))
        case NotAccepted():
            return Rejected(415, str(error))
        case Refused():
            status = error.status if error.status in _TITLES and error.status != 400 else 422
            return Rejected(status, str(error), wait_s=error.wait_s)
    return None
