"""A real Celery worker over SQS, in processes of its own, and a client that sends it tasks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.standalone_store import ENVIRONMENT

APPLICATION = "tests.support.celery_tasks"


class CeleryWorker:
    def __init__(self, sqs_port: int, folder: Path) -> None:
        self.done = folder / "tasks.done"
        self.log = folder / "worker.log"
        self.environment = {**ENVIRONMENT, "SQS_PORT": str(sqs_port), "TASKS_DONE": str(self.done)}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "celery", "-A", APPLICATION, "worker", "--concurrency", "2"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--loglevel", "info"], env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        """Kill the worker and the processes that do its tasks."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the session is the worker's own
            process.wait()

    def numbers(self) -> list[int]:
        """Return what the tasks have done so far, in order."""
        return [int(line) for line in self.done.read_bytes().split()] if self.done.exists() else []


def send_tasks(worker: CeleryWorker, first: int, count: int) -> None:
    """Send tasks by a process of its own, as a program with Celery would."""
    program = f"from {APPLICATION} import add\nfor n in range({first}, {first + count}): add.delay(n, 0)"
    subprocess.run([sys.executable, "-c", program], env=worker.environment, check=True, timeout=60)


def task_sender(worker: CeleryWorker) -> Any:
    """Return Celery's application in this process, to send tasks by ``send_task``."""
    os.environ.update({key: worker.environment[key] for key in ("SQS_PORT", "TASKS_DONE")})
    from tests.support.celery_tasks import app

    return app
