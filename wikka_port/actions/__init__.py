"""Actions: the functions behind ``{{name key="value"}}`` in a page, named as in WikkaWiki.

    furniture   words and links within a line             people   pages, changes and accounts of people
    lists       pages, changes and comments of the wiki   blocks   blocks of their own: included pages, forms
    files       pictures and files of a page

The markup itself handles ``toc``, ``notoc`` and ``redirect``.  An action returns safe HTML.  It may raise
StoreUnavailable and ValueError, whose texts are shown in the action's place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wikka_port.actions import blocks, files, furniture, lists, people
from wikka_port.actions.call import Action, ActionCall

ACTIONS: Final[Mapping[str, Action]] = {
    **furniture.ACTIONS,
    **people.ACTIONS,
    **lists.ACTIONS,
    **blocks.ACTIONS,
    **files.ACTIONS,
}
__all__ = ["ACTIONS", "ActionCall"]
