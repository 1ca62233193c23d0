"""There is never more than one server of a name, whenever a person stops or starts one that dies by itself."""

from __future__ import annotations

import asyncio
import random
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from columnar.cluster.hello import Hello
from columnar.model.owner import Incarnation
from columnar.roles import server_processes
from columnar.roles.server_processes import ServerProcesses
from tests.support.seeds import seed

EARLY = ("another", "die early", "descriptors")  # a server that has yet to join, its death, and whether it can


class Process:
    """A child that hangs until it is killed; it never greets, so nothing is handed over."""

    def __init__(self) -> None:
        self.pid = 1
        self.last_lines: tuple[str, ...] = ()
        self.control, self._other = socket.socketpair()
        self.control.setblocking(False)
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def is_over(self) -> bool:
        return self.ended.done()

    def settings(self, _settings: bytes) -> None:
        pass

    def signal(self, number: int) -> None:
        if number == signal.SIGKILL:
            self.die()

    def die(self) -> None:
        if not self.ended.done():
            self.ended.set_result(-signal.SIGKILL)
            self._other.close()

    def request_stop(self) -> None:
        self.die()

    async def fence(self) -> int:
        self.die()
        return await self.ended


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started: list[Process] = []
        self.numbers = 0
        self.numbered: set[Incarnation] = set()
        self.may_number = asyncio.Event()
        self.may_number.set()
        self.has_descriptors = True
        self.deaths: list[Incarnation] = []
        self.doubled: list[Incarnation] = []  # two of its name were there when it joined
        monkeypatch.setattr(server_processes, "started", self._started)
        monkeypatch.setattr(server_processes, "PAUSES_S", (0.0,))
        monkeypatch.setattr(server_processes, "ANSWER_S", 0.0)
        self.processes = ServerProcesses([], {}, (), lambda _: {})
        self.processes.follow(
            cast(Any, self), Hello("c", Incarnation("master", 1), leader_epoch=1), self, cast(Any, self)
        )

    def _started(self, *_: object) -> Process:
        self.started.append(Process())
        return self.started[-1]

    async def number_server(self, name: str) -> Incarnation:
        await self.may_number.wait()
        self.numbers += 1
        self.numbered.add(Incarnation(name, self.numbers))
        return Incarnation(name, self.numbers)

    def forget_server(self, server: Incarnation) -> None:
        """A number without a process is given back, once."""
        self.numbered.remove(server)

    # --- as the master and as the answerer of links ---

    def joined(self, server: Incarnation) -> None:
        if len(self.processes._living_of(server.name)) > 1:
            self.doubled.append(server)
        if self.processes.living[server].child.is_over or not self.has_descriptors:
            raise OSError("the doorbell cannot be duplicated")

    async def linked(self, server: Incarnation) -> None: ...

    def unlinked(self, server: Incarnation, why: str) -> None: ...

    def link_ended(self, link: object) -> None: ...

    def ended(self, server: Incarnation, why: str, *, asked: bool) -> None:
        self.deaths.append(server)

    # --- looks ---

    @property
    def living(self) -> list[Incarnation]:
        return [server for server in self.processes.living if server.name == "s1"]

    def process(self) -> Process:
        (server,) = self.living
        return cast(Process, self.processes.living[server].child)

    async def until(self, is_so: Callable[[], bool]) -> None:
        for _ in range(10_000):
            if is_so():
                return
            await asyncio.sleep(0)
        raise AssertionError("it never is")

    async def settle(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)


def in_world(monkeypatch: pytest.MonkeyPatch, scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        world = World(monkeypatch)
        await world.processes.join("s1", world.processes.children.start_process())
        await scenario(world)
        await world.processes.kill()
        assert world.doubled == [], "there were two of one name"
        assert all(process.is_over for process in world.started), "a process is left that nobody knows"

    asyncio.run(asyncio.wait_for(run(), 20))


def test_a_stop_ends_the_one_that_was_started_in_the_place_of_the_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        (old,) = world.living
        world.process().die()
        await world.until(lambda: bool(world.living) and world.living != [old])
        await world.processes.stop_one(old, 0.01)
        await world.settle()
        assert world.living == []

    in_world(monkeypatch, scenario)


def test_a_stop_while_the_next_one_is_numbered_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        (old,) = world.living
        world.may_number.clear()
        world.process().die()
        await world.until(lambda: not world.living)
        await world.settle()
        stopping = asyncio.ensure_future(world.processes.stop_one(old, 0.01))
        await world.settle()
        world.may_number.set()
        await stopping
        await world.settle()
        assert world.living == []

    in_world(monkeypatch, scenario)


def test_a_start_of_one_that_lives_or_is_to_start_by_itself_starts_no_second(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        await world.processes.start_one("s1")
        assert len(world.started) == 1
        world.may_number.clear()
        world.process().die()
        await world.until(lambda: not world.living)
        starts = [asyncio.ensure_future(world.processes.start_one("s1")) for _ in range(3)]
        await world.settle()
        world.may_number.set()
        await asyncio.gather(*starts)
        await world.settle()
        assert len(world.living) == 1
        assert len(world.started) == 2

    in_world(monkeypatch, scenario)


def test_a_process_that_dies_before_it_joins_is_reported_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        begun = world.processes.children.start_process()
        world.may_number.clear()
        joining = asyncio.ensure_future(world.processes.join("s2", begun))
        await world.settle()
        world.started[-1].die()
        world.may_number.set()
        await joining
        await world.until(lambda: [server.name for server in world.deaths] == ["s2"])
        await world.until(lambda: len(world.processes.living) == 2)

    in_world(monkeypatch, scenario)


def test_a_process_that_cannot_join_is_killed_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        world.has_descriptors = False
        world.process().die()
        await world.until(lambda: len(world.deaths) == 5)
        assert sum(not process.is_over for process in world.started) <= 1, "a process is left from each try"
        assert len(world.processes._background) <= 4, "each try goes on for itself"
        world.has_descriptors = True
        await world.until(lambda: bool(world.living) and not world.process().is_over)
        await world.settle()
        assert [process.is_over for process in world.started].count(False) == len(world.living) == 1

    in_world(monkeypatch, scenario)


def test_a_process_that_waits_takes_the_place_of_the_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        monkeypatch.setattr(server_processes, "SPARE_AFTER_S", 0.0)
        world.processes.children.keep_spare()
        await world.until(lambda: len(world.started) == 2)
        waiting = world.started[1]
        world.process().die()
        await world.until(lambda: bool(world.living) and not world.process().is_over)
        assert world.process() is waiting
        await world.until(lambda: len(world.started) == 3)
        assert len(world.living) == 1, "the third one is nobody"

    in_world(monkeypatch, scenario)


def test_a_process_that_waits_and_is_killed_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        monkeypatch.setattr(server_processes, "SPARE_AFTER_S", 0.0)
        world.processes.children.keep_spare()
        await world.until(lambda: len(world.started) == 2)
        world.started[1].die()
        await world.until(lambda: len(world.started) == 3)
        assert world.deaths == [], "it was no server"

    in_world(monkeypatch, scenario)


def test_a_server_that_a_person_starts_again_is_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program may have been replaced since the waiting one imported it."""

    async def scenario(world: World) -> None:
        monkeypatch.setattr(server_processes, "SPARE_AFTER_S", 0.0)
        world.processes.children.keep_spare()
        await world.until(lambda: len(world.started) == 2)
        (old,) = world.living
        await world.processes.stop_one(old, 0.01)
        await world.processes.start_one("s1")
        await world.settle()
        assert world.process() is world.started[2]

    in_world(monkeypatch, scenario)


def test_whatever_comes_between_there_is_one_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """``World.joined`` counts at each start."""
    first = seed(20261123)
    print(f"COLUMNAR_SEED={first}")

    def of(number: int) -> Callable[[World], Coroutine[Any, Any, None]]:
        async def scenario(world: World) -> None:
            rng = random.Random(number)
            tasks: list[asyncio.Task[None]] = []
            last = world.living[0]
            for _ in range(40):
                last = world.living[-1] if world.living else last
                step = rng.choice(("die", "stop", "start", "wait", "hold", "release", *EARLY))
                if step == "another" and len(world.started) < 20:
                    name = f"s{len(world.started) + 1}"
                    begun = world.processes.children.start_process()
                    tasks.append(asyncio.ensure_future(world.processes.join(name, begun)))
                elif step == "die early":
                    world.started[-1].die()
                elif step == "descriptors":
                    world.has_descriptors = not world.has_descriptors
                elif step == "die" and world.living:
                    world.process().die()
                elif step == "stop":
                    tasks.append(asyncio.ensure_future(world.processes.stop_one(last, 0.01)))
                elif step == "start":
                    tasks.append(asyncio.ensure_future(world.processes.start_one("s1")))
                elif step == "hold":
                    world.may_number.clear()
                elif step == "release":
                    world.may_number.set()
                for _ in range(rng.randrange(6)):
                    await asyncio.sleep(0)
            world.may_number.set()
            world.has_descriptors = True
            await asyncio.gather(*tasks)
            await world.settle()
            await world.processes.start_one("s1")
            await world.settle()
            assert len(world.living) == 1
            left = [process for process in world.started if not process.is_over]
            assert len(left) == len(world.processes.living), "a process is left that nobody knows"

        return scenario

    for number in range(first, first + 50):
        with _patched(monkeypatch) as patch:
            in_world(patch, of(number))


@contextmanager
def _patched(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    with monkeypatch.context() as patch:
        yield patch
