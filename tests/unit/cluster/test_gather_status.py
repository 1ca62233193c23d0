"""Status requests to several servers: each server without an answer is named with the cause."""

from __future__ import annotations

import asyncio
from typing import Any

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_requests import FlowStatuses
from columnar.cluster.refusals import PeerFault
from columnar.cluster.scatter_gather import gather_status
from columnar.errors import TableNotEnabled
from columnar.model.flow_status import silent_entry, silent_remark
from columnar.model.owner import Incarnation

SERVERS = [Incarnation(f"s{n}", n) for n in range(1, 7)]


class Links:
    def __init__(self, *answers: Any) -> None:
        self._answers = dict(zip(SERVERS, answers, strict=False))

    async def request_server(self, server: Incarnation, _message: Any) -> Any:
        answer = self._answers[server]
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_refusal_is_told_from_silence() -> None:
    links = Links(
        ("a",), None, PeerFault("FlowStatuses is not answered here"), NotSent(), LinkBroke(), TableNotEnabled("t")
    )
    found, lacking = asyncio.run(gather_status(SERVERS, links, FlowStatuses(), 0.01))
    assert found == {SERVERS[0]: ("a",)}
    assert [str(one) for one in lacking] == [
        "s2.2",
        "s3.3 (FlowStatuses is not answered here)",
        "s4.4 (its link has ended)",
        "s5.5 (its link has ended)",
        "s6.6 (t is disabled.)",
    ]
    assert [silent_remark(one.by_name) for one in lacking[:2]] == [
        "s2 did not answer in time: its part is not in the numbers",
        "s3 did not answer (FlowStatuses is not answered here): its part is not in the numbers",
    ]
    assert silent_remark(silent_entry("s1", "a (b)\nc")) == (
        "s1 did not answer (a (b) c): its part is not in the numbers"
    )
