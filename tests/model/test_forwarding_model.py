"""Forwarded calls in a small world: regions move, owners die, links break anywhere, routes arrive late.

No write is carried out twice, each call ends once, and its end is true: an answered write was carried out once, a write
that was refused as not served never.  When all faults are over, calls that still wait are answered.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from columnar.cluster.forwarding_state import LONGEST_PAUSE_MS, ROUTING_TIMEOUT_MS, Do, ForwardedCall, State
from columnar.cluster.refusals import Moved, refuse_not_local
from columnar.cluster.routes import Routes
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.model.route import ChangeRoutes, ReplaceRoutes, Route

GATEWAY = Incarnation("gw", 1)
ROWS = [b"b", b"k", b"t"]


@dataclass
class Server:
    me: Incarnation
    routes: Routes = field(default_factory=Routes)
    heard: int = 0  # changes of the catalogue
    owned: dict[int, int] = field(default_factory=dict)  # region id -> epoch, while it is open here
    queue: list[int] = field(default_factory=list)  # numbers of frames that the gateway's link has not begun to send
    coming: list[int] = field(default_factory=list)  # on the wire to the server
    going: list[tuple[int, Any]] = field(default_factory=list)  # on the wire to the gateway: number, Moved or "done"
    is_linked: bool = True


@dataclass
class Call:
    state: ForwardedCall
    row: bytes
    is_write: bool
    begun_ms: int
    number: int = 0  # of its frame
    executions: int = 0
    ends: list[Do | str] = field(default_factory=list)


class World:
    def __init__(self, rng: random.Random) -> None:
        self.rng, self.now_ms, self.numbers, self.next_id = rng, 1_000, 0, 3
        self.servers = {name: Server(Incarnation(name, 1)) for name in ("gw", "s1", "s2")}
        self.calls: list[Call] = []
        self.frames: dict[int, Call] = {}  # the gateway's calls that await an answer, by the number of the frame
        self.sent: dict[int, Call] = {}  # by the number of every frame that ever was
        low, high = RegionInfo("t", 2, b"", b"m"), RegionInfo("t", 3, b"m", b"")
        self.catalogue = {2: Route(low, Incarnation("s1", 1), 1), 3: Route(high, Incarnation("s2", 1), 1)}
        self.changes: list[ChangeRoutes] = []
        self.has_broken = False  # some link
        self.opening: dict[int, int] = {}  # region id -> epoch, where the owner has not opened it yet
        for server in self.servers.values():
            self.whole(server)
        for route in self.catalogue.values():
            self.servers[route.server.name].owned[route.region.region_id] = 1

    @property
    def gateway(self) -> Routes:
        return self.servers["gw"].routes

    # --- the catalogue and its owners ----------------------------------------------------------------

    def whole(self, server: Server) -> None:
        server.heard = len(self.changes)
        server.routes.replace(ReplaceRoutes(server.heard, tuple(self.catalogue.values())))

    def publish(self, gone: list[RegionInfo], routes: list[Route]) -> None:
        for route in routes:
            self.catalogue[route.region.region_id] = route
        for region in gone:
            del self.catalogue[region.region_id]
        self.changes.append(ChangeRoutes(len(self.changes) + 1, tuple(gone), tuple(routes)))

    def move(self) -> None:
        """Move a region: the catalogue is written first; the region is closed and opened later."""
        region_id = self.rng.choice(sorted(self.catalogue))
        route = self.catalogue[region_id]
        if region_id in self.opening:
            return
        to = self.servers[self.rng.choice(sorted(self.servers))].me
        if to != route.server:
            self.opening[region_id] = route.epoch + 1
            self.publish([], [Route(route.region, to, route.epoch + 1, route.ownership_period)])

    def close_and_open(self) -> None:
        for region_id, epoch in sorted(self.opening.items()):
            route = self.catalogue[region_id]
            if route.source is not None:
                self.servers[route.source.server.name].owned.pop(region_id, None)
                self.catalogue[region_id] = replace(route, source=None)
            elif self.rng.random() < 0.7:
                self.servers[route.server.name].owned[region_id] = epoch
                del self.opening[region_id]

    def die(self) -> None:
        server = self.servers[self.rng.choice(["s1", "s2"])]
        dead, server.me = server.me, Incarnation(server.me.name, server.me.number + 1)
        server.owned.clear()
        self.break_link(server)
        self.whole(server)
        changed = []
        for region_id, route in self.catalogue.items():
            if dead in (route.server, route.source.server if route.source else None):
                to = self.servers[self.rng.choice(sorted(self.servers))].me if route.server == dead else route.server
                self.opening[region_id] = route.epoch + 1
                if route.source is not None and route.source.server != dead:
                    self.servers[route.source.server.name].owned.pop(region_id, None)  # it is told to close
                changed.append(Route(route.region, to, route.epoch + 1))
        self.publish([], changed)

    def split(self) -> None:
        """Split a region at a living owner, between two requests."""
        region_id = self.rng.choice(sorted(self.catalogue))
        route = self.catalogue[region_id]
        middle = (route.region.start or b"a") + b"5"
        if region_id in self.opening or not route.region.contains_row(middle):
            return
        low = RegionInfo("t", self.next_id + 1, route.region.start, middle)
        high = RegionInfo("t", self.next_id + 2, middle, route.region.end)
        self.next_id += 2
        owned = self.servers[route.server.name].owned
        del owned[region_id]
        owned |= {low.region_id: 1, high.region_id: 1}
        self.publish([route.region], [Route(low, route.server, 1), Route(high, route.server, 1)])

    def hear(self) -> None:
        """Let the next change of the catalogue reach one of the servers."""
        server = self.rng.choice(list(self.servers.values()))
        if server.heard < len(self.changes):
            server.routes.apply(self.changes[server.heard])
            server.heard += 1
            server.routes.check_invariants()
            if server.me == GATEWAY:
                self.everywhere(lambda call, route: call.state.route_changed(route, self.now_ms))

    # --- the wires -----------------------------------------------------------------------------------

    def flush(self) -> None:
        server = self.rng.choice(list(self.servers.values()))
        numbers, server.queue = server.queue, []
        for number in numbers:
            call = self.frames[number]
            if server.is_linked:
                server.coming.append(number)
                self.do(call, call.state.frame_written())
            else:
                del self.frames[number]
                self.do(call, call.state.not_sent(self.route(call), self.now_ms))
        server.is_linked = True

    def arrive(self) -> None:
        """Let a server take the next call from its link, and carry out or refuse it."""
        server = self.rng.choice(list(self.servers.values()))
        if not server.coming:
            return
        number = server.coming.pop(0)
        call = self.sent[number]
        if self.owns(server, call.row):
            call.executions += 1
            server.going.append((number, "done"))
        else:
            server.going.append((number, refuse_not_local(server.routes.find("t", call.row), server.me)))

    def owns(self, server: Server, row: bytes) -> bool:
        return any(self.catalogue[one].region.contains_row(row) for one in server.owned if one in self.catalogue)

    def come_back(self) -> None:
        server = self.rng.choice(list(self.servers.values()))
        if not server.going:
            return
        number, answer = server.going.pop(0)
        call = self.frames.pop(number, None)
        if call is None:
            return  # it was forgotten
        if answer == "done":
            self.do(call, call.state.answer_came())
            return
        if isinstance(answer, Moved):
            self.gateway.moved(answer.region, answer.server, answer.epoch)
        self.do(call, call.state.not_local(self.route(call), self.now_ms))

    def cut(self) -> None:
        self.break_link(self.servers[self.rng.choice(["s1", "s2"])])

    def break_link(self, server: Server) -> None:
        """Break a link: calls on the wire may have arrived or not, and answers on the wire are lost."""
        self.has_broken = True
        for number in server.coming:
            if self.rng.random() < 0.5 and self.owns(server, self.sent[number].row):
                self.sent[number].executions += 1
        numbers = [*server.coming, *(number for number, _ in server.going)]
        server.coming, server.going, server.is_linked = [], [], False
        for number in numbers:
            call = self.frames.pop(number, None)
            if call is not None:
                self.do(call, call.state.link_broke(self.route(call), self.now_ms))

    # --- the gateway ---------------------------------------------------------------------------------

    def begin(self) -> None:
        call = Call(
            ForwardedCall(GATEWAY, is_write := self.rng.random() < 0.6, self.now_ms),
            self.rng.choice(ROWS),
            is_write,
            self.now_ms,
        )
        self.calls.append(call)
        self.do(call, call.state.begin_call(self.route(call), self.now_ms))

    def route(self, call: Call) -> Route | None:
        return self.gateway.find("t", call.row)

    def everywhere(self, event: Any) -> None:
        for call in self.calls:
            self.do(call, event(call, self.route(call)))

    def tick(self, most_ms: int = 12_000) -> None:
        self.now_ms += self.rng.choice([1, 3, 10, 100, 1_000, most_ms])
        for call in self.calls:
            wake = call.state.wake_at_ms
            if wake is not None and wake <= self.now_ms:
                self.do(call, call.state.woke(self.route(call), self.now_ms))

    def leave(self) -> None:
        if self.calls:
            call = self.rng.choice(self.calls)
            if not call.state.has_ended:
                call.ends.append("gone")
            self.do(call, call.state.client_went())

    def do(self, call: Call, doing: tuple[Do, ...]) -> None:
        for one in doing:
            if one is Do.SEND:
                assert not any(call is other for other in self.frames.values()), "W3"
                self.numbers += 1
                call.number = self.numbers
                self.sent[call.number] = self.frames[call.number] = call
                assert call.state.server != GATEWAY
                self.servers[call.state.server.name].queue.append(call.number)
            elif one is Do.RECALL:
                (server,) = (server for server in self.servers.values() if call.number in server.queue)
                server.queue.remove(call.number)
                del self.frames[call.number]
            elif one is Do.FORGET:
                del self.frames[call.number]
            elif one is Do.SERVE_LOCALLY:
                self.serve_here(call)
            elif one is Do.WAIT:
                wake = call.state.wake_at_ms
                assert wake is not None
                assert self.now_ms < wake <= call.begun_ms + ROUTING_TIMEOUT_MS, "it sleeps, and not for ever"
            else:
                self.end(call, one)
        call.state.check_invariants()

    def serve_here(self, call: Call) -> None:
        if self.owns(self.servers["gw"], call.row):
            call.executions += 1
            call.ends.append("here")
            self.do(call, call.state.ended_locally())
        else:
            self.do(call, call.state.not_local(self.route(call), self.now_ms))

    def end(self, call: Call, how: Do) -> None:
        call.ends.append(how)
        if how is Do.REFUSE_UNSURE:
            assert call.is_write
            assert self.has_broken, "a move alone ends no call"
        if how is Do.REFUSE_DEADLY:
            assert not call.is_write
            assert self.has_broken, "a move alone ends no call"
        if how is Do.REFUSE_UNAVAILABLE and call.is_write:
            assert call.executions == 0, "W2"
            assert self.now_ms >= call.begun_ms + ROUTING_TIMEOUT_MS, "it was patient"
        if how is Do.ANSWER:
            assert call.executions >= 1

    def check(self) -> None:
        assert not any(call.state.has_ended for call in self.frames.values()), "recalled or forgotten"
        for call in self.calls:
            assert call.executions <= 1 or not call.is_write, "a write was carried out twice"
            assert len(call.ends) == call.state.has_ended, "W1"
            if call.ends and call.ends[0] in (Do.ANSWER, "here") and call.is_write:
                assert call.executions == 1

    def settle(self) -> None:
        """End all faults, so that waiting calls are answered."""
        waiting = [call for call in self.calls if not call.state.has_ended]
        for _ in range(600):
            self.close_and_open()
            for _ in range(12):
                for step in (self.hear, self.flush, self.arrive, self.come_back):
                    step()
            self.now_ms += 4
            self.everywhere(lambda call, route: self.woken(call, route))
            self.check()
            if all(call.state.has_ended for call in self.calls):
                break
        for call in waiting:
            assert call.state.has_ended, call
            if call.begun_ms + ROUTING_TIMEOUT_MS > self.now_ms and not call.is_write:
                assert call.ends[0] in (Do.ANSWER, "here"), call.ends

    def woken(self, call: Call, route: Route | None) -> tuple[Do, ...]:
        wake = call.state.wake_at_ms
        return call.state.woke(route, self.now_ms) if wake is not None and wake <= self.now_ms else ()


STEPS = {
    "begin": 4,
    "flush": 5,
    "arrive": 6,
    "come_back": 5,
    "hear": 4,
    "move": 2,
    "close_and_open": 3,
    "die": 1,
    "cut": 1,
    "split": 1,
    "tick": 2,
    "leave": 1,
}
drawn = st.lists(
    st.sampled_from([name for name, often in STEPS.items() for _ in range(often)]), min_size=20, max_size=90
)


def played(steps: list[str], number: int) -> World:
    world = World(random.Random(number))
    for name in steps:
        getattr(world, name)()
        world.check()
    world.settle()
    world.check()
    return world


@given(drawn, st.integers(0, 1 << 30))
@settings(max_examples=300)
def test_no_write_is_carried_out_twice_and_every_call_ends_once(steps: list[str], number: int) -> None:
    played(steps, number)


def test_the_world_leads_to_every_end() -> None:
    rng, ends, states = random.Random(20), Counter[tuple[bool, Any]](), set()
    names, often = list(STEPS), list(STEPS.values())
    for number in range(150):
        world = played(rng.choices(names, often, k=120), number)
        for call in world.calls:
            states.add(call.state.state)
            ends[call.is_write, call.ends[0]] += 1
    for is_write in (False, True):
        for end in (Do.ANSWER, Do.REFUSE_UNAVAILABLE, "here", "gone"):
            assert ends[is_write, end] > 0, (is_write, end)
    assert ends[True, Do.REFUSE_UNSURE] > 0
    assert ends[False, Do.REFUSE_UNSURE] == 0
    assert {State.ANSWERED, State.REFUSED, State.GONE} == states
    assert LONGEST_PAUSE_MS < ROUTING_TIMEOUT_MS
