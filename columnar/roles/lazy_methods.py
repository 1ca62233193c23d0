"""Methods whose handlers are made at the first call: most stores never call them, and their modules take memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from columnar.cluster.scatter_gather import Owners
    from columnar.operations.table_operations import TableOperations
    from columnar.roles.master_parts import MasterParts
    from columnar.roles.serving import Serving
    from columnar.thrift.cluster_methods import SingleServer
    from columnar.thrift.view_methods import RemoteViewStatuses
    from columnar.wire.server import WireServer

CLUSTER_METHODS: Final = frozenset(  # of ``thrift.cluster_methods``; as text, because a list would take a line for each
    """
    columnarServers columnarLocations columnarLocate columnarTransitions columnarDecisions columnarMove columnarAssign
    columnarUnassign columnarDrain columnarBalance columnarSwitch columnarRestart columnarStop columnarFence
    columnarDrainNode columnarLogLevels columnarMaintenance columnarAcquireMaintenance columnarReleaseMaintenance
    """.split()  # noqa: SIM905
)
VIEW_METHODS: Final = (  # of ``thrift.view_methods``
    "columnarViewAdd", "columnarViewDrop", "columnarViews", "columnarCheckView", "columnarViewRebuild",
    "columnarViewSwap", "columnarViewRollback",
)  # fmt: skip
FEED_METHODS: Final = ("columnarFeedAdd", "columnarFeedDrop", "columnarFeeds")  # of ``thrift.feed_methods``
GROUP_METHODS: Final = ("columnarMutateGroup", "columnarReadGroup")  # of ``thrift.group_methods``
QUEUE_METHODS: Final = (  # of ``thrift.queue_methods``
    "columnarQueuePush", "columnarQueuePop", "columnarQueueSettle", "columnarQueuePeek", "columnarQueueStats",
    "columnarQueueConfigure", "columnarQueueDead", "columnarQueueRedrive", "columnarQueueRemoveDead",
    "columnarQueuePurge", "columnarQueueDrop",
)  # fmt: skip
TOPIC_METHODS: Final = (  # of ``thrift.topic_methods``
    "columnarTopicCreate", "columnarTopicConfigure", "columnarTopicDrop", "columnarTopicList", "columnarTopicProducer",
    "columnarTopicWait",
    "columnarPartitionSet", "columnarPartitionDrop", "columnarPartitionProduce", "columnarPartitionFetch",
    "columnarPartitionWait", "columnarPartitionOffset", "columnarPartitionState",
)  # fmt: skip
AUDIT_METHODS: Final = ("columnarTopicGroups", "columnarTopicAudit")  # of ``thrift.topic_audit_methods``
CONSUMER_METHODS: Final = ("columnarConsumerGroup",)  # of ``thrift.consumer_methods``
LEASE_METHODS: Final = ("columnarLease",)  # of ``thrift.lease_methods``
STREAM_METHODS: Final = (  # of ``thrift.stream_methods``
    "columnarChanges", "columnarCommit", "columnarReaderGroups", "columnarDropReaderGroup",
)  # fmt: skip


class LazyHandlers:
    """Handlers that are made at the first call, which loads modules on the loop for some milliseconds.

    Owned by the loop.
    """

    def __init__(self, names: Iterable[str], make: Callable[[], object]) -> None:
        """Pass the names of the methods, and ``make``, which makes the object that has them."""
        self._names = frozenset(names)
        self._make = make
        self._part: object | None = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a handler if ``name`` is one of the methods."""
        if name not in self._names:
            raise AttributeError(name)
        return partial(self._call, name)

    def _call(self, name: str, *args: Any) -> Any:
        if self._part is None:
            self._part = self._make()
        return getattr(self._part, name)(*args)


def make_cluster_methods(serving: Serving, master: MasterParts, alone: Callable[[], SingleServer]) -> object:
    """Return the cluster methods of the master, or of a standalone process, which refuses some requests."""
    from columnar.thrift.cluster_methods import ClusterMethods, SingleServerControl

    on_levels = serving.trigger_manager.dispatcher.sender.send_levels
    cluster = master.cluster or SingleServerControl(alone(), on_levels)
    return ClusterMethods(serving.operations.descriptions, cluster, may_end_servers=master.cluster is None)


def make_group_methods(operations: TableOperations) -> object:
    from columnar.thrift.group_methods import GroupMethods

    return GroupMethods(operations)


def make_lease_methods(operations: TableOperations) -> object:
    from columnar.leases.lease_service import LeaseService
    from columnar.thrift.lease_methods import LeaseMethods

    return LeaseMethods(LeaseService(operations.access))


def make_feed_methods(serving: Serving, master: MasterParts) -> object:
    from columnar.thrift.feed_methods import FeedMethods

    return FeedMethods(master.changes.feeds, serving.owner.feeds)


def make_queue_methods(serving: Serving) -> object:
    from columnar.thrift.queue_methods import QueueMethods

    return QueueMethods(serving.messages.queues.pushes().desks)


def make_topic_methods(
    serving: Serving, owners: Callable[[], Owners | None], wire: WireServer, connection_id: int
) -> object:
    """Return the methods on topics; ``owners`` returns None if this process has all regions."""
    from columnar.thrift.topic_methods import TopicMethods
    from columnar.topics.topic_service import TopicService
    from columnar.wire.local_calls import LocalService

    service = TopicService(LocalService(wire, connection_id))
    return TopicMethods(serving.messages.topics.pushes(owners).partitions, service)


def make_audit_methods(serving: Serving, wire: WireServer, connection_id: int) -> object:
    from columnar.thrift.topic_audit_methods import TopicAuditMethods
    from columnar.topics.group_lags import GroupLags
    from columnar.topics.topic_audit import TopicAudit
    from columnar.topics.topic_service import TopicService
    from columnar.wire.local_calls import LocalService

    budget = serving.operations.access.reply_memory.loop_budget
    audit = TopicAudit(TopicService(LocalService(wire, connection_id)), budget)
    return TopicAuditMethods(GroupLags(serving.trigger_manager.system), audit)


def make_consumer_methods(operations: TableOperations) -> object:
    from columnar.kafka.group_coordinators import GroupCoordinators
    from columnar.thrift.consumer_methods import ConsumerMethods

    return ConsumerMethods(GroupCoordinators(operations.access))


def make_stream_methods(serving: Serving, owners: Callable[[], Owners | None]) -> object:
    """Return the methods on change streams; ``owners`` returns None if this process has all regions."""
    from columnar.streams.change_streams import ChangeStreams
    from columnar.streams.group_reads import GroupReads
    from columnar.streams.group_rows import GroupRows
    from columnar.thrift.stream_methods import StreamMethods

    routed = owners()
    changes = serving.changes(routed.change if routed is not None else None)
    access = serving.operations.access
    streams = ChangeStreams(access, changes, owners)
    rows = GroupRows(serving.trigger_manager.system)
    return StreamMethods(streams, GroupReads(access, streams, rows, owners))


def make_view_methods(
    serving: Serving,
    master: MasterParts,
    wait: Callable[[Any, str, str, int], Awaitable[bool]],
    owners: Callable[[], Owners | None],
    others: Callable[[], RemoteViewStatuses | None],
) -> object:
    """Return the methods on views; ``owners`` and ``others`` return None if this process has all regions."""
    from columnar.thrift.view_methods import ViewChecks, ViewMethods

    views = serving.owner.views
    checks = ViewChecks(views, serving.checks, serving.trigger_manager.applier, wait, owners)
    return ViewMethods(master.views, master.view_generations, views, others, checks)
