"""Actions: what ``{{name key="value"}}`` in a page becomes, named as in WikkaWiki.

    furniture   words and links within a line             people   pages, changes and accounts of people
    lists       pages and changes of the wiki             blocks   parts that stand by themselves: pictures, forms

``toc``, ``notoc`` and ``redirect`` are the markup's own.  An action returns safe HTML; it may raise StoreUnavailable
and ValueError, which are shown in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wikka_port.actions import blocks, furniture, lists, people
from wikka_port.actions.call import Action, ActionCall

ACTIONS: Final[Mapping[str, Action]] = {**furniture.ACTIONS, **people.ACTIONS, **lists.ACTIONS, **blocks.ACTIONS}
__all__ = ["ACTIONS", "ActionCall"]
