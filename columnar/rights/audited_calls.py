"""(pure) The calls of which the audit log has a line, and the subject of each line.

    what the master is asked for     changes of tables, namespaces, triggers, views, feeds, users and the cluster, but
                                     not reads (``_READS_OF_MASTER``)
    ``_SUBJECTS``                    changes that owners of regions carry out: of queues, topics, groups, dead letters
    a release of a lease             also by its holder, because a revocation is the same call

Pushes, pops and other uses of what is there have no line.  Names are shortened and escaped, so a client cannot write
lines of its own into the log; a URL is without its query, which may have a secret.

Knows nothing of users and grants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from columnar.cluster.method_routing import METHOD_ROUTES, MethodRoute
from columnar.cluster.row_forms import THRIFT1
from columnar.errors import ColumnarError, abbreviate
from columnar.model.queue_place import QUEUES_TABLE
from columnar.model.topic import TOPICS_TABLE
from columnar.model.trigger_registration import Registration, requested

NAMED: Final = 8  # of a list in a line
_UNKNOWN: Final = "-"  # the subject of a call that names none, or cannot be read
SubjectOf = Callable[[Sequence[Any]], str]  # of a call's arguments; "": such a call has no line
_READS_OF_MASTER: Final = frozenset(  # as text, because a list would take a line for each
    """
    columnarServers columnarLocations columnarLocate columnarTransitions columnarDecisions columnarMaintenance
    columnarSnapshotList columnarUsers columnarPermissions
    """.split()  # noqa: SIM905
)


def audited_calls(service: int) -> dict[str, SubjectOf]:
    """Return the subject of each method that has lines in the audit log."""
    found: dict[str, SubjectOf] = {
        name: _first_name
        for name, route in METHOD_ROUTES[service].items()
        if route is MethodRoute.MASTER and name not in _READS_OF_MASTER
    }
    return {**found, **_SUBJECTS} if service == THRIFT1 else found


def _first_name(args: Sequence[Any]) -> str:
    """Return the name that is, or is in, the first argument."""
    first = args[0] if args else None
    for field in ("tableName", "name", "user", "qualifier"):
        found = getattr(first, field, None)
        if found is not None:
            return _shortened(getattr(found, "qualifier", found))
    if isinstance(first, list):
        return _listed(map(_shortened, first))
    return _shortened(first) if isinstance(first, str | bytes) else _UNKNOWN


def _shortened(name: Any) -> str:
    """Return a name on one line."""
    return abbreviate(name if isinstance(name, bytes) else str(name).encode(errors="replace"))


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f",and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ",".join(found[:NAMED]) + more or _UNKNOWN


def _prefixed(kind: str) -> SubjectOf:
    return lambda args: f"{kind}:{_first_name(args)}"


def _constant(subject: str) -> SubjectOf:
    return lambda _args: subject


# --- definitions -------------------------------------------------------------------------------------


def _added_trigger(args: Sequence[Any]) -> str:
    try:
        return _registered(requested(args[0] or b""))
    except ColumnarError:
        return _UNKNOWN


def _registered(registration: Registration) -> str:
    """Return a trigger or served queue: ``tags of pages by jobs:tag``, ``queue:thumbs by https://host/hook``."""
    target = registration.url.partition("?")[0] or registration.function
    table = "" if registration.queue else f" of {_shortened(registration.table)}"
    return f"{_shortened(registration.name)}{table} by {_shortened(target)}"


def _synced_triggers(args: Sequence[Any]) -> str:
    """Return the triggers that a module declares, and those to be removed with a minus."""
    removed = [f"-{_shortened(one)}" for one in args[0] or ()]
    return _listed([*(_added_trigger([one]) for one in args[1] or ()), *removed])


def _added_view(args: Sequence[Any]) -> str:
    from columnar.model.view_definition import from_json  # a store without views need not load it

    try:
        return _shortened(from_json(args[0] or b"").name)
    except ColumnarError:
        return _UNKNOWN


def _added_feed(args: Sequence[Any]) -> str:
    from columnar.model.feeds import from_json  # a store without feeds need not load it

    try:
        feed = from_json(args[0] or b"")
    except ColumnarError:
        return _UNKNOWN
    return f"{_shortened(feed.name)} of {_shortened(feed.table)} to topic:{_shortened(feed.topic)}"


# --- changes that owners of regions carry out --------------------------------------------------------


def _repaired_view(args: Sequence[Any]) -> str:
    return _first_name(args) if args[1] else ""


def _released_lease(args: Sequence[Any]) -> str:
    _, _, ttl_ms, token, *_ = args
    return f"lease:{_first_name(args)}" if token and not ttl_ms else ""


def _reader_group(args: Sequence[Any]) -> str:
    table, group, *_ = args
    return f"{_shortened(group or '')}@{_shortened(table or b'')}"


_SUBJECTS: Final[Mapping[str, SubjectOf]] = {
    "columnarTriggerAdd": _added_trigger,
    "columnarTriggerSync": _synced_triggers,
    "columnarTriggerReload": _constant("all functions"),
    "columnarViewAdd": _added_view,
    "columnarFeedAdd": _added_feed,
    "columnarCheckView": _repaired_view,
    **dict.fromkeys(
        (
            "columnarTriggerRetry",
            "columnarTriggerDeadRetry",
            "columnarTriggerDeadSkip",
            "columnarTriggerDeadPurge",
        ),
        _first_name,
    ),
    **dict.fromkeys(
        (
            "columnarQueueConfigure",
            "columnarQueueRedrive",
            "columnarQueueRemoveDead",
            "columnarQueuePurge",
            "columnarQueueDrop",
        ),
        _prefixed("queue"),
    ),
    **dict.fromkeys(("columnarTopicCreate", "columnarTopicConfigure", "columnarTopicDrop"), _prefixed("topic")),
    **dict.fromkeys(("columnarPartitionSet", "columnarPartitionDrop"), _prefixed("partition")),
    "columnarQueuePrepare": _constant(QUEUES_TABLE),
    "columnarTopicPrepare": _constant(TOPICS_TABLE),
    "columnarDropReaderGroup": _reader_group,
    "columnarLease": _released_lease,
}
