"""Celery's example application over SQS, as its first steps have it: ``celery -A tests.support.celery_tasks worker``.

SQS_PORT    of the store            TASKS_DONE    the file to which each task appends its line
"""

from __future__ import annotations

import os

from celery import Celery

VISIBILITY_S = 5  # a task of a worker that was killed comes again after it

app = Celery("tasks", broker=f"sqs://any:any@127.0.0.1:{os.environ['SQS_PORT']}//")
app.conf.broker_transport_options = {
    "region": "us-east-1",
    "is_secure": False,
    "visibility_timeout": VISIBILITY_S,
    "wait_time_seconds": 5,
}
app.conf.task_acks_late = True
app.conf.broker_connection_retry_on_startup = True


@app.task
def add(x: int, y: int) -> int:
    done = os.open(os.environ["TASKS_DONE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(done, b"%d\n" % (x + y))
    os.close(done)
    return x + y
