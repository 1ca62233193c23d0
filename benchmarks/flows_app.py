"""The application of the ETH experiment: a process that sends tweets and notes when each was due and acknowledged.

An epoll loop does all the work.  In open loop tweets arrive independently of the answers, and a response counts from
when the tweet was due; in closed loop each connection takes the next tweet when its last one is acknowledged.  A tweet
whose connection broke, or that was refused, is sent again until it is acknowledged, as the paper's application does.

    Load in, then "begun" and "all answered" out; probes and samples continue until "end" comes in; then Sent out.

``Prober`` reads some tweets after their acknowledgement.  It notes whether the author's own timeline has the tweet at
once, and when the last follower's timeline has it.  The celebrity's tweets are all probed, poison is not.
"""

from __future__ import annotations

import heapq
import os
import select
import time
from array import array
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection as Pipe
from random import Random
from typing import Final

from benchmarks.flows_crew import Crew, Line, Poller
from benchmarks.flows_plan import Load, Marked, Probes, Sent, Tweets, graph_of, last_fan, tweet_id, user_key
from benchmarks.flows_queue import QueueLink, push
from benchmarks.flows_steps import (
    Steps,
    StepsOf,
    Tweet,
    batched,
    get_in,
    get_own,
    is_there,
    one_by_one,
    own_only,
)
from columnar.bench.address import Endpoint, EndpointFailed
from columnar.bench.faults import failed
from gauge.arrivals import Arrivals, poisson

STEPS: Final[dict[str, StepsOf]] = {
    "sync": one_by_one,
    "sync-batched": batched,
    "external": own_only,
    "integrated": own_only,
}
MOST_TWEETS: Final = 1_000_000  # of one load in closed loop
AHEAD_NS: Final = 20_000_000  # the start lies so far ahead, and for each tweet so much, as the schedule takes to make
AHEAD_EACH_NS: Final = 200
SAMPLE_NS: Final = 50_000_000
PROBE_NS: Final = 20_000_000  # between the beginnings of two probes, at least
PROBED_FOLLOWERS: Final = 1_000  # authors with more are not probed: to list their followers would block the loop
PROBE_RETRY_NS: Final = 1_000_000  # least time between two reads of a probe; a tenth of its wait if that is longer
PROBE_RETRY_MAX_NS: Final = 50_000_000
LAST_PROBES_NS: Final = 300_000_000  # after the end of a load, for probes whose next read is not due yet
BEGUN: Final = "begun"
ALL_ANSWERED: Final = "all answered"
END: Final = "end"


def serve(pipe: Pipe) -> None:
    """Run the process: carry out loads until the other end of the pipe closes."""
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            load: Load = pipe.recv()
            try:
                pipe.send(run(load, pipe))
            except (OSError, EndpointFailed) as error:
                pipe.send(failed(load.endpoint, error))


def run(load: Load, pipe: Pipe) -> Sent:
    """Carry out one load.  Raises EndpointFailed or OSError."""
    with select.epoll() as epoll:
        application = Application(Poller(epoll), load, pipe)
        try:
            return application.run()
        finally:
            application.close()


class Application:
    def __init__(self, poller: Poller, load: Load, pipe: Pipe) -> None:
        self._poller = poller
        self._load = load
        self._pipe = pipe
        self._tweets = Tweets(graph_of(load.profile), load.seed)
        self._crew = Crew(poller, load.endpoint, STEPS[load.variant], self._part_done)
        self._link = QueueLink(poller, load.queue) if load.queue else None
        self._prober = Prober(poller, load.endpoint, user_key(self._tweets.graph.celebrity))
        self._job_of: dict[Line, int] = {}
        self._missing_parts: dict[Line, int] = {}  # of the tweet under way: the store's answer, the queue's
        self._acknowledged = array("q")
        self._begun = array("q")
        self._samples: list[tuple[int, int]] = []
        self._sample_ns = 0
        self._is_over = False  # answers that come now are ignored
        self._is_stop_requested = False

    def run(self) -> Sent:
        load, clock = self._load, time.perf_counter_ns
        lines = self._crew.join(load.connections)
        self._prober.join()
        is_open = load.phases[0].rate is not None
        offsets, marked = load.arrivals(arrivals_of(load)) if is_open else (array("q"), Marked())
        self._tweets = replace(self._tweets, marked=marked)
        if marked.celebrity:
            last_fan(load.profile)  # found now, as it takes long
        start = clock() + AHEAD_NS + len(offsets) * AHEAD_EACH_NS * is_open
        due = array("q", (start + offset for offset in offsets)) if is_open else array("q", [start]) * MOST_TWEETS
        self._arrivals, cpu = Arrivals(due, lines, start), time.process_time()
        self._pipe.send(BEGUN)
        until = start + int(sum(phase.seconds for phase in load.phases) * 1e9)
        self._drive_until(until)
        if not is_open:
            self._arrivals.stop()
        self._drive_until(until + int(load.answer_timeout_s * 1e9))
        end = clock()
        due = array("q", (start + offset for offset in offsets[: len(self._begun)])) if is_open else self._begun
        self._arrivals.give_up(end)
        self._is_over = True
        cpu_s = time.process_time() - cpu
        self._pipe.send(ALL_ANSWERED)
        self._probe_on()
        links: list[Crew | QueueLink] = [self._crew, *([self._link] if self._link else [])]
        return Sent(
            load.first,
            start,
            due,
            self._acknowledged,
            end,
            self._samples,
            self._prober.outcome(),
            self._crew.refusals,
            sum(link.breaks for link in links),
            Counter(late // 1_000 for late in self._arrivals.late_ns) if is_open else Counter(),
            sum(link.sent_bytes + link.received_bytes for link in links),
            cpu_s,
            marked,
        )

    def close(self) -> None:
        self._crew.close()
        self._prober.close()
        if self._link is not None:
            self._link.close()

    def _drive_until(self, until_ns: int) -> None:
        """Send due tweets and take answers until ``until_ns``, or until every tweet is answered."""
        clock = time.perf_counter_ns
        while (now := clock()) < until_ns and not self._arrivals.done():
            while (line := self._arrivals.begin(now)) is not None:
                self._begin(line, now)
                now = clock()
            wait = self._arrivals.wait_ns(now)
            self._run_iteration(now, until_ns if wait is None else min(until_ns, now + wait))

    def _probe_on(self) -> None:
        self._poller.watch(self._pipe.fileno(), self._receive_stop)
        while not self._is_stop_requested:
            now = time.perf_counter_ns()
            self._run_iteration(now, now + SAMPLE_NS)
        self._poller.forget(self._pipe.fileno())
        until = time.perf_counter_ns() + LAST_PROBES_NS
        while self._prober.waiting and (now := time.perf_counter_ns()) < until:
            self._run_iteration(now, until)

    def _receive_stop(self, _event: int) -> None:
        self._is_stop_requested = self._pipe.recv() == END

    def _run_iteration(self, now: int, until_ns: int) -> None:
        """Run one iteration of the loop."""
        self._crew.reconnect_due(now)
        wait = min(until_ns - now, self._crew.wait_ns(now), self._prober.begin_due_probe(now))
        if self._link is not None:
            self._link.reconnect_due(now)
            self._link.flush()
        if now >= self._sample_ns:
            self._sample_ns = now + SAMPLE_NS
            self._samples.append((now, length_of(self._load.executions)))
        self._poller.wait(wait)

    def _begin(self, line: Line, now: int) -> None:
        job = len(self._begun)
        self._begun.append(now)
        self._acknowledged.append(0)
        tweet = self._tweet(job)
        self._job_of[line] = job
        self._missing_parts[line] = 1
        if self._link is not None:
            self._missing_parts[line] = 2
            self._link.enqueue_command(push(tweet), partial(self._pushed, line))
        self._crew.begin(line, job, tweet)

    def _tweet(self, job: int) -> Tweet:
        number = self._load.first + job
        return Tweet(user_key(self._tweets.author(number)), tweet_id(number), self._tweets.text(number))

    def _pushed(self, line: Line, _entry: object) -> None:
        self._part_done(line)

    def _part_done(self, line: Line) -> None:
        self._missing_parts[line] -= 1
        if self._missing_parts[line] or self._is_over:
            return
        now, job = time.perf_counter_ns(), self._job_of[line]
        self._acknowledged[job] = now
        self._offer_probe(job, now)
        if self._arrivals.answered(line, now):
            self._begin(line, now)

    def _offer_probe(self, job: int, now: int) -> None:
        number = self._load.first + job
        if number in self._tweets.marked.celebrity:
            self._prober.begin(self._tweet(job), last_fan(self._load.profile), now)
            return
        if number in self._tweets.marked.poison or not self._prober.has_time(now):
            return
        author = self._tweets.author(number)
        if 0 < self._tweets.graph.degree(author) <= PROBED_FOLLOWERS:
            last = max(map(user_key, self._tweets.graph.followers(author)))
            self._prober.begin(self._tweet(job), last, now)


def arrivals_of(load: Load) -> array[int]:
    """Return the times at which tweets are due in all phases, in nanoseconds from the start."""
    rng, offsets, begin = Random(load.seed << 32 | load.first), array("q"), 0.0
    for phase in load.phases:
        assert phase.rate is not None, "phases of one load are all of open loop"
        offsets.extend(int(begin * 1e9) + offset for offset in poisson(rng, phase.rate, phase.seconds))
        begin += phase.seconds
    return offsets


def length_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0  # nothing was executed yet


class Prober:
    """A reader of acknowledged tweets, with a connection of its own."""

    def __init__(self, poller: Poller, endpoint: Endpoint, celebrity: bytes) -> None:
        """Take the celebrity's row key."""
        self._celebrity = celebrity
        self._crew = Crew(poller, endpoint, self._probe_steps, self._on_probe_done)
        self._line: Line | None = None
        self._pending: list[tuple[int, int, Tweet, bytes]] = []  # (when, acknowledged, tweet, follower), a heap
        self._in_flight: tuple[int, int, Tweet, bytes] | None = None
        self._is_there = False
        self._next_ns = 0
        self._propagated: list[tuple[int, int]] = []
        self._completed: dict[int, int] = {}
        self._session_reads = self._session_misses = 0

    def outcome(self) -> Probes:
        return Probes(self._propagated, self._completed, self.waiting, self._session_reads, self._session_misses)

    def join(self) -> None:
        (self._line,) = self._crew.join(1)

    def close(self) -> None:
        self._crew.close()

    @property
    def waiting(self) -> int:
        """The number of probes whose tweet has not come to the last follower."""
        return len(self._pending) + (self._in_flight is not None)

    def has_time(self, now: int) -> bool:
        return now >= self._next_ns

    def begin(self, tweet: Tweet, follower: bytes, now: int) -> None:
        self._next_ns = now + PROBE_NS
        heapq.heappush(self._pending, (0, now, tweet, follower))  # 0: the session's read comes first

    def begin_due_probe(self, now: int) -> int:
        """Begin the next probe if it is due; return the nanoseconds until the next is due."""
        self._crew.reconnect_due(now)
        if self._line is None or self._in_flight is not None or not self._pending:
            return self._crew.wait_ns(now)
        if self._pending[0][0] > now:
            return self._pending[0][0] - now
        self._in_flight = heapq.heappop(self._pending)
        self._crew.begin(self._line, 0, self._in_flight[2])
        return self._crew.wait_ns(now)

    def _probe_steps(self, tweet: Tweet) -> Steps:
        assert self._in_flight is not None, "a look is at something"
        when, _, _, follower = self._in_flight
        self._is_there = is_there((yield get_own(tweet) if when == 0 else get_in(follower, tweet)))

    def _on_probe_done(self, _line: Line) -> None:
        assert self._in_flight is not None, "a look is at something"
        (when, acknowledged, tweet, follower), now = self._in_flight, time.perf_counter_ns()
        self._in_flight = None
        if when == 0:
            self._session_reads += 1
            self._session_misses += not self._is_there
        elif self._is_there:
            if tweet.author == self._celebrity:
                self._completed[int(tweet.id)] = now
            else:
                self._propagated.append((acknowledged, now - acknowledged))
            return
        pause = min(PROBE_RETRY_MAX_NS, max(PROBE_RETRY_NS, (now - acknowledged) // 10))
        heapq.heappush(self._pending, (now if when == 0 else now + pause, acknowledged, tweet, follower))
