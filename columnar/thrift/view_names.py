"""Methods on views, as the service knows them before the first call: their names, and the requests to other servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from columnar.model.view_status import ViewStatus

VIEW_METHODS: Final = (
    "columnarViewAdd", "columnarViewDrop", "columnarViews", "columnarCheckView", "columnarViewRebuild",
    "columnarViewSwap", "columnarViewRollback",
)  # fmt: skip

RemoteViewStatuses = Callable[
    [], Awaitable[tuple[list[ViewStatus], list[str]]]
]  # status of other servers, and servers that were silent
