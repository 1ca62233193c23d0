"""Why a page is not moved: nothing was written, and each says what to do."""

from __future__ import annotations


class NotMoved(Exception):
    """Nothing was written."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(why)
        self.name = name


class NothingThere(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(name, f"There is no page {name}.")


class NameTaken(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(name, f"There is a page {name} already. Choose another name, or delete that page first.")


class SameName(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(name, f"The page is called {name} already.")


class OtherPage(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(name, f"{name} is another page by now: the one that is meant was renamed again, or deleted.")


class NotDeleted(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(name, f"Among the deleted pages there is none of this name and time: {name}.")


class Unsettled(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(name, f"The indexes do not know yet that {name} was deleted. Please try again shortly.")


class Busy(NotMoved):
    def __init__(self, name: str) -> None:
        super().__init__(name, f"{name} was changed by somebody else at the same moment, again and again. Try again.")


class BadRevision(NotMoved):
    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
