"""(pure) The controller: frames, ends of connections and moments in, instructions out.

A member's stages:

    GREETING  connected; its hello is answered by a challenge
    JOINING   proved the token, has the load; compares clocks
    READY     granted credit, is dealt requests
    RUNNING   from "go" on
    ENDED     its done has come
    LOST      its connection ended before, or SILENT_S without a frame of it

"Go" is sent when all have received START_PLAN_S of plan.  From then on a member is lost if it is silent.  The requests
that it was dealt and that start TAKEOVER_S after its last frame or later (at once if its process is known to be dead)
it cannot have begun, because a worker sends nothing later than UNHEARD_S after its last answered ping: the others take
them over.  The rest of what it had is ``lost``, unless a tick had said its end.

Invariants (``check``):
    C1. planned = finished + lost, over all members; finished ones are answered, failed or interrupted.
    C2. The figures are those of one worker that recorded all samples.
    C3. No member is dealt more than it granted.
    C4. No request that a worker may have begun is dealt to another.

Knows nothing of sockets and processes.  Moments are of the controller's clock, in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from wikibench.latency import Figures
from wikibench.limits import MOST_WORKERS
from wikibench.pacing import Planned
from wikibench.visits import Load

from .clocks import UNHEARD_S
from .dealing import AHEAD_S, Dealer, Dealt
from .figures import add_to
from .frames import (
    BLOCK_REQUESTS,
    NONCE_BYTES,
    VERSION,
    AnyFrame,
    Challenge,
    Credit,
    Done,
    FrameError,
    Go,
    Hello,
    Ping,
    Plan,
    Pong,
    Proof,
    Standing,
    Stop,
    Tick,
    block_of,
    is_proof,
    proof_of,
)

SILENT_S: Final = 3.0
TAKEOVER_S: Final = 2.0
assert TAKEOVER_S >= UNHEARD_S + 0.5, "C4, with clocks that are compared badly and drift"
START_PLAN_S: Final = 2.0
GREETING_S: Final = 5.0
JOINING_SILENT_S: Final = 10.0  # before "go": a worker may have to resolve the target's name
STALLED_S: Final = 0.5  # between two polls: the controller itself was stopped, or read far into the trace
TICK_FRAMES: Final = 64  # of one tick
STRANGERS: Final = 64  # connections that have not proved the token

Stage = Enum("Stage", "GREETING JOINING READY RUNNING ENDED LOST")
_ALIVE: Final = (Stage.JOINING, Stage.READY, Stage.RUNNING)


@dataclass(frozen=True, slots=True)
class SendTo:
    member: int
    frame: AnyFrame


@dataclass(frozen=True, slots=True)
class Close:
    member: int
    why: str


Instruction = SendTo | Close


class Member:
    """A connection of a worker."""

    def __init__(self, number: int, now_s: float, nonce: bytes, *, is_local: bool) -> None:
        self.number = number
        self.is_local = is_local  # a process of the controller's: the same clock, and dead if its connection ends
        self.name = f"worker {number}"
        self.stage = Stage.GREETING
        self.nonces = b"", nonce
        self.heard_s = now_s
        self.dealt = Dealt()
        self.credit = Credit(0, 0)
        self.standing = Standing()
        self.clock_s = 0.0
        self.left = 0  # requests that were not due when the replay ended early
        self._ticks: list[Tick] = []
        self._first_rows: int | None = None  # requests that it must have received before "go"

    def hear(self, now_s: float) -> None:
        self.heard_s = now_s

    def greet(self, hello: Hello) -> None:
        self.name = f"{hello.name[:100]} ({self.number})"
        self.nonces = hello.nonce, self.nonces[1]

    def move(self, stage: Stage, left: int = 0) -> None:
        self.stage = stage
        self.left = left

    def note_first_rows(self) -> None:
        """Note that what it has been dealt by now must come before "go"."""
        if self._first_rows is None:
            self._first_rows = self.dealt.count

    @property
    def has_first_rows(self) -> bool:
        return self._first_rows is not None and self.credit.received >= self._first_rows

    def take_credit(self, credit: Credit) -> None:
        self.credit = credit

    def take_tick(self, tick: Tick) -> list[Tick]:
        """Return the frames of a whole tick once its last one is there."""
        self._ticks.append(tick)
        if len(self._ticks) > TICK_FRAMES:
            raise FrameError(f"a tick of more than {TICK_FRAMES} frames")
        if not tick.is_last:
            return []
        self.standing = tick.standing
        self.clock_s = max(self.clock_s, tick.standing.clock_s)
        found, self._ticks = self._ticks, []
        return found

    @property
    def silent_s(self) -> float:
        """How long nothing may be heard of it."""
        if self.stage is Stage.RUNNING:
            return SILENT_S
        return GREETING_S if self.stage is Stage.GREETING and not self.is_local else JOINING_SILENT_S

    @property
    def room(self) -> int:
        return self.credit.granted - self.dealt.count

    @property
    def unaccounted(self) -> int:
        """The requests that it was dealt, and of which no tick has said the end."""
        return self.dealt.count - self.left - self.standing.finished


class ControllerState:
    """The controller's side of one replay."""

    def __init__(
        self,
        load: Load,
        plan: Iterable[Planned],
        workers: int,
        *,
        token: bytes = b"",
        lead_s: float = START_PLAN_S,
        is_all_or_nothing: bool = False,
    ) -> None:
        """Take the number of ``workers`` to wait for, and ``lead_s``, from "go" to the first start."""
        assert 1 <= workers <= MOST_WORKERS
        self.load = load
        self.figures = Figures.empty(load.planned_s)
        self.ending = "complete"
        self.failure = ""  # why the replay cannot begin
        self.is_dealing = False  # the last poll has dealt whole blocks: more may follow
        self.begin_s: float | None = None
        self.members: dict[int, Member] = {}
        self._share = replace(load, open_requests=max(1, load.open_requests // workers))
        self._workers = workers
        self._token = token
        self._lead_s = lead_s
        self._is_all_or_nothing = is_all_or_nothing
        self._dealer = Dealer(plan)
        self._is_stopped = False
        self._polled_s: float | None = None

    def prepare(self) -> None:
        """Read the plan up to its first request, which may take long, before workers are waited for."""
        self._dealer.prepare()

    def join(self, number: int, now_s: float, nonce: bytes, *, is_local: bool = False) -> list[Instruction]:
        """Take a new connection; ``number`` is the caller's, and new."""
        if sum(member.stage is Stage.GREETING for member in self.members.values()) >= STRANGERS:
            return [Close(number, "too many connections that do not prove the token")]
        self.members[number] = Member(number, now_s, nonce, is_local=is_local)
        return []

    def receive(self, number: int, frame: AnyFrame, now_s: float) -> list[Instruction]:
        """Raises FrameError for a frame that cannot come at the member's stage; the caller then closes."""
        member = self.members.get(number)
        if member is None or member.stage is Stage.LOST:
            return []
        member.hear(now_s)
        match frame, member.stage:
            case Hello(), Stage.GREETING:
                return self._greeted(member, frame)
            case Proof(), Stage.GREETING:
                return self._proved(member, frame)
            case Ping(), Stage.JOINING | Stage.READY | Stage.RUNNING:
                return [SendTo(number, Pong(frame.sent_s, now_s))]
            case Credit(), Stage.JOINING | Stage.READY | Stage.RUNNING:
                member.take_credit(frame)
                if member.stage is Stage.JOINING:
                    member.move(Stage.READY)
                return []
            case Tick(), Stage.RUNNING:
                if ticks := member.take_tick(frame):
                    add_to(self.figures, ticks)
                return []
            case Done(), Stage.JOINING | Stage.READY | Stage.RUNNING:
                return self._done(member, frame)
        raise FrameError(f"a {type(frame).__name__.lower()} of a worker that is {member.stage.name.lower()}")

    def closed(self, number: int, now_s: float) -> list[Instruction]:
        """Take the end of a connection."""
        member = self.members.get(number)
        if member is None or member.stage in (Stage.ENDED, Stage.LOST):
            return []
        if member.stage is Stage.GREETING:
            del self.members[number]
            if member.is_local:  # no other will come in its place
                self.failure = f"{member.name} was lost before the load began"
            return []
        return self._lost(member, now_s, is_dead=member.is_local)

    def interrupt(self) -> list[Instruction]:
        return self._stop("interrupted")

    def poll(self, now_s: float) -> list[Instruction]:
        """Do what is due: deal a step, send "go", find silent members, end; call often."""
        self.is_dealing = False
        found: list[Instruction] = []
        stalled_s = 0.0 if self._polled_s is None else now_s - self._polled_s
        self._polled_s = now_s
        for member in list(self.members.values()):
            if stalled_s > STALLED_S:  # nobody could be heard meanwhile
                member.hear(member.heard_s + stalled_s)
            if now_s - member.heard_s <= member.silent_s:
                continue
            if member.stage is Stage.GREETING:
                found += [*self.closed(member.number, now_s), Close(member.number, "no proof of the token")]
            elif member.stage in _ALIVE:
                found += self._lost(member, now_s, is_dead=False)
        if self._is_stopped or len(self._of(Stage.READY, Stage.RUNNING)) < (
            self._workers if self.begin_s is None else 1
        ):
            return found
        found += self._deal(now_s)
        if self.begin_s is None:
            return found + self._go(now_s)
        return found + self._finish(now_s)

    @property
    def is_over(self) -> bool:
        if self.failure:
            return True
        joined = [member for member in self.members.values() if member.stage is not Stage.GREETING]
        is_begun = self.begin_s is not None or self._is_stopped
        return is_begun and all(member.stage in (Stage.ENDED, Stage.LOST) for member in joined)

    @property
    def open_share(self) -> int:
        """Requests that each worker may have open."""
        return self._share.open_requests

    @property
    def joined(self) -> int:
        return sum(member.stage is not Stage.GREETING for member in self.members.values())

    @property
    def lost_requests(self) -> int:
        return sum(member.unaccounted for member in self.members.values())

    @property
    def planned(self) -> int:
        """The requests that were due before the end, each once."""
        return sum(member.dealt.count - member.left for member in self.members.values())

    def check(self) -> None:
        """Raise AssertionError if C1 or C3 is broken."""
        for member in self.members.values():
            assert member.dealt.count <= member.credit.granted, "C3"
            assert member.unaccounted >= 0, "C1: finished more than it had"
            if member.stage is Stage.ENDED:
                assert member.unaccounted == 0, f"C1: {member.name} forgot {member.unaccounted} requests"

    def _of(self, *stages: Stage) -> list[Member]:
        return [member for member in self.members.values() if member.stage in stages]

    def _greeted(self, member: Member, hello: Hello) -> list[Instruction]:
        if hello.version != VERSION or len(hello.nonce) != NONCE_BYTES:
            del self.members[member.number]
            return [Close(member.number, f"version {hello.version} of a worker where {VERSION} is expected")]
        member.greet(hello)
        proof = proof_of(self._token, "controller", *member.nonces)
        return [SendTo(member.number, Challenge(member.nonces[1], proof))]

    def _proved(self, member: Member, proof: Proof) -> list[Instruction]:
        wanted = proof_of(self._token, "worker", *member.nonces)
        is_wanted = self.joined < self._workers and not self._is_stopped
        if not member.nonces[0] or not is_proof(proof.proof, wanted) or not is_wanted:
            del self.members[member.number]
            return [Close(member.number, "all workers are there" if not is_wanted else "another token")]
        member.move(Stage.JOINING)
        self._dealer.add(member.number)
        return [SendTo(member.number, Plan(member.number, member.is_local, self._share))]

    def _done(self, member: Member, done: Done) -> list[Instruction]:
        if done.refusal:
            self.failure = f"{member.name} does not take the load: {done.refusal}"
        member.move(Stage.ENDED, done.left)
        return self._stop(done.ending) if done.ending != "complete" else []

    def _stop(self, ending: str) -> list[Instruction]:
        if self.ending == "complete":
            self.ending = ending
        return self._send_stop(ending)

    def _send_stop(self, why: str) -> list[Instruction]:
        self._is_stopped = True
        return [SendTo(one.number, Stop(why)) for one in self._of(*_ALIVE)]

    def _lost(self, member: Member, now_s: float, *, is_dead: bool) -> list[Instruction]:
        if self.begin_s is None:
            if not self._is_stopped:
                self.failure = self.failure or f"{member.name} was lost before the load began"
            member.move(Stage.LOST, member.dealt.count)
            return [Close(member.number, "lost")]
        last_s = now_s if is_dead else member.heard_s + TAKEOVER_S
        rows = member.dealt.take_from(last_s - self.begin_s)
        self._dealer.remove(member.number, [] if self._is_stopped else rows)
        member.move(Stage.LOST)
        found: list[Instruction] = [Close(member.number, "lost")]
        if not self._of(Stage.RUNNING):
            self.ending = "all workers lost" if self.ending == "complete" and not self._is_stopped else self.ending
        elif self._is_all_or_nothing:
            found += self._stop("a worker was lost")
        return found

    def _deal(self, now_s: float) -> list[Instruction]:
        since_s = 0.0 if self.begin_s is None else now_s - self.begin_s
        found: list[Instruction] = []
        count = 0
        room = {one.number: one.room for one in self._of(Stage.READY, Stage.RUNNING)}
        for number, rows, is_takeover in self._dealer.step(room, max(since_s, 0.0) + AHEAD_S):
            dealt = self.members[number].dealt
            dealt.add(rows)
            dealt.forget(since_s - SILENT_S)
            count += len(rows)
            found.append(SendTo(number, block_of(rows, is_takeover=is_takeover)))
        self.is_dealing = count >= BLOCK_REQUESTS
        return found

    def _go(self, now_s: float) -> list[Instruction]:
        ready = self._of(Stage.READY)
        if self._dealer.is_exhausted or self._dealer.last_start_s >= START_PLAN_S:
            for member in ready:
                member.note_first_rows()
        if not all(member.has_first_rows for member in ready):
            return []
        self.begin_s = now_s + self._lead_s
        found: list[Instruction] = []
        for member in ready:
            member.hear(now_s)
            member.move(Stage.RUNNING)
            found.append(SendTo(member.number, Go(self.begin_s)))
        return found

    def _finish(self, now_s: float) -> list[Instruction]:
        """End the plan once all its requests are due, and nothing can be taken over any more."""
        assert self.begin_s is not None
        last_s = self.begin_s + self._dealer.last_start_s
        if not self._dealer.is_exhausted or now_s <= last_s:
            return []
        if any(member.heard_s + TAKEOVER_S <= last_s for member in self._of(Stage.RUNNING)):
            return []
        return self._send_stop("complete")
