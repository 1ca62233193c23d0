"""The servers of a node: their processes, the links to them, and the replacement of a server that died.

    started    a process that imports its modules; its settings are sent when its number can never be given again
    joined     a server with its number and settings, which the leader may know; a process that cannot join is killed
    linked     the server is connected with its node, and requests can be sent
    leaving    the server transfers its clients to other servers before it stops; only if it alone stops
    ended      the process was reaped, and answers no more

The node keeps one spare process (``keep_spare``), which has imported all modules of a server and replaces the
next server that dies.  A server that an operator restarts is always a new process, because the program may have been
replaced meanwhile.

A server that ended is replaced (``ServerDeaths``).  Each start is a new incarnation, with a number that was never used
before.

Knows nothing of regions and of the leader; ``Events`` is the interface of the node.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

from columnar.cluster.hello import Hello, obstacle
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_link import PeerLink
from columnar.cluster.peers import LinkEnds
from columnar.config import AHEAD
from columnar.coordination.processes import Beat, Child, started
from columnar.errors import ColumnarError
from columnar.limits import LEAVING_S, OPEN_REGIONS, STOP_REGION_S, STOP_S
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import HandOver, HandoverResult
from columnar.model.region_messages import Message
from columnar.runtime.background import Background
from columnar.runtime.faults import FAULTS

_log = logging.getLogger(__name__)

R = TypeVar("R")
ANSWER_S: Final = 5.0  # beyond LEAVING_S; a server that has not reported the result of its hand-over by then hangs
OUTLIVES_S: Final = 0.2  # the time in which a process ends after its link has ended
SPARE_AFTER_S: Final = 5.0  # after a start or a death, when the opening of regions needs the processor


DEATHS_WITHIN_S: Final = 300.0
DEATHS_AT_ONCE: Final = 3  # number of deaths after which servers are replaced without a pause
PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class Death:
    at_s: float
    who: str  # the incarnation
    status: int  # the exit status, or the negative number of the signal
    lines: tuple[str, ...] = ()  # the last lines of its log

    @property
    def is_by_signal(self) -> bool:
        return self.status < 0


def ending(status: int) -> str:
    """Return how a process ended, as text that continues "it ended"."""
    if status < 0:
        return f"by {signal.Signals(-status).name}" if -status in list(signal.Signals) else f"by signal {-status}"
    return f"with status {status}"


class ServerDeaths:
    """The deaths of servers, which decide how long a replacement waits and when a start is given up.

    A server that ended is replaced immediately; after more than three deaths within 5 minutes, 1, 2, 4 or 8 s later.
    During the start of the store, the start is given up if a server ended by itself: its log has the reason, which
    would be the same again.  A server that a signal ended (from a person, the kernel's memory killer, or the fence of a
    hanging server) is replaced even then, up to DEATHS_AT_ONCE times.

    Knows nothing of processes.

    The recent deaths are kept by the server's name.  The end after a requested stop is not a death.
    """

    def __init__(self) -> None:
        self._deaths: dict[str, list[Death]] = {}

    def add_death(self, name: str, death: Death) -> None:
        recent = [one for one in self._deaths.get(name, []) if death.at_s - one.at_s < DEATHS_WITHIN_S]
        self._deaths[name] = [*recent, death]

    def last(self, name: str) -> Death | None:
        return self._deaths[name][-1] if name in self._deaths else None

    def number(self, name: str) -> int:
        return len(self._deaths.get(name, ()))

    def pause_s(self, name: str) -> float:
        """Return how long the replacement of a server that has just died must wait."""
        over = self.number(name) - DEATHS_AT_ONCE
        return 0.0 if over <= 0 else PAUSES_S[min(over, len(PAUSES_S)) - 1]

    def is_start_hopeless(self, name: str) -> bool:
        """Return whether to give up the start, because a new process would fail like the one that has just died."""
        deaths = self._deaths.get(name, [])
        return bool(deaths) and (not deaths[-1].is_by_signal or len(deaths) >= DEATHS_AT_ONCE)


class Numbers(Protocol):
    """See ``roles.membership.Membership``."""

    async def number_server(self, name: str) -> Incarnation: ...

    def forget_server(self, server: Incarnation) -> None: ...


class Events(Protocol):
    def joined(self, server: Incarnation) -> None: ...

    def heard(self, server: Incarnation, beat: Beat) -> None: ...

    async def linked(self, server: Incarnation) -> None: ...

    def unlinked(self, server: Incarnation, why: str) -> None:
        """Report that the link has ended; the process may still live."""

    def ended(self, server: Incarnation, why: str, *, asked: bool) -> None:
        """Report that the process has ended; ``asked`` tells whether its stop was requested."""

    def handover_ended(self, server: Incarnation, result: HandoverResult) -> None:
        """Report that the server has transferred its clients, except for lost ones, and stops."""


@dataclass(slots=True, eq=False)
class Server:
    """An incarnation of a server."""

    incarnation: Incarnation
    child: Child
    link: PeerLink | None = None
    is_stopping: bool = False


Begun: TypeAlias = tuple[Child, list[Server]]  # a process, and its server once it has a name


class ChildProcesses:
    """Starts the processes of servers, and keeps one as a spare for the next death."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        kept: Sequence[int],
        heard: Callable[[Incarnation, Beat], None],
    ) -> None:
        self._command = command
        self._environment = environment
        self._kept = kept
        self._heard = heard
        self.running: set[Child] = set()  # started and not reaped
        self._is_stopping = False
        self._spare: Begun | None = None  # started, without a server's name so far
        self._spare_timer: asyncio.TimerHandle | None = None

    def start_process(self, *flags: str) -> Begun:
        """Start a process that has no server's name yet.  Raises OSError."""
        known: list[Server] = []

        def heard(beat: Beat) -> None:
            for server in known:
                self._heard(server.incarnation, beat)

        child = started([*self._command, *flags], self._kept, heard, self._environment)
        self.running.add(child)
        child.ended.add_done_callback(lambda _: self.running.discard(child))
        return child, known

    def keep_spare(self) -> None:
        """Keep a spare process for the next death from now on, started SPARE_AFTER_S after this call."""
        if self._spare_timer is None and self._spare is None and not self._is_stopping:
            self._spare_timer = asyncio.get_running_loop().call_later(SPARE_AFTER_S, self._start_spare)

    def _start_spare(self) -> None:
        self._spare_timer = None
        try:
            spare = self._spare = self.start_process(AHEAD)
        except OSError as error:
            _log.warning("no process can be started ahead of the next death: %s", error)
            self.keep_spare()
            return
        except Exception as fault:  # noqa: BLE001 - as above
            FAULTS.met("the care of servers", fault)
            self.keep_spare()
            return
        spare[0].ended.add_done_callback(lambda _: self._spare_ended(spare))

    def _spare_ended(self, spare: Begun) -> None:
        if self._spare is spare:  # the spare was killed
            self._spare = None
            spare[0].control.close()
            self.keep_spare()

    def take_spare(self) -> Begun:
        """Return the spare process, or start a new process if there is none.  Raises OSError."""
        spare, self._spare = self._spare, None
        if self._spare_timer is not None:  # start the pause anew
            self._spare_timer.cancel()
            self._spare_timer = None
        self.keep_spare()
        return spare if spare is not None and not spare[0].is_over else self.start_process()

    def begin_stop(self) -> None:
        """Keep no spare from now on."""
        self._is_stopping = True

    def cancel_spare(self) -> None:
        """Cancel the planned start of a spare.  A running spare is in ``running``."""
        self.begin_stop()
        if self._spare_timer is not None:
            self._spare_timer.cancel()
            self._spare_timer = None


class ServerProcesses:
    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        kept: Sequence[int],
        settings: Callable[[Incarnation], dict[str, Any]],
    ) -> None:
        """Pass the descriptors that each process inherits, and ``settings``, which returns a server's settings."""
        self._settings = settings
        self.children = ChildProcesses(
            command, environment, kept, lambda server, beat: self._events.heard(server, beat)
        )
        self.regions_of: Callable[[str], int] = lambda _name: 0  # number of regions that a server owns, by its name
        self.living: dict[Incarnation, Server] = {}  # joined and not reaped
        self.is_stopping = False
        self._stopped: set[str] = set()  # names of servers that an operator stopped, which are not restarted
        self._locks_by_name: dict[
            str, asyncio.Lock
        ] = {}  # by name; held while a server starts or stops, so that no two have the same name
        self.deaths = ServerDeaths()
        self._background = Background("the care of servers")
        self._ends: dict[Incarnation, asyncio.Future[None]] = {}

    def follow(self, events: Events, hello: Hello, numbers: Numbers, answerer: LinkEnds) -> None:
        """Pass the node's own ``hello``, and who numbers servers."""
        self._answerer = answerer
        self._events = events
        self._hello = hello
        self._numbers = numbers

    # --- starting ------------------------------------------------------------------------------------

    async def join(self, name: str, begun: Begun) -> None:
        """Number the process, send its settings, and link with it.  A process that is dead is reported as ended."""
        self._joined(await self._numbers.number_server(name), begun)

    def _joined(self, incarnation: Incarnation, begun: Begun) -> None:
        child, known = begun
        server = Server(incarnation, child)
        known.append(server)
        self.living[incarnation] = server
        self._ends[incarnation] = asyncio.get_running_loop().create_future()
        self._background.spawn(self._watch(server))  # first, because it reports the end and has the server replaced
        if child.is_over:
            return  # the process died before it had its number
        try:
            child.settings(json.dumps(self._settings(incarnation)).encode())
            self._events.joined(incarnation)
        except Exception:  # noqa: BLE001 - whatever it is, as that no descriptor is free, this process cannot serve
            _log.exception("server %s cannot join; its process is killed", incarnation)
            child.signal(signal.SIGKILL)
            return
        self._background.spawn(self._link(server))

    async def _link(self, server: Server) -> None:
        cluster = self._hello.cluster

        def fault(hello: Hello) -> str | None:
            if hello.server != server.incarnation:
                return f"{hello.server} speaks in the place of {server.incarnation}"
            return obstacle(hello, cluster, 0)

        def made() -> PeerLink:
            return PeerLink(self._hello, fault, self._answerer, lambda link: self._unlinked(server, link))

        factory = cast(Callable[[], asyncio.Protocol], made)
        try:
            _, link = await asyncio.get_running_loop().create_unix_connection(factory, sock=server.child.control)
        except OSError as error:
            self._events.unlinked(server.incarnation, f"it cannot be linked with: {error}")
            return
        server.link = cast(PeerLink, link)
        await self._events.linked(server.incarnation)

    def _unlinked(self, server: Server, link: PeerLink) -> None:
        self._answerer.link_ended(link)
        if not server.child.is_over and not server.is_stopping:
            self._background.spawn(self._outlives(server, link.why))

    async def _outlives(self, server: Server, why: str) -> None:
        """Report the link's end if the process lives on.

        In most cases the process has ended too, and its end is reported a moment later.
        """
        await asyncio.wait([server.child.ended], timeout=OUTLIVES_S)
        if not server.child.is_over and not server.is_stopping:
            self._events.unlinked(server.incarnation, why)

    async def _watch(self, server: Server) -> None:
        status = await server.child.ended
        if server.link is not None:
            server.link.end("its process has ended")
        else:
            server.child.control.close()
        del self.living[server.incarnation]
        why = ending(status)
        if not server.is_stopping:
            death = Death(asyncio.get_running_loop().time(), str(server.incarnation), status, server.child.last_lines)
            self.deaths.add_death(server.incarnation.name, death)
        log = _log.info if server.is_stopping else _log.warning
        log("server %s (process %d) has ended: %s", server.incarnation, server.child.pid, why)
        self._events.ended(server.incarnation, why, asked=server.is_stopping)
        self._ends[server.incarnation].set_result(None)
        if not self.is_stopping and server.incarnation.name not in self._stopped:
            await self._replace(server)

    async def _replace(self, server: Server) -> None:
        name = server.incarnation.name
        pause_s = 0.0 if server.is_stopping else self.deaths.pause_s(name)
        if pause_s:
            text = "server %s died %d times within 5 minutes: next in %g s"
            _log.error(text, name, self.deaths.number(name), pause_s)
            await asyncio.sleep(pause_s)
        while not self.is_stopping and name not in self._stopped:
            try:
                async with self._lock_name(name):
                    if name not in self._stopped:  # by an earlier holder of the name's lock
                        children = self.children
                        await self._start(name, children.start_process if server.is_stopping else children.take_spare)
                return
            except (OSError, ColumnarError) as error:
                _log.error("server %s cannot be started: %s; trying again", name, error)
                await asyncio.sleep(PAUSES_S[0])

    def _lock_name(self, name: str) -> asyncio.Lock:
        return self._locks_by_name.setdefault(name, asyncio.Lock())

    def _living_of(self, name: str) -> list[Server]:
        return [server for server in self.living.values() if server.incarnation.name == name]

    async def _start(self, name: str, begin: Callable[[], Begun]) -> None:
        """Start a server, under the lock of its name; do nothing if a server of that name lives.

        Raises OSError and the errors of ``join``.
        """
        if self._living_of(name) or self.is_stopping:
            return
        server = await self._numbers.number_server(name)
        begun: Begun | None = None
        try:
            if not self.is_stopping:
                begun = begin()
        finally:
            if begun is None:
                self._numbers.forget_server(server)
        if begun is not None:
            self._joined(server, begun)

    # --- requests ------------------------------------------------------------------------------------

    def is_linked(self, server: Incarnation) -> bool:
        found = self.living.get(server)
        return found is not None and found.link is not None

    async def request_server(self, server: Incarnation, message: Message[R]) -> R:
        """Send ``message`` and return the answer.  Concurrent requests are sent in the order of the calls.

        Raises the errors of ``PeerLink.send_request``.
        """
        found = self.living.get(server)
        if found is None or found.link is None:
            raise NotSent
        return await found.link.send_request(message)

    def has_worked(self, server: Incarnation) -> bool:
        """Return ``Child.has_worked`` of the server's process."""
        found = self.living.get(server)
        return found is not None and found.child.has_worked()

    async def fence(self, server: Incarnation) -> None:
        """Kill the server.  Returns when the server answers no more requests and was reported as ended."""
        found = self.living.get(server)
        if found is not None:
            await found.child.fence()
        await self.gone(server)

    async def gone(self, server: Incarnation) -> None:
        ended = self._ends.get(server)
        if ended is not None:
            await asyncio.shield(ended)

    # --- a single server -------------------------------------------------------------------------------

    async def stop_one(self, server: Incarnation, within_s: float = LEAVING_S) -> None:
        """Stop the server and transfer its clients.  Returns when no process of its name lives or starts.

        If the server died before and a new process replaced it, that process is stopped.

        ``within_s`` bounds the hand-over of the clients.  A server that hangs then, or does not stop within its
        ``stop_s``, is killed.
        """
        self._stopped.add(server.name)
        async with self._lock_name(server.name):
            for found in self._living_of(server.name):
                await self._stop(found, within_s)

    def stop_s(self, *names: str) -> float:
        """Return the seconds that the servers have to flush and close their open regions before they are killed."""
        return max((STOP_S + STOP_REGION_S * min(self.regions_of(name), OPEN_REGIONS) for name in names), default=0.0)

    async def _stop(self, server: Server, within_s: float) -> None:
        server.is_stopping = True
        name = server.incarnation.name
        if await self._request_handover(server, within_s):
            server.child.request_stop()
            await asyncio.wait([asyncio.ensure_future(self.gone(server.incarnation))], timeout=self.stop_s(name))
        await self.fence(server.incarnation)

    async def _request_handover(self, server: Server, within_s: float) -> bool:
        """Request a hand-over.  Returns False if the server does not answer, and so cannot be stopped in order."""
        try:
            async with asyncio.timeout(within_s + ANSWER_S):
                result = await self.request_server(server.incarnation, HandOver(round(within_s * 1000)))
        except (NotSent, LinkBroke):
            return True  # the server has no link yet, or is ending
        except TimeoutError:
            text = "server %s has not handed its clients over after %g s; it is killed"
            _log.error(text, server.incarnation, within_s + ANSWER_S)
            return False
        except Exception as error:  # noqa: BLE001 - whatever it is, the server can be stopped
            _log.error("server %s cannot hand its clients over: %s", server.incarnation, error)
            return True
        self._events.handover_ended(server.incarnation, result)
        return True

    async def start_one(self, name: str) -> None:
        """Start a server that was stopped or waits for its next start; do nothing if it lives.  Raises OSError."""
        self._stopped.discard(name)
        async with self._lock_name(name):
            await self._start(name, self.children.start_process)

    # --- the end -------------------------------------------------------------------------------------

    def begin_stop(self) -> None:
        """Treat every end of a server as requested from now on, and start no replacements."""
        self.is_stopping = True
        self.children.begin_stop()
        for server in self.living.values():
            server.is_stopping = True

    async def stop(self) -> None:
        """Stop all servers concurrently, each in order; kill servers that live after the longest ``stop_s``."""
        self.begin_stop()
        for server in self.living.values():
            server.child.request_stop()
        ends = [asyncio.ensure_future(self.gone(server)) for server in self.living]
        if ends:
            await asyncio.wait(ends, timeout=self.stop_s(*(server.name for server in self.living)))
        await self.kill()

    async def kill(self) -> None:
        """Kill all processes, and return when none is left."""
        self.is_stopping = True
        self.children.cancel_spare()
        for child in list(self.children.running):
            if child in {server.child for server in self.living.values()}:
                _log.warning("process %d of a server does not stop; it is killed", child.pid)
            await child.fence()
        for incarnation in list(self.living):
            await self.gone(incarnation)
        self._background.close()
        await self._background.ended()
