"""The methods that clients of this process call, counted where they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from columnar.client.store_link import StoreClient


def counted_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each sent call adds its method, whoever makes it."""
    made: list[str] = []
    send = StoreClient.send_call

    def counted(self: StoreClient, method: str, args: Sequence[Any]) -> None:
        made.append(method)
        send(self, method, args)

    monkeypatch.setattr(StoreClient, "send_call", counted)
    return made
