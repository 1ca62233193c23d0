"""A simulated server as a gateway: calls of clients are carried out here or forwarded to the owner of their row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from columnar.cluster.forwarding_state import Do, ForwardedCall, State
from columnar.cluster.refusals import Moved, Unknown, refuse_not_local
from columnar.cluster.routes import Routes
from columnar.model.owner import Incarnation
from columnar.model.route import ChangeRoutes, ReplaceRoutes, Route
from tests.simulation.agenda import MS
from tests.simulation.clients import TABLE, Client, Op
from tests.simulation.owning import Done, Elsewhere, Outcome, Unsure

if TYPE_CHECKING:
    from tests.simulation.server import Server

Reply = Done | Unsure | Moved | Unknown


class Call:
    __slots__ = ("client", "found", "op", "state")

    def __init__(self, state: ForwardedCall, op: Op, client: Client) -> None:
        self.state = state
        self.op = op
        self.client = client
        self.found: object = None  # the answer


class Gateway:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._agenda = server.world.agenda
        self.routes = Routes()
        self.calls: dict[Op, Call] = {}
        self._sent: dict[Op, Call] = {}  # what awaits an answer of another server

    # --- calls ---------------------------------------------------------------------------------------

    def called(self, op: Op, client: Client) -> None:
        call = Call(ForwardedCall(self._server.me, op.is_write, self._agenda.now_ms), op, client)
        self.calls[op] = call
        route = self._route(op)
        if self._server.owning.reads_unchecked(route, op, lambda outcome: self._served(call, outcome)):
            call.state.begin_call(None, self._agenda.now_ms)
            return
        self._do(call, call.state.begin_call(route, self._agenda.now_ms))

    def _route(self, op: Op) -> Route | None:
        return self.routes.find(TABLE, op.row)

    def client_went(self, op: Op) -> None:
        call = self.calls.get(op)
        if call is not None:
            self._do(call, call.state.client_went())

    def _do(self, call: Call, doing: tuple[Do, ...]) -> None:
        op, client, process = call.op, call.client, self._server.process
        for do in doing:
            if do is Do.SEND:
                target = call.state.server
                self._agenda.later(process, self._agenda.drawn(0, 300), partial(self._write, call, target))
            elif do is Do.SERVE_LOCALLY:
                self._server.owning.serve(op, lambda outcome: self._served(call, outcome))
            elif do is Do.WAIT:
                self._wait(call)
            elif do is Do.FORGET:
                self._sent.pop(op, None)
            elif do is Do.ANSWER:
                self._to_client(client, partial(client.answered, op, call.found))
            elif do is Do.REFUSE_UNAVAILABLE:
                self._to_client(client, lambda: client.refused(op))
            elif do in (Do.REFUSE_UNSURE, Do.REFUSE_DEADLY, Do.REFUSE_FAILED):
                self._to_client(client, lambda: client.unsure(op))
        call.state.check_invariants()
        if call.state.has_ended:
            self.calls.pop(op, None)

    def _to_client(self, client: Client, what: Callable[[], None]) -> None:
        self._server.post(client.process, what)

    def _wait(self, call: Call) -> None:
        wake_ms = call.state.wake_at_ms
        assert wake_ms is not None, "it waits"

        def woke() -> None:
            self._do(call, call.state.woke(self._route(call.op), self._agenda.now_ms))

        self._agenda.later(self._server.process, max(MS, wake_ms * MS - self._agenda.now_us), woke)

    def _write(self, call: Call, target: Incarnation) -> None:
        """Begin to send a call over the link."""
        if call.state.state is not State.QUEUED or call.state.server != target:
            return  # taken back
        peer = self._server.world.servers.get(target)
        if peer is None or peer.process not in self._server.process.peers:
            self._do(call, call.state.not_sent(self._route(call.op), self._agenda.now_ms))
            return
        call.state.frame_written()
        self._sent[call.op] = call
        here = self._server
        here.post(peer.process, lambda: peer.gateway.forwarded(call.op, here))

    def _served(self, call: Call, outcome: Outcome) -> None:
        """Note that a call was carried out here."""
        op, client = call.op, call.client
        if call.state.has_ended:
            return  # the client went
        if isinstance(outcome, Elsewhere):
            self._do(call, call.state.not_local(self._route(op), self._agenda.now_ms))
            return
        if call.state.state is State.LOCAL:
            call.state.ended_locally()
        self.calls.pop(op, None)
        if isinstance(outcome, Done):
            self._to_client(client, lambda: client.answered(op, outcome.answer))
        else:
            self._to_client(client, lambda: client.unsure(op))

    # --- other servers -------------------------------------------------------------------------------

    def forwarded(self, op: Op, gateway: Server) -> None:
        """Carry out a call that came over a link, which is never forwarded again."""

        def reply(outcome: Outcome) -> None:
            told: Reply = (
                outcome if not isinstance(outcome, Elsewhere) else refuse_not_local(self._route(op), self._server.me)
            )
            me = self._server.me
            self._server.post(gateway.process, lambda: gateway.gateway.replied(op, me, told))

        self._server.owning.serve(op, reply)

    def replied(self, op: Op, peer: Incarnation, told: Reply) -> None:
        call = self._sent.get(op)
        if call is None or call.state.state is not State.SENT or call.state.server != peer:
            return  # forgotten
        del self._sent[op]
        if isinstance(told, Done):
            call.found = told.answer
            self._do(call, call.state.answer_came())
        elif isinstance(told, Unsure):
            self._do(call, call.state.failed())
        else:
            if isinstance(told, Moved) and self.routes.moved(told.region, told.server, told.epoch):
                self._routes_changed(apart_from=call)
            self._do(call, call.state.not_local(self._route(op), self._agenda.now_ms))

    def link_ended(self, peer: Incarnation) -> None:
        for op, call in list(self._sent.items()):
            if call.state.state is State.SENT and call.state.server == peer:
                del self._sent[op]
                self._do(call, call.state.link_broke(self._route(op), self._agenda.now_ms))

    # --- routes --------------------------------------------------------------------------------------

    def hear(self, change: ChangeRoutes | ReplaceRoutes) -> None:
        held = self.routes.replace(change) if isinstance(change, ReplaceRoutes) else self.routes.apply(change)
        self.routes.check_invariants()
        if held.needs_all or held.number < change.number:
            self._server.to_master(lambda master: master.routes_wanted(self._server))
        if isinstance(change, ChangeRoutes) and held.number == change.number:
            self._server.owning.dropped(change.gone)
        self._routes_changed()

    def _routes_changed(self, apart_from: Call | None = None) -> None:
        for call in list(self.calls.values()):
            if call is not apart_from:
                self._do(call, call.state.route_changed(self._route(call.op), self._agenda.now_ms))
