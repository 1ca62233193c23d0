"""Forks in the place of a forked store's child programs: region servers of a supervisor, and trigger workers.

A new interpreter that imports a server or a worker takes 0.2 s of processor time, the fork 0.02 s.  The store calls
``subprocess.Popen`` as usual; only the step that makes the process is replaced (``fork_children``).  The child has the
arguments, descriptors, environment, group, parent and exit status of the command, and none of the parent's threads,
signal handlers, log handlers and settings of the interpreter.

A server is forked only as long as RocksDB has started no thread in the parent, since the child would wait for it: the
servers that a supervisor starts first are forks, its spare and replacements are new interpreters.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from columnar.config import AHEAD
from columnar.roles import regionserver_process
from columnar.runtime import log_lines
from columnar.runtime.faults import FAULTS
from columnar.triggers import worker

Main = Callable[[list[str]], int]
_ENGINE: Final = "rocksdb"  # how RocksDB names its threads
_SWITCH_S: Final = 0.005  # of a new interpreter, as the thresholds below
_COLLECTED: Final = (700, 10, 10)


def fork_children() -> None:
    """Fork the servers and workers that this process starts from now on."""
    execute: Callable[..., int] = subprocess._fork_exec  # type: ignore[attr-defined]

    def fork_or_execute(*given: Any) -> int:
        main = _main_of(given[0])
        return execute(*given) if main is None else _forked(main, *given[:17])

    subprocess._fork_exec = fork_or_execute  # type: ignore[attr-defined]


def _main_of(command: Sequence[Any]) -> Main | None:
    """Return the program of a command as a function if it can be a fork of this process, else None."""
    module, *arguments = command[command.index("-m") + 1 :] if "-m" in command else [""]
    if module == worker.__name__:
        return run_worker
    if module == regionserver_process.__name__ and AHEAD not in arguments and not _has_engine():
        return regionserver_process.main
    return None


def run_worker(arguments: list[str]) -> int:
    sys.argv = [worker.__file__, *arguments]
    worker.main()
    raise AssertionError("it ends the process")


def _has_engine() -> bool:
    return any(thread.read_text().startswith(_ENGINE) for thread in Path("/proc/self/task").glob("*/comm"))


def _forked(
    main: Main,
    command: Sequence[str],
    _executables: object,
    _close_all: object,
    kept: Sequence[int],
    folder: str | None,
    environment: Sequence[bytes] | None,
    stdin: int,
    _our_stdin: int,
    _our_stdout: int,
    stdout: int,
    _our_stderr: int,
    stderr: int,
    _our_failure: int,
    failure: int,
    _restore_signals: object,
    _new_session: object,
    group: int,
) -> int:
    """Fork a child; takes the parameters of ``_posixsubprocess.fork_exec`` and returns the child's process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        if group >= 0:
            os.setpgid(0, group)
        if environment is not None:
            os.environb.clear()
            os.environb.update(one.split(b"=", 1) for one in environment)  # type: ignore[misc]
        _forget_parent()
        _keep_descriptors({0: stdin, 1: stdout, 2: stderr}, {*kept} - {failure})
        if folder is not None:
            os.chdir(folder)
    except BaseException:  # noqa: BLE001 - nothing else ends the fork
        traceback.print_exc()
        os._exit(1)
    run_program(main, list(command[command.index("-m") + 2 :]))
    raise AssertionError("it ends the process")


def run_as_new(main: Main, arguments: list[str]) -> NoReturn:
    """Run the program in a process that was forked for it, and end the process."""
    _forget_parent()
    run_program(main, arguments)


def run_program(main: Main, arguments: list[str]) -> NoReturn:
    """Run the program, and end the process as an interpreter ends."""
    status: Any = 1
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = ended.code
    except BaseException:  # noqa: BLE001 - as an interpreter ends
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    os._exit(status if isinstance(status, int) else 0 if status is None else 1)


def _keep_descriptors(standard: Mapping[int, int], kept: set[int]) -> None:
    """Keep the standard descriptors and ``kept``, and close all others.

    A -1 in ``standard`` leaves that descriptor as it is.  The close of the failure's descriptor tells the parent that
    the child runs.
    """
    for number, given in standard.items():
        if given >= 0:
            os.dup2(given, number)
    for entry in os.listdir("/proc/self/fd"):
        if int(entry) not in kept | {*standard}:
            with suppress(OSError):  # of the listing itself
                os.close(int(entry))
    for number in kept:
        os.set_inheritable(number, True)
    sys.stdin = os.fdopen(0, closefd=False, encoding="utf-8")  # multiprocessing had closed it


def _forget_parent() -> None:
    """Never collect the parent's objects here, because its sockets would close descriptors of this process."""
    gc.freeze()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.disable()
    atexit._clear()
    atexit.register(logging.shutdown)
    atexit.register(log_lines.flush)
    logging.captureWarnings(False)
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)
    sys.excepthook = sys.__excepthook__
    threading.excepthook = threading.__excepthook__
    sys.unraisablehook = sys.__unraisablehook__
    sys.setswitchinterval(_SWITCH_S)
    gc.enable()
    gc.set_threshold(*_COLLECTED)
    FAULTS.forget()
