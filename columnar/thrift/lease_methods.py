"""Our method on leases.  Loaded at first use."""

from __future__ import annotations

from typing import Any

from columnar.leases.lease_service import LeaseService
from columnar.leases.lease_state import LeaseRequest
from columnar.wire.idl import columnar


class LeaseMethods:
    def __init__(self, leases: LeaseService) -> None:
        self._leases = leases

    async def columnarLease(
        self, ctx: Any, name: bytes, holder: bytes, ttl_ms: int | None, token: int | None, wait_ms: int | None
    ) -> Any:
        """Acquire, renew, release or look; ``leases.lease_state`` says which is which."""
        asked = LeaseRequest(holder or b"", ttl_ms or 0, token or 0)
        reply = await self._leases.request(name or b"", asked, wait_ms or 0, ctx.has_gone)
        return columnar.LeaseReply(held=reply.is_held, token=reply.token, holder=reply.holder, leftMs=reply.left_ms)
