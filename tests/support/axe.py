"""axe-core in a page of a real browser: the page's faults for screen readers, keyboards and eyes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

MODES: Final[dict[str, dict[str, str]]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "forced": {"color_scheme": "light", "forced_colors": "active"},
}


@cache
def script() -> str:
    package = pytest.importorskip("axe_playwright_python", reason="AXE DID NOT RUN: axe-playwright-python is missing")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


# Rules of axe that are off unless asked for.  Those of level AAA stay off, which the wiki does not claim.
ALSO: Final = ("target-size",)  # 24 px, or as far from others: WCAG 2.2, level AA


def findings(page: Any) -> list[str]:
    """Return the findings of axe's default rules, best practices among them, and of ALSO.

    The browser context must bypass the Content-Security-Policy, because axe itself would break it.
    """
    page.evaluate(script())
    options = {"rules": {rule: {"enabled": True} for rule in ALSO}}
    found = page.evaluate("async (options) => (await axe.run(options)).violations", options)
    nodes = [(one, node) for one in found for node in one["nodes"]]
    return [f"{one['id']} ({one['impact']}): {node['target']} {node['html'][:160]}" for one, node in nodes]
