"""``/flows``: which table feeds which trigger and view, as a drawing without script and as a table of figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from werkzeug.wrappers import Request, Response

from columnar.model.flow_status import FlowStatus
from columnar.webui.cluster_status import PageStatus
from columnar.webui.flow_drawing import FLOWS_DRAWN, drawing_of

FlowStatuses = tuple[Sequence[FlowStatus], Sequence[str]]  # status of flows, and names of servers that did not answer
MAX_LISTED_FLOWS: Final = 200


class FlowPage:
    """Constant after construction."""

    def __init__(
        self, read_flows: Callable[[], FlowStatuses], status: Callable[[], PageStatus], page: Callable[..., Response]
    ) -> None:
        """Called in the web thread: ``read_flows`` and ``status`` call the loop."""
        self._read_flows = read_flows
        self._status = status
        self._page = page

    def answer(self, _request: Request) -> Response:
        flows, silent = self._read_flows()
        return self._page(
            "flows.html",
            self._status(),
            flows=flows[:MAX_LISTED_FLOWS],
            drawing=drawing_of(flows),
            hidden=max(0, len(flows) - FLOWS_DRAWN),
            silent=silent,
        )
