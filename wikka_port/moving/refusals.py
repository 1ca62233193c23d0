"""The reasons why a page is not moved: each tells the person what to do, and nothing was written."""

from __future__ import annotations

from wikka_port.texts import _


class NotMoved(Exception):
    """The page was not moved, and nothing was written; ``str()`` is a sentence for the person."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(why)
        self.name = name


class NothingThere(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(name, _("There is no page {name}.", name=name))


class NameTaken(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(
            name, _("There is a page {name} already. Choose another name, or delete that page first.", name=name)
        )


class SameName(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(name, _("The page is called {name} already.", name=name))


class OtherPage(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(
            name,
            _("{name} is another page by now: the one that is meant was renamed again, or deleted.", name=name),
        )


class OtherRevision(NotMoved):
    """The newest revision of the page is not the one that was meant."""

    def __init__(self, name: str) -> None:
        super().__init__(name, _("The page was changed meanwhile."))


class NotDeleted(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(name, _("Among the deleted pages there is none of this name and time: {name}.", name=name))


class Unsettled(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(
            name, _("The indexes do not know yet that {name} was deleted. Please try again shortly.", name=name)
        )


class Busy(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(
            name, _("{name} was changed by somebody else at the same moment, again and again. Try again.", name=name)
        )


class BadRevision(NotMoved):
    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
