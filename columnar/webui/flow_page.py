"""``/flows``: which table feeds which trigger and view, as a drawing without script and as a table of figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from werkzeug.wrappers import Request, Response

from columnar.model.flow_status import FlowStatus
from columnar.webui.cluster_status import PageStatus
from columnar.webui.flow_drawing import FLOWS_DRAWN, drawing_of

FlowStatuses = tuple[Sequence[FlowStatus], Sequence[str]]  # looks, and names of servers that did not answer
MAX_LISTED_FLOWS: Final = 200


class FlowPage:
    """Holds nothing that changes."""

    def __init__(
        self, looks: Callable[[], FlowStatuses], status: Callable[[], PageStatus], page: Callable[..., Response]
    ) -> None:
        """Called in the web thread: ``looks`` and ``status`` ask the loop."""
        self._read_flows = looks
        self._status = status
        self._page = page

    def answer(self, _request: Request) -> Response:
        looks, silent = self._read_flows()
        return self._page(
            "flows.html",
            self._status(),
            flows=looks[:MAX_LISTED_FLOWS],
            drawing=drawing_of(looks),
            hidden=max(0, len(looks) - FLOWS_DRAWN),
            silent=silent,
        )
