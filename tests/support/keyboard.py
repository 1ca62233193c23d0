"""A page of a browser by the keyboard alone, as somebody without a mouse uses it; what has the focus must show it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

_TABS: Final = 120  # by which every control of a page is reached


def tab_to(page: Any, wanted: str) -> None:
    """Press Tab until an element that matches ``wanted``, a CSS selector, has the focus."""
    for _ in range(_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("(wanted) => document.activeElement.matches(wanted)", wanted):
            require_ring(page)
            return
    raise AssertionError(f"Tab never came to {wanted}")


def press_at(page: Any, wanted: str, key: str = "Enter") -> None:
    tab_to(page, wanted)
    page.keyboard.press(key)


def type_at(page: Any, wanted: str, text: str) -> None:
    tab_to(page, wanted)
    page.keyboard.type(text)


def choose_file_at(page: Any, wanted: str, file: Path) -> None:
    """Open the chooser of a field for files by Space, and choose one."""
    tab_to(page, wanted)
    with page.expect_file_chooser() as chooser:
        # The answer shows that the page knows who takes its chooser: a key goes another way, and would overtake that.
        page.evaluate("0")
        page.keyboard.press("Space")
    chooser.value.set_files(file)


def require_ring(page: Any) -> None:
    """Check that one sees which element has the focus."""
    ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert ring != "none", f"{page.evaluate('document.activeElement.outerHTML')} has the focus and does not show it"
