"""The threads of a worker: one leads, the others run calls that block.

    leading    one thread at a time takes calls from the socket and runs them itself, one after the other, so that a
               call costs no switch of threads.  If a call runs longer than a tick, its thread stays with the call, and
               a different thread leads.
    aside      calls of functions that take a client wait for answers of the store, so each gets its own thread at once;
               so does a call of a function that blocked the leader (``note_blocking``).
    watching   while calls run, one thread checks every TICK_S: it moves the lead to a different thread if a call blocks
               the leader, and notifies the store which calls have begun, and that the worker is alive

Invariants, under ``_mutex``:
    I1. At most one thread leads.  Only the leader sends the outcomes in ``_out``; the next leader takes them over.
    I2. A trigger has at most ``side_by_side`` calls under way, including calls between two slices.
    I3. There are at most PLACES + 1 threads: at most PLACES calls of the store are unanswered at a time.

Knows nothing of functions and frames: the worker provides ``run`` and ``send_frame``.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable
from time import perf_counter, sleep, thread_time
from typing import Any, Final, Protocol

from columnar.client import Connection
from columnar.triggers.slices import CHECKPOINT, CPU_US, DONE, EFFECTS, OUTPUT, USED_US, WHAT, Call, Run

TICK_S: Final = 0.002
HEARTBEAT_S: Final = 0.5  # a worker that has calls sends a frame to the store at least this often
GATHERED: Final = 64  # outcomes that fill a frame
GATHERED_BYTES: Final = 256 * 1024  # of effects that fill a frame
GATHER_S: Final = 0.001  # an outcome waits this long for further ones
_LEAD: Final = object()
_END: Final = object()


class Hand:
    """State of one thread: its connection to the store."""

    def __init__(self, connect: Callable[[str], Connection]) -> None:
        """``connect`` makes a connection that acts as a user, or for "" as the store itself."""
        self.connection: Connection | None = None  # made when a function first wants a client
        self._connect = connect

    def connected(self, owner: str) -> Connection:
        """Return the connection, which acts as the owner of the trigger that is called."""
        connection = self.connection
        if connection is not None and connection.user != owner:
            connection.close()
            connection = self.connection = None
        if connection is None:
            connection = self.connection = self._connect(owner)
        return connection

    def exchange(self, connection: Connection | None) -> Connection | None:
        """Set the thread's connection, or None; return the previous one."""
        before, self.connection = self.connection, connection
        return before


class Work(Protocol):
    """The worker, as its threads see it."""

    def receive(self) -> Iterable[Call | Run] | None:
        """Block until frames come; return the calls in these frames, or None if the store has closed the socket."""

    def run(self, call: Call, hand: Hand, clock: Callable[[], float]) -> list[Any]:
        """Run one slice of the call; return its outcome.  ``clock`` is as for ``Call.run``."""

    def connect(self, user: str) -> Connection:
        """Make a connection to the store that acts as the user, or for "" as the store itself."""

    def blocks(self, call: Call | Run) -> bool:
        """Return whether the call's function takes a client, or is not imported yet."""

    def send_frame(self, *parts: Any) -> None:
        """Send a frame.  Thread-safe."""


class Threads:
    def __init__(self, work: Work) -> None:
        self._work = work
        self._mutex = threading.Lock()
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()  # for threads without one: a call, or the lead
        self._count = self._idle = 0
        self._leader = 0  # ident of the thread; 0: the lead waits for a thread
        self._current: Call | None = None  # the call that the leader runs
        self._current_run: Run | None = None  # the run that has this call's change
        self._runs = 0  # slices that leaders have begun
        self._aside: set[Call] = set()  # calls that other threads run
        self._ready: deque[Call | Run] = deque()  # owned by the leader
        self._in_flight: dict[str, int] = {}  # calls under way of each trigger
        self._waiting: dict[str, deque[Call | Run]] = {}  # by trigger, calls that would exceed ``side_by_side``
        self._blocking_functions = BlockingFunctions()  # under ``_mutex``
        self._out: list[Any] = []
        self._group: list[Any] | None = None  # the last of ``_out``, if more changes of a run may join it
        self._out_count = 0  # changes
        self._out_since_s = 0.0
        self._out_bytes = 0  # of effects
        self._is_busy = False
        self._busy = threading.Event()
        self._ended = threading.Event()
        self._last_report_s = 0.0

    def serve(self) -> None:
        """Run calls until the store has closed the socket; calls may still run at the return."""
        threading.Thread(target=self._watch, name="trigger-watch", daemon=True).start()
        self._hire(_LEAD)
        self._ended.wait()
        self._busy.set()
        for _ in range(self._count):
            self._jobs.put(_END)

    # --- any thread ----------------------------------------------------------------------------------

    def _hire(self, job: Any) -> None:
        """Give the job to an idle thread, or to a new one."""
        with self._mutex:
            if self._idle:
                self._idle -= 1  # a thread is reserved for the job, whichever takes it
            else:
                self._count += 1
                threading.Thread(target=self._life, name=f"trigger-{self._count}", daemon=True).start()
        self._jobs.put(job)

    def _life(self) -> None:
        """Run the thread.  An exception that user code did not raise ends the process; the store starts a new one."""
        try:
            self._live()
        except BaseException:
            self._ended.set()
            raise

    def _live(self) -> None:
        hand = Hand(self._work.connect)
        while True:
            job = self._jobs.get()
            if job is _END:
                return
            if job is _LEAD:
                self._lead(hand)
            else:
                self._run_aside(job, hand)
            with self._mutex:
                self._idle += 1

    def _run_aside(self, work: Call | Run | None, hand: Hand) -> None:
        """Run a call, and then one after the other the calls that waited for its place (I2)."""
        while work is not None:
            with self._mutex:
                call = self._first_of(work)
                self._aside.add(call)
                self._wake()
            outcome = self._work.run(call, hand, thread_time)
            with self._mutex:
                self._aside.discard(call)
                if outcome[USED_US] < TICK_S * 1e6:
                    self._blocking_functions.was_quick(call.function)
                work = self._ended_call(call)
            self._work.send_frame("did", [outcome])

    def _first_of(self, work: Call | Run) -> Call:
        """Return the call itself, or the next call of a run, whose later changes wait."""
        if isinstance(work, Call):
            return work
        call = work.next_call()
        if not work.is_over:
            self._waiting.setdefault(work.trigger, deque()).appendleft(work)
        return call

    def _ended_call(self, call: Call) -> Call | Run | None:
        """Return a waiting call of the same trigger, which takes the ended call's place (I2); None if none waits."""
        if call.has_next_slice:
            return None
        waiting = self._waiting.get(call.trigger)
        if waiting:
            return waiting.popleft()
        self._in_flight[call.trigger] -= 1
        return None

    def _wake(self) -> None:
        if not self._is_busy:
            self._is_busy = True
            self._busy.set()

    # --- the leader ----------------------------------------------------------------------------------

    def _lead(self, hand: Hand) -> None:
        me = threading.get_ident()
        with self._mutex:
            self._leader = me
        while True:
            call = self._next()
            if call is None:
                self._flush()
                if not self._take_in():
                    return
            elif not call.has_next_slice and (self._work.blocks(call) or self._runs_aside(call)):
                self._hire_for(call)
            elif not (self._run_changes(call, hand, me) if isinstance(call, Run) else self._run(call, hand, me)):
                return

    def _hire_for(self, call: Call | Run) -> None:
        """Run the call in a thread of its own; of a run only the first change: the others become waiting calls."""
        if isinstance(call, Run):
            first, *others = call.calls()
            self._ready.extendleft(reversed(others))
            call = first
        self._hire(call)

    def _runs_aside(self, call: Call | Run) -> bool:
        if call.function not in self._blocking_functions:
            return False
        with self._mutex:
            return self._blocking_functions.runs_aside(call.function, perf_counter())

    def _take_in(self) -> bool:
        """Wait for more calls; return False if there will be none."""
        calls = None
        try:
            calls = self._work.receive()
        finally:  # without a leader the process would live on and answer nothing
            if calls is None:
                self._ended.set()
        self._ready.extend(calls or ())
        return calls is not None

    def _next(self) -> Call | Run | None:
        """Return the next call that may run (I2); a call that may not run yet waits for its trigger's calls."""
        while self._ready:
            call = self._ready.popleft()
            if call.has_next_slice or call.is_admitted:
                return call
            with self._mutex:
                under_way = self._in_flight.get(call.trigger, 0)
                if under_way < call.target.side_by_side:
                    self._in_flight[call.trigger] = under_way + 1
                    return call
                self._waiting.setdefault(call.trigger, deque()).append(call)
        return None

    def _run(self, call: Call, hand: Hand, me: int) -> bool:
        """Run a slice of the call as the leader; return whether this thread still leads."""
        self._begin(call, None)
        outcome = self._work.run(call, hand, thread_time)
        with self._mutex:
            leads = self._leader == me
            is_due = leads and self._note_outcome(call, outcome)
            if not leads:
                self._aside.discard(call)
            freed = self._ended_call(call)
            if freed is not None and leads:
                freed.admit()
                self._ready.appendleft(freed)
        if leads:
            if is_due:
                self._flush()
            return True
        self._work.send_frame("did", [outcome])
        self._run_aside(freed, hand)
        return False

    def _run_changes(self, run: Run, hand: Hand, me: int) -> bool:
        """Run one change of a run after the other as the leader; return whether this thread still leads.

        A change that takes longer than a tick keeps this thread; a change with a further slice keeps its place among
        the calls under way.  In both cases the rest of the run is admitted as if it came now.
        """
        clock = _RunClock()
        call: Call | None = None
        while True:
            if call is None:
                call = run.next_call()
                self._begin(call, run)
            outcome = self._work.run(call, hand, _no_clock)
            with self._mutex:
                leads = self._leader == me
                is_last = run.is_over or call.has_next_slice or not leads
                outcome[CPU_US] = clock.computed_us(is_last or outcome[WHAT] != DONE)
                is_due = leads and self._note_outcome(call, outcome, is_of_run=True)
                following = None
                if leads and not is_last and not is_due:  # otherwise the next change would wait for the socket
                    following = run.next_call()
                    self._current, self._current_run = following, run
                    self._runs += 1
                freed = self._end_run(call, run, leads=leads) if is_last else None
            if not leads:
                self._work.send_frame("did", [outcome])
                self._run_aside(freed, hand)
                return False
            if is_due:
                self._flush()
            if is_last:
                return True
            call = following

    def _end_run(self, call: Call, run: Run, *, leads: bool) -> Call | Run | None:
        """End the run in this thread after its last change there, ``call``; return a call that waited for its place."""
        freed = self._ended_call(call)
        if not leads:
            self._aside.discard(call)
            return freed
        self._group = None
        if freed is not None:
            freed.admit()
            self._ready.appendleft(freed)
        if call.has_next_slice and not run.is_over:
            run.readmit()
            self._ready.append(run)
        return freed

    def _begin(self, call: Call, run: Run | None) -> None:
        with self._mutex:
            self._current, self._current_run = call, run
            self._runs += 1
            self._wake()

    def _note_outcome(self, call: Call, outcome: list[Any], *, is_of_run: bool = False) -> bool:
        """Note the outcome of a slice that the leader has run; return whether the outcomes are to be sent now.

        Successive changes of a run that are done are one outcome.
        """
        self._current = self._current_run = None
        is_plain = is_of_run and outcome[WHAT] == DONE and not outcome[OUTPUT] and outcome[CHECKPOINT] is None
        now_s = perf_counter()
        if not self._out:
            self._out_since_s = now_s
        if not is_plain:
            self._group = None
            self._out.append(outcome)
        elif self._group is None or self._group[0] + len(self._group[1]) != call.id:
            self._group = [outcome[0], [outcome[EFFECTS]], outcome[USED_US], outcome[CPU_US]]
            self._out.append(self._group)
        else:
            self._group[1].append(outcome[EFFECTS])
            self._group[2] += outcome[USED_US]
            self._group[3] += outcome[CPU_US]
        if not is_of_run:
            self._group = None
        self._out_count += 1
        self._out_bytes += call.size_bytes
        if call.function in self._blocking_functions:
            self._tried(call.function, outcome)
        is_much = self._out_count >= GATHERED or self._out_bytes >= GATHERED_BYTES
        return is_much or now_s - self._out_since_s >= GATHER_S

    def _tried(self, function: str, outcome: list[Any]) -> None:
        if outcome[USED_US] < TICK_S * 1e6:
            self._blocking_functions.was_quick(function)
        else:
            self._blocking_functions.note_blocking(function, perf_counter())

    def _flush(self) -> None:
        with self._mutex:
            out = self._take_out()
            self._last_report_s = perf_counter()
        if out:
            self._work.send_frame("did", out)

    def _take_out(self) -> list[Any]:
        out, self._out, self._out_bytes, self._out_count, self._group = self._out, [], 0, 0, None
        return out

    # --- the watcher ---------------------------------------------------------------------------------

    def _watch(self) -> None:
        seen = 0
        try:
            while not self._ended.is_set():
                self._busy.wait()
                sleep(TICK_S)
                seen = self._check_leader(seen)
        finally:  # without it the store would take the worker for silent
            self._ended.set()

    def _check_leader(self, seen: int) -> int:
        """Check once.  ``seen`` is the leader's slice at the last check, by number; returns that of now, 0 if none."""
        now_s, out = perf_counter(), list[Any]()
        with self._mutex:
            current, running = self._current, self._runs
            is_stuck = current is not None and running == seen
            if is_stuck and current is not None:
                if self._current_run is not None and not self._current_run.is_over:
                    self._current_run.readmit()
                    self._ready.appendleft(self._current_run)
                self._leader, self._current, self._current_run = 0, None, None
                self._aside.add(current)
                self._blocking_functions.note_blocking(current.function, now_s)
                out = self._take_out()
            late = [
                one
                for one in self._aside
                if one.begun_s and not one.is_begin_reported and now_s - one.begun_s >= TICK_S
            ]
            for one in late:
                one.note_begin_reported()
            if self._current is None and not self._aside:
                self._is_busy = False
                self._busy.clear()
            is_due = self._is_busy and now_s - self._last_report_s >= HEARTBEAT_S
            if out or late or is_due:
                self._last_report_s = now_s
        if out:
            self._work.send_frame("did", out)
        if late:
            self._work.send_frame("began", [one.id for one in late])
        elif is_due and not out:
            self._work.send_frame("alive", 0)
        if is_stuck:
            self._hire(_LEAD)
        return 0 if is_stuck or current is None else running


MEASURED_S: Final = 0.0005  # between measurements of a run's processor time: reading the clock takes 0.4 us


def _no_clock() -> float:
    return 0.0


class _RunClock:
    """The processor time of a run's changes in one thread, measured for several changes together."""

    __slots__ = ("_computed_s", "_measured_s")

    def __init__(self) -> None:
        self._measured_s = perf_counter()
        self._computed_s = thread_time()

    def computed_us(self, is_wanted: bool) -> int:
        """Return the microseconds since the last measurement; 0 unless ``is_wanted`` or MEASURED_S have passed."""
        now_s = perf_counter()
        if not is_wanted and now_s - self._measured_s < MEASURED_S:
            return 0
        before_s, self._computed_s = self._computed_s, thread_time()
        self._measured_s = now_s
        return int((self._computed_s - before_s) * 1e6)


TRIAL_S: Final = 0.1
LONGEST_S: Final = 10.0
_NEVER: Final = float("inf")


class BlockingFunctions:
    """Functions that blocked the leading thread, and therefore run in threads of their own for now.

        quick --blocks--> aside for TRIAL_S --time--> on trial, one call in the leader --quick--> quick
                            ^                            |
                            +-- blocks: twice as long ---+

    A long call is no proof that its function blocks: next to calls that compute, each call waits for the interpreter.
    Functions that compute delay each other when they run aside, so all of their calls look long.  Therefore a function
    is tried in the leader from time to time, and one quick call there ends its time aside.
    """

    def __init__(self) -> None:
        self._aside: dict[str, list[float]] = {}  # function: time of its next trial, pause before that trial

    def __contains__(self, function: str) -> bool:
        return function in self._aside

    def note_blocking(self, function: str, now_s: float) -> None:
        """Have the function's calls run aside, because one of them blocked."""
        entry = self._aside.get(function)
        pause_s = TRIAL_S if entry is None else min(LONGEST_S, 2 * entry[1])
        self._aside[function] = [now_s + pause_s, pause_s]

    def runs_aside(self, function: str, now_s: float) -> bool:
        """Return whether the function's next call runs aside; False also if the call is a trial, which begins now."""
        entry = self._aside.get(function)
        if entry is None or now_s >= entry[0]:
            if entry is not None:
                entry[0] = _NEVER  # until the trial is over: the function's other calls run aside meanwhile
            return False
        return True

    def was_quick(self, function: str) -> None:
        self._aside.pop(function, None)
