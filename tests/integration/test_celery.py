"""Celery's example, unchanged, over the SQS port of a store."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.celery_worker import CeleryWorker, send_tasks
from tests.support.serving import Serving

pytest.importorskip("celery", reason="celery is not installed: make dev")
PATIENCE_S = 60.0


def test_tasks_are_done_once_each(tmp_path: Path) -> None:
    serving = Serving(tmp_path / "store", trigger_modules=(), sqs_port=0).start()
    port = serving.store.sqs_port
    assert port is not None
    worker = CeleryWorker(port, tmp_path)
    try:
        worker.start()
        send_tasks(worker, 0, 20)
        until_s = time.monotonic() + PATIENCE_S
        while len(worker.numbers()) < 20 and time.monotonic() < until_s:
            time.sleep(0.05)  # another process does the tasks
        assert sorted(worker.numbers()) == list(range(20)), worker.log.read_text()[-5_000:]
        queue = serving.connect().queue("celery")
        while queue.stats().messages and time.monotonic() < until_s:
            time.sleep(0.05)  # the worker deletes a message behind its task
        assert (queue.stats().messages, queue.stats().committed) == (0, 20)
    finally:
        worker.kill()
        serving.stop()
