"""The reasons why a comment is not stored or changed: each tells the person what to do."""

from __future__ import annotations

from wikka_port.texts import N_, _

BUSY = N_("Many people are changing the comments of {page} right now. Your text is below: please send it again.")


class CommentRefused(Exception):
    """The comments of the page are as they were; ``str()`` is a sentence for the person."""


class NoPageToComment(CommentRefused):
    """The page does not exist, was deleted, or is a different page of the same name."""

    def __init__(self, page: str) -> None:
        super().__init__(_("There is no page {page} any more that could have comments.", page=page))


class NoSuchComment(CommentRefused):
    def __init__(self) -> None:
        super().__init__(_("There is no such comment."))


class AlreadySent(CommentRefused):
    """The form has added a comment of another text before, as from a browser that went back to it."""

    def __init__(self, number: int) -> None:
        super().__init__(
            _(
                "This form was sent before: comment {number} has the text that it had then. Your text is below: send "
                "it again, and it is a comment of its own.",
                number=number,
            )
        )


class ChangedSince(CommentRefused):
    """The comment was changed after the text that would take the place of its own was sent."""

    def __init__(self) -> None:
        super().__init__(
            _("Its author has changed the comment again since, and the newer text would be lost: refuse this one.")
        )


class ParentGone(CommentRefused):
    """The comment that an answer belongs to was removed, or never was."""

    def __init__(self) -> None:
        super().__init__(
            _(
                "The comment that you answer is not there any more. Your text is below: send it again, and it "
                "stands by itself."
            )
        )


class TooLate(CommentRefused):
    """The time in which an author may edit his comment is over."""

    def __init__(self, minutes: int) -> None:
        super().__init__(
            _("A comment can be changed for {minutes} minutes. Write another one instead.", minutes=minutes)
        )


class TooManyComments(CommentRefused):
    def __init__(self, page: str, most: int) -> None:
        super().__init__(_("{page} has {most} comments, and that is the most.", page=page, most=most))


class CommentsBusy(CommentRefused):
    def __init__(self, page: str) -> None:
        super().__init__(_(BUSY, page=page))
