"""The SQS port as a part of its store: its end, who may have it, and what it costs others."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from columnar.roles.store_commands import standalone
from columnar.sqs.store_queues import StoreQueues
from tests.support.serving import Serving
from tests.support.sqs_client import port_of, sqs_client
from tests.support.standalone_store import ENVIRONMENT


def test_a_stop_answers_long_polls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, pop = threading.Event(), StoreQueues.pop

    async def noted_pop(self: StoreQueues, *args: Any) -> Any:
        waits.set()
        return await pop(self, *args)

    monkeypatch.setattr(StoreQueues, "pop", noted_pop)
    serving = Serving(tmp_path / "store", trigger_modules=(), sqs_port=0).start()
    receiver = sqs_client(port_of(serving))
    url = receiver.create_queue(QueueName="a")["QueueUrl"]
    found: list[Any] = []
    waiting = threading.Thread(
        target=lambda: found.append(receiver.receive_message(QueueUrl=url, WaitTimeSeconds=20).get("Messages"))
    )
    waiting.start()
    assert waits.wait(60)
    serving.stop()
    waiting.join(60)
    assert found == [None]


def test_a_store_with_users_refuses_the_port(tmp_path: Path) -> None:
    words = ["--data", str(tmp_path / "data"), "--sqs-port", "0", "--rights", "on"]
    done = CliRunner().invoke(standalone, words)
    assert done.exit_code == 2
    assert "--sqs-port is for stores without users" in done.output
    assert not (tmp_path / "data").exists()


def test_a_store_without_the_port_loads_none_of_its_modules(tmp_path: Path) -> None:
    program = (
        "import sys; import columnar.roles.standalone, columnar.roles.store_process; "
        "print([name for name in sys.modules if name.startswith(('columnar.sqs', 'columnar.wire.http.server', "
        "'columnar.wire.local_calls'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
