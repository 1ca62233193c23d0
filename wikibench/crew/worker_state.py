"""(pure) A worker: frames and moments in, instructions out.

    GREETING  hello is out; the challenge must prove that the controller knows the token
    WAITING   for a plan, which the shell accepts or refuses
    COMPARING clocks: PINGS pings, each after the answer to the one before
    READY     grants credit, is dealt requests
    RUNNING   sends; ends by "complete", or early
    ENDED

    may send at t  :=  t < moment at which the last answered ping was sent + UNHEARD_S

Invariants:
    W1. A worker that was stopped or cut off sends nothing due later than UNHEARD_S after the controller last heard of
        it: the permission counts from the ping's sending, so answers that waited in a buffer give none.
    W2. It has never more requests ahead than it granted.
    W3. A request counts as starved if it came after its start while the worker had no other.

Knows nothing of sockets and clocks.  The moments are of the worker's own clock, in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from wikibench.pacing import Planned
from wikibench.visits import Load

from .clocks import PING_S, UNHEARD_S, ClockComparison
from .dealing import Ahead
from .frames import (
    NONCE_BYTES,
    VERSION,
    AnyFrame,
    Block,
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
    Stop,
    is_proof,
    proof_of,
    rows_of,
)

ABANDONED_S: Final = 10.0  # without an answer of the controller, after the proof: the connection is dead


@dataclass(frozen=True, slots=True)
class Send:
    frame: AnyFrame


@dataclass(frozen=True, slots=True)
class Accept:
    """Check the target, then call ``accepted`` or ``refused``."""

    load: Load


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin to send; starts count from ``begin_s`` of the own clock."""

    begin_s: float


@dataclass(frozen=True, slots=True)
class EndEarly:
    why: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Close the connection and send no more requests."""

    why: str


Instruction = Send | Accept | Begin | EndEarly | Leave
Stage = Enum("Stage", "GREETING WAITING COMPARING READY RUNNING ENDED")


class WorkerState:
    """The worker's side of one connection, which is one replay."""

    def __init__(self, name: str, token: bytes, nonce: bytes) -> None:
        self.ahead = Ahead()
        self.stage = Stage.GREETING
        self.starved = 0
        self.is_complete = False  # the plan has ended: nothing more will come
        self.clock = ClockComparison()
        self._name = name
        self._token = token
        self._nonce = nonce
        self._may_send_until_s = float("-inf")
        self._pinged_s = float("-inf")
        self._heard_s: float | None = None
        self._credit = Credit(0, 0)
        self._begin_s: tuple[float, float] | None = None  # of the controller's clock and of the own

    def opened(self) -> list[Instruction]:
        return [Send(Hello(VERSION, self._name, self._nonce))]

    def receive(self, frame: AnyFrame, now_s: float) -> list[Instruction]:
        """Raises FrameError for a frame that cannot come at this stage."""
        self._heard_s = now_s
        match frame, self.stage:
            case Challenge(), Stage.GREETING:
                return self._challenged(frame)
            case Plan(), Stage.WAITING:
                self.clock = ClockComparison(is_same_clock=frame.is_same_clock)
                return [Accept(frame.load)]
            case Pong(), Stage.COMPARING | Stage.READY | Stage.RUNNING:
                return self._answered(frame, now_s)
            case Block(), Stage.READY | Stage.RUNNING:
                return self._dealt(frame, now_s)
            case Go(), Stage.READY:
                self.stage = Stage.RUNNING
                own_s = frame.begin_s - self.clock.offset_s
                self._begin_s = frame.begin_s, own_s
                return [Begin(own_s)]
            case Stop(), Stage.RUNNING:
                self.is_complete = self.is_complete or frame.why == "complete"
                return [] if frame.why == "complete" else [EndEarly(frame.why)]
            case Stop(), Stage.WAITING | Stage.COMPARING | Stage.READY:
                return self.ended(frame.why, len(self.ahead))
            case (Stop() | Pong() | Block(), Stage.ENDED):
                return []
        raise FrameError(f"a {type(frame).__name__.lower()} while {self.stage.name.lower()}")

    def accepted(self, now_s: float) -> list[Instruction]:
        """Begin to compare clocks: the plan's load may be sent from this machine."""
        if self.stage is not Stage.WAITING:  # it was stopped meanwhile
            return []
        self.stage = Stage.COMPARING
        return [self._ping(now_s)]

    def refused(self, why: str) -> list[Instruction]:
        self.stage = Stage.ENDED
        return [Send(Done("refused", 0, why)), Leave(why)]

    def poll(self, now_s: float) -> list[Instruction]:
        """Return the pings and credits that are due; call often."""
        if self.stage not in (Stage.COMPARING, Stage.READY, Stage.RUNNING):
            return []
        if self._heard_s is not None and now_s - self._heard_s > ABANDONED_S:
            self.stage = Stage.ENDED
            return [Leave("the controller does not answer")]
        found: list[Instruction] = []
        if now_s - self._pinged_s >= PING_S:
            found.append(self._ping(now_s))
        return [*found, *self._granted()]

    def ended(self, ending: str, left: int) -> list[Instruction]:
        """Take the end of the load, after its last tick; ``left`` requests were not due."""
        self.stage = Stage.ENDED
        return [Send(Done(ending, left))]

    def may_send(self, now_s: float) -> bool:
        return now_s < self._may_send_until_s

    def take_first(self) -> Planned:
        return self.ahead.take_first()

    def clock_error_s(self, now_s: float) -> float:
        return self.clock.uncertainty_s(now_s)

    def _challenged(self, challenge: Challenge) -> list[Instruction]:
        nonces = self._nonce, challenge.nonce
        if len(challenge.nonce) != NONCE_BYTES or not is_proof(
            challenge.proof, proof_of(self._token, "controller", *nonces)
        ):
            self.stage = Stage.ENDED
            return [Leave("the controller has another token")]
        self.stage = Stage.WAITING
        return [Send(Proof(proof_of(self._token, "worker", *nonces)))]

    def _ping(self, now_s: float) -> Instruction:
        self._pinged_s = now_s
        return Send(Ping(now_s))

    def _answered(self, pong: Pong, now_s: float) -> list[Instruction]:
        self.clock.add(pong.sent_s, pong.at_s, now_s)
        self._may_send_until_s = max(self._may_send_until_s, pong.sent_s + UNHEARD_S)
        if self.stage is not Stage.COMPARING:
            return []
        if not self.clock.is_known:
            return [self._ping(now_s)]
        self.stage = Stage.READY
        return self._granted()

    def _dealt(self, block: Block, now_s: float) -> list[Instruction]:
        dealt_s = shift_s = 0.0
        if self._begin_s is not None:
            begin_s, own_s = self._begin_s
            shift_s = begin_s - self.clock.offset_s - own_s
            if block.is_takeover or not len(self.ahead):
                dealt_s = now_s - own_s
        rows = rows_of(block, dealt_s=dealt_s, shift_s=shift_s)
        if not block.is_takeover:
            self.starved += sum(row.start_s < row.dealt_s for row in rows)
        if self.ahead.received + len(rows) > self.ahead.granted:
            raise FrameError("more requests than were granted")
        self.ahead.add(rows, is_takeover=block.is_takeover)
        return self._granted()

    def _granted(self) -> list[Instruction]:
        now = Credit(self.ahead.received, self.ahead.granted)
        if self.stage is Stage.COMPARING or now == self._credit:
            return []
        self._credit = now
        return [Send(now)]
