"""Our methods on what groups of consumers have read of topics.  Loaded at first use."""

from __future__ import annotations

import json
import time
from typing import Any

from columnar.topics.group_lags import GroupLags
from columnar.topics.topic_audit import TopicAudit
from columnar.topics.topic_calls import TopicClient


class TopicAuditMethods:
    def __init__(self, lags: GroupLags, audit: TopicAudit) -> None:
        self._lags = lags
        self._audit = audit

    async def columnarTopicGroups(self, _ctx: Any, topic: bytes) -> bytes:
        found = await self._lags.lags(_text(topic))
        return json.dumps([one.as_json() for one in found]).encode()

    async def columnarTopicAudit(self, ctx: Any, topic: bytes, group: bytes, window_ms: Any, windows: Any) -> bytes:
        client = TopicClient(ctx.peer, ctx.user, ctx.has_gone)
        now_ms = time.time_ns() // 1_000_000
        found = self._audit.count(client, _text(topic), _text(group), window_ms or 0, windows or 0, now_ms)
        return ("[" + ", ".join([json.dumps(one.as_json()) async for one in found]) + "]").encode()


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")
