"""The worker process: runs trigger functions slice by slice (``threads``, ``slices``) and reports each outcome.

The store starts the process with one end of a socket pair.  When the socket closes, the process ends at once, even if
calls run: the store delivers their changes again.  The worker does not end a call that hangs, because a thread cannot
be killed: the store kills the process.

The worker leads a process group, and processes that functions start end with it.  A copy of the worker that a function
makes by ``os.fork`` answers nothing (``forked``).

The output of functions is caught per call, bounded by OUTPUT_BYTES.  The process runs at a lower priority than the
store, so that foreground requests go first, and a function that takes all memory ends this process, not the store.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import logging
import os
import signal
import site
import socket
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TextIO, cast

from columnar.client import Connection
from columnar.model.effect import Effect
from columnar.runtime.log_lines import complain
from columnar.triggers.forked import ForkedCopies
from columnar.triggers.frames import Frames, pack
from columnar.triggers.obstacles import NotLoaded
from columnar.triggers.slices import OUTPUT, WHAT, Call, Function, Run, function_of, work_of
from columnar.triggers.threads import Hand, Threads

OUTPUT_BYTES: Final = 8 * 1024
RECEIVE_BYTES: Final = 256 * 1024
NICENESS: Final = 5
OOM_SCORE: Final = 500  # added to its own, of 1,000: a machine without memory ends a worker before the store
SWITCH_S: Final = 0.0005  # a thread that needs the interpreter waits this long for each thread that computes


class _CaughtOutput(io.TextIOBase):
    """Standard output that keeps the output of each thread separate."""

    def __init__(self) -> None:
        self._of_thread = threading.local()
        self._is_used = False  # most functions print nothing

    def begin(self) -> None:
        if self._is_used:
            self._of_thread.text = ""

    def take(self) -> str:
        if not self._is_used:
            return ""
        text: str = getattr(self._of_thread, "text", "")
        self._of_thread.text = ""
        return text

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._is_used = True
        before = getattr(self._of_thread, "text", "")
        self._of_thread.text = (before + text)[:OUTPUT_BYTES]
        return len(text)


def take_levels(levels: Mapping[str, str], before: Collection[str]) -> frozenset[str]:
    """Set the levels of loggers, and take away those that loggers had ``before`` and have no more; return who has one.

    Lines go to the output of the call that logs them.  Without a level they do from a warning on, as Python has it.
    """
    if levels and not logging.root.handlers:
        logging.basicConfig(level=logging.WARNING)
    for name in set(before) - levels.keys():
        logging.getLogger(name).setLevel(logging.WARNING if name == "root" else logging.NOTSET)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    return frozenset(levels)


class Worker:
    """The worker, which is the ``Work`` of its threads."""

    def __init__(
        self, link: socket.socket, host: str, port: int, modules: frozenset[str], unix_socket: str = ""
    ) -> None:
        """``unix_socket`` is the store's private socket; if it is empty, functions connect to the port."""
        self._link = link
        self._connection_to = partial(Connection, host, port)
        if unix_socket:
            self._connection_to = partial(Connection, unix_socket=unix_socket)
        self._modules = modules
        self._functions: dict[str, Function] = {}
        self._announced: set[str] = set()  # modules of which the store knows that they are imported
        self._importing = threading.Lock()  # while it is held, no module is forgotten
        self._at_start = frozenset(sys.modules)
        self._resting: dict[int, Call] = {}  # calls between two slices; the leader takes them out
        self._lent: dict[int, Connection] = {}  # the clients of calls between two slices
        self._frames = Frames()
        self._sending = threading.Lock()
        self._output = _CaughtOutput()
        self._copies = ForkedCopies(link)
        self._levels: frozenset[str] = frozenset()  # loggers whose level the store has said

    def serve(self) -> None:
        """Run the requests of frames until the store closes the socket."""
        sys.stdout = sys.stderr = cast(TextIO, self._output)
        sys.setswitchinterval(SWITCH_S)
        self._copies.watch()
        self.send_frame("ready", 0)
        Threads(self).serve()

    # --- threads.Work ----------------------------------------------------------------------------------

    def receive(self) -> list[Call | Run] | None:
        try:
            data = self._link.recv(RECEIVE_BYTES)
        except OSError:
            return None
        if not data:
            return None
        calls: list[Call | Run] = []
        for kind, *rest in self._frames.feed(data):
            if kind == "run":
                calls += map(work_of, rest[0])
            elif kind == "check":
                threading.Thread(target=self._check, args=rest, name="trigger-check", daemon=True).start()
            elif kind == "levels":
                self._levels = take_levels(rest[0], self._levels)
            elif kind == "reload":
                threading.Thread(target=self._reload, args=rest, name="trigger-reload", daemon=True).start()
            else:
                call = self._resting.pop(rest[0])
                if kind == "drop":
                    call.drop_effects()
                calls.append(call)
        return calls

    def connect(self, user: str) -> Connection:
        return self._connection_to(user=user)

    def run(self, call: Call, hand: Hand, clock: Callable[[], float]) -> list[Any]:
        self._output.begin()
        lent = self._lent.pop(call.id, None) if self._lent else None
        spare = hand.exchange(lent) if lent is not None else None
        known = self._functions.get(call.function)
        is_announced = known is not None and known.module in self._announced
        load = known.loaded if known is not None and is_announced else partial(self._loaded, call)
        outcome = call.run(load, partial(hand.connected, call.target.owner), clock)
        if self._copies.is_copy:
            self._copies.end_copy()
        if self._copies.were_made:
            self._copies.collect()
        outcome[OUTPUT] = self._output.take()
        if call.has_next_slice:
            self._resting[call.id] = call
        if hand.connection is not None:
            self._end_connection(hand, call, outcome)
        if spare is not None and (unneeded := hand.exchange(spare)) is not None:
            unneeded.close()
        return outcome

    def _end_connection(self, hand: Hand, call: Call, outcome: list[Any]) -> None:
        """Close the connection of a call that failed; keep the connection of a call that has a next slice."""
        connection = hand.connection
        if connection is None:
            return
        if outcome[WHAT] in ("failed", "later", "named", "blocked"):
            connection.close()  # it may be in the middle of a reply
            hand.exchange(None)
        elif call.has_next_slice and self.blocks(call):
            # A different thread may run the next slice while this one runs other calls; a connection is for one thread.
            self._lent[call.id] = connection
            hand.exchange(None)

    def blocks(self, call: Call | Run) -> bool:
        function = self._functions.get(call.function)
        return function is None or function.wants_client  # importing a module may take long

    def send_frame(self, *parts: Any) -> None:
        try:
            frame = pack(*parts)
        except (TypeError, ValueError, OverflowError):
            # Text of user code may hold lone surrogates, as file names do; an effect may have been changed later.
            frame = pack(*_encodable(parts))
        with self._sending, contextlib.suppress(OSError):  # the store is gone: ``receive`` finds that out, too
            self._link.sendall(frame)

    # --- functions -------------------------------------------------------------------------------------

    def _loaded(self, call: Call, name: str) -> Function:
        """Load the function of a call that begins.  Raises NotLoaded if its module cannot be imported.

        The store is notified of a module's import before the function runs.  If the process dies or hangs before that,
        the module is the cause, and no change is blamed.
        """
        try:
            found = self._function(name)
        except BaseException as error:
            why = f"{type(error).__name__}: {error}"
            raise NotLoaded(f"its function {name} cannot be imported: {why}") from error
        if found.module not in self._announced:
            self._announced.add(found.module)
            call.note_begin_reported()
            self.send_frame("began", [call.id])
        return found

    def _function(self, name: str) -> Function:
        found = self._functions.get(name)
        if found is None:
            module, _, attribute = name.partition(":")
            if module not in self._modules:
                raise PermissionError(f"module {module} is not among --trigger-modules")
            with self._importing:
                found = self._functions[name] = self._imported(name, module, attribute)
        return found

    def _imported(self, name: str, module: str, attribute: str) -> Function:
        """Import the function.  A failed import leaves no modules, so that the next attempt reads the source again."""
        before = {*sys.modules}
        if not any(one.partition(":")[0] == module for one in self._functions):
            before.discard(module)
        try:
            call = getattr(importlib.import_module(module), attribute)
            if not callable(call):
                raise TypeError(f"{name} is no function")
            return function_of(call)._replace(module=module)
        except BaseException:
            forget(before, self._modules)
            raise

    def _reload(self, check_id: int) -> None:
        """Forget the authors' modules, so that calls that begin from now on run the source on disk."""
        with self._importing:
            forget(self._at_start, self._modules)
            self._functions.clear()
            self._announced.clear()
        self.send_frame("checked", check_id, None)

    def _check(self, check_id: int, name: str) -> None:
        """Import ``name`` and send why it cannot be a trigger, in one line, or None if it can."""
        self._output.begin()
        problem: str | None = None
        try:
            self._function(name)
        except BaseException as error:  # noqa: BLE001 - importing runs user code
            problem = f"{type(error).__name__}: {error}"
        self.send_frame("checked", check_id, problem)


def _encodable(part: Any) -> Any:
    """Return the parts so that a frame can hold them; an effect that it cannot hold becomes a text.

    The store refuses such a text as an effect, and the change fails.
    """
    if isinstance(part, str):
        return part.encode(errors="replace").decode()
    if isinstance(part, Effect):
        return _effect_or_problem(part)
    if isinstance(part, list | tuple):
        return [_encodable(one) for one in part]
    return part


def _effect_or_problem(effect: Effect) -> Any:
    try:
        pack(*effect)
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"{type(effect).__name__} that was changed after it was made: {error}"[:200]
        return problem.encode(errors="replace").decode()
    return effect


def main() -> None:
    parser = argparse.ArgumentParser(description="runs triggers; started by the store, not by hand")
    parser.add_argument("--link", type=int, required=True, help="descriptor of the socket to the store")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--socket", default="", help="path of the store's private socket")
    parser.add_argument("--modules", required=True)
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at Ctrl-C the store ends this process when it wants to
    # A service manager signals every process of a store.  SIG_IGN instead of a handler would be inherited by programs.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    os.nice(NICENESS)
    with contextlib.suppress(OSError):  # no Linux
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))
    sys.path.insert(0, os.getcwd())
    link = socket.socket(fileno=given.link)
    link.set_inheritable(False)  # a program that a trigger starts must not keep the socket open
    try:
        Worker(link, given.host, given.port, frozenset(given.modules.split(",")), given.socket).serve()
    except BaseException:  # noqa: BLE001 - the process ends, whether anybody reads why or not
        complain(traceback.format_exc())
        end_group(1)
    end_group(0)  # calls may be running; the store delivers them again


def end_group(status: int) -> None:
    """End this process, and if it leads a process group also the processes that functions have started."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(status)


_INSTALLED: Final = tuple({*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()})


# Changed source needs no restart of the process: modules are forgotten, so that the next call imports them again; calls
# that run keep the modules they have.  Forgotten are the modules of the packages that triggers may name, and every
# module that was imported after the worker's start from a ``.py`` file outside of installed packages.  All other
# modules stay as they are: they may hold what cannot be made twice.
def forgotten(loaded: Mapping[str, ModuleType], at_start: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """(pure) Return the names of the modules to forget."""
    kept, packages = frozenset(at_start), frozenset(name.partition(".")[0] for name in allowed)
    return [name for name, module in loaded.items() if name not in kept and _is_an_authors(name, module, packages)]


def _is_an_authors(name: str, module: ModuleType, packages: frozenset[str]) -> bool:
    if name.partition(".")[0] in packages:
        return True
    path = getattr(module, "__file__", None) or ""
    return path.endswith(".py") and not path.startswith(_INSTALLED)


def forget(at_start: Iterable[str], allowed: Iterable[str]) -> None:
    for name in forgotten(dict(sys.modules), at_start, allowed):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()


if __name__ == "__main__":
    main()
