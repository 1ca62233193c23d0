"""(pure) Served queues: registrations whose function, or URL, is given the messages of a queue.

A served queue is a registration as that of a trigger, without families.  Its name is ``queue:`` and the queue's name,
and no trigger's name has a colon.  Its function may be a URL.  ``attempts`` does not count: a setting of the queue says
when a message is dead.

Knows nothing of who delivers the messages.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, urlsplit

from columnar.errors import IllegalArgument
from columnar.model.queue_place import QUEUES_TABLE, checked_queue
from columnar.model.trigger_registration import QUEUE_PREFIX, Registration, check_function, check_pace

URL_CHARACTERS: Final = 2_000
LONGEST_TIMEOUT_MS: Final = 12 * 3_600 * 1_000
_OF_CHANGES: Final = (
    "families", "before", "from_where", "row", "batch", "within_ms", "columns", "where", "look", "images",
    "allow_expiry", "allow_cycle",
)  # fmt: skip


def name_of(queue: str) -> str:
    """Return the name of the registration that serves the queue."""
    return QUEUE_PREFIX + queue


def service_of(queue: str, target: str, **settings: object) -> Registration:
    """Return the registration that serves the queue by a function or URL; settings are fields of ``Registration``."""
    return Registration(name_of(queue), QUEUES_TABLE, target, (), row=False, **settings)  # type: ignore[arg-type]


def checked_service(registration: Registration, allowed_modules: tuple[str, ...]) -> Registration:
    """Return the registration unchanged.  Raises IllegalArgument or TriggerError, with the fault and its remedy."""
    queue = registration.queue
    checked_queue(queue.encode())
    if registration.table != QUEUES_TABLE:
        raise IllegalArgument(f"queue {queue} is in table {QUEUES_TABLE}, not in {registration.table}")
    usual = service_of(queue, "")
    for field in _OF_CHANGES:
        if getattr(registration, field) != getattr(usual, field):
            raise IllegalArgument(f"queue {queue} cannot be served with {field}: that is a setting for changes")
    if registration.timeout_ms > LONGEST_TIMEOUT_MS:
        raise IllegalArgument(f"the timeout of a served queue is at most {LONGEST_TIMEOUT_MS} ms")
    check_pace(registration)
    if registration.url:
        checked_url(registration.url)
        for field in ("share", "process", "writes"):
            if getattr(registration, field) != getattr(usual, field):
                raise IllegalArgument(f"{field} is a setting of functions; queue {queue} is served by a URL")
    else:
        check_function(registration, allowed_modules)
    return registration


def checked_url(url: str) -> SplitResult:
    """Return the parts of a URL to which messages are posted.  Raises IllegalArgument."""
    if len(url) > URL_CHARACTERS or not url.isascii() or any(one <= " " or one == "\x7f" for one in url):
        raise IllegalArgument(f"a URL has up to {URL_CHARACTERS} printable ASCII characters, without spaces")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise IllegalArgument(f"URL '{url}': {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise IllegalArgument(f"URL '{url}': write it as http://host:port/path or https://host/path")
    if "@" in parts.netloc or parts.fragment:
        raise IllegalArgument("a URL for messages has neither a user and password nor a fragment")
    return parts
