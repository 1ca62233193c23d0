"""``wikka run``: a store and the wiki on it, in separate processes, started and stopped together.

    ports free? -> store ready -> tables, triggers, first pages -> wiki answers -> running -> stopping
    Ctrl-C or SIGTERM: stop the wiki first, so that its last requests are answered, then the store; exit 0
    a second signal: kill both at once, exit 130; acknowledged writes are on disk
    one of the two ends by itself: stop the other, too; exit 1

Each child is in its own session, so a Ctrl-C of the terminal reaches only this process.  On Linux the children also
stop in order if this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from columnar.runtime.child_processes import STOP_ONCE, before_exec
from columnar.runtime.log_lines import complain, say
from columnar.settings.configured import config_option
from wikka_port.commands.serving_options import as_arguments, serving_options, speak_the_language
from wikka_port.commands.settings import RUN, WIKI, WIKKA, setting
from wikka_port.commands.store_options import StoreOptions
from wikka_port.commands.user import first_admin_link
from wikka_port.first_pages import write_first_pages
from wikka_port.interwiki_file import ENVIRONMENT, BadInterwiki, load
from wikka_port.store import PREPARE_TIMEOUT_MS

# A process that ends is noticed at once; the bounds are for one that hangs.
STORE_READY_S: Final = 180.0  # and for a store with much to recover
WIKI_READY_S: Final = 180.0
STOP_S: Final = 90.0  # a store that stops bounds it by itself, by its open regions (columnar.limits.STOP_S)
_POLL_S: Final = 0.05
_KILLED: Final = 128 + signal.SIGINT


class _Stopped(BaseException):
    """A signal asks this process to end."""


class _Ended(Exception):
    """A child ended by itself, or could not start."""


@click.command()
@config_option(WIKKA, WIKI, RUN)
@setting("--data", default="data", show_default=True, metavar="DIR", help="Folder that holds everything.")
@setting("--host", default="127.0.0.1", show_default=True, help="Address of the wiki.")
@setting("--port", default=8080, show_default=True, type=click.IntRange(1, 65535), help="Port of the wiki.")
@setting("--store-port", default=9090, show_default=True, type=click.IntRange(1, 65535), help="Port of the store.")
@setting("--web-port", default=9095, show_default=True, type=click.IntRange(-1, 65535), help="Store's status page.")
@setting(
    "--servers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    metavar="N",
    help="Region servers of the store, each a process; 1: everything in one.",
)
@setting(
    "--interwiki",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Prefixes of other wikis, as in WikkaWiki's interwiki.conf; for the store's worker and the wiki.",
)
@serving_options
def run(
    data: str,
    host: str,
    port: int,
    store_port: int,
    web_port: int,
    servers: int,
    interwiki: Path | None,
    **serving: Any,
) -> None:
    """Start a store with its data in DIR and the wiki on it; Ctrl-C stops both, a second one at once.

    The secret of the forms is kept in DIR where no --secret-file is given: open forms outlive a restart.
    """
    speak_the_language(serving)
    serving["secret_file"] = serving["secret_file"] or os.path.join(data, "wiki-secret")
    if interwiki is not None:
        try:
            load(str(interwiki))
        except BadInterwiki as problem:
            raise click.BadParameter(str(problem), param_hint="--interwiki") from None
        os.environ[ENVIRONMENT] = str(interwiki.resolve())  # of the store and the wiki, which are started below
    children: list[subprocess.Popen[bytes]] = []
    _stop_on_signals(children)
    try:
        _check_port(host, port, "--port")
        _check_port("127.0.0.1", store_port, "--store-port")
        _check_port("127.0.0.1", web_port, "--web-port")
        children.append(_start(_store_command(data, store_port, web_port, servers)))
        _await_ready_line(children[0], "store", STORE_READY_S)
        store = f"127.0.0.1:{store_port}"
        with StoreOptions(store).open_wiki(pool=16, timeout_ms=PREPARE_TIMEOUT_MS) as wiki:
            wiki.prepare()
            written = write_first_pages(wiki, serving["language"])
            link = first_admin_link(wiki, serving["public_url"] or _address(host, port))
        children.append(_start(_wiki_command(store, host, port, serving)))
        _await_ready_line(children[1], "wiki", WIKI_READY_S)
        _say_where(host, port, store, web_port, data, written, link)
        _watch(children)
    except _Stopped:
        say("Stopping; Ctrl-C again stops at once.")
        _stop(children)
    except _Ended as ended:
        complain(f"wikka: {ended}")
        _stop(children)
        raise SystemExit(1) from None
    except BaseException:
        _stop(children)
        raise


def _store_command(data: str, port: int, web_port: int, servers: int) -> list[str]:
    options = ["--data", data, "--port", str(port), "--web-port", str(web_port), "--servers", str(servers)]
    fixed = ["--trigger-modules", "wikka_port.triggers", "--log-level", "warning"]
    return [sys.executable, "-m", "columnar", "standalone", *options, *fixed]


def _wiki_command(store: str, host: str, port: int, serving: Mapping[str, Any]) -> list[str]:
    where = ["--store", store, "--host", host, "--port", str(port)]
    return [sys.executable, "-m", "wikka_port", "serve", *where, *as_arguments(serving)]


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=before_exec(),
        # This process kills a child that does not end, and gives children all their settings.
        env={**os.environ, STOP_ONCE: "1", "COLUMNAR_CONFIG": os.devnull, WIKKA.variable: os.devnull},
    )


def _stop_on_signals(children: list[subprocess.Popen[bytes]]) -> None:
    interrupted = False

    def stop(number: int, _frame: object) -> None:
        nonlocal interrupted
        if interrupted:
            for child in children:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)  # with its workers
            os._exit(_KILLED)
        interrupted = True
        raise _Stopped

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


def _check_port(host: str, port: int, option: str) -> None:
    if port <= 0:
        return
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one in TIME_WAIT is free for a server
        try:
            probe.bind((host, port))
        except OSError as error:
            raise _Ended(f"cannot use port {port} of {host} ({error.strerror}); choose another with {option}") from None


def _await_ready_line(child: subprocess.Popen[bytes], what: str, timeout_s: float) -> None:
    """Wait for the line that a child prints on stdout, its only one, once it serves."""
    assert child.stdout is not None, "it was started with a pipe"
    os.set_blocking(child.stdout.fileno(), False)
    said = b""
    deadline = time.monotonic() + timeout_s
    while b"\n" not in said:
        if child.poll() is not None:
            raise _Ended(f"the {what} did not start; what it said stands above")
        if time.monotonic() > deadline:
            raise _Ended(f"the {what} was not ready after {timeout_s:.0f} s")
        said += child.stdout.read() or b""
        time.sleep(_POLL_S)


def _say_where(host: str, port: int, store: str, web_port: int, data: str, written: int, link: str | None) -> None:
    if written:
        say(f"A new wiki, with {written} pages to begin with.")
    say(f"The wiki:         {_address(host, port)}/")
    say(f"The store:        {store}" + (f", status at http://127.0.0.1:{web_port}/" if web_port > 0 else ""))
    say(f"The data is in    {os.path.abspath(data)}")
    if link:
        say(f"No administrator yet. A person who opens this address becomes one, once:\n  {link}")
    say("Ctrl-C stops both.")


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _watch(children: Sequence[subprocess.Popen[bytes]]) -> NoReturn:
    while True:
        for child, what in zip(children, ("store", "wiki"), strict=True):
            if child.poll() is not None:
                raise _Ended(f"the {what} ended by itself (status {child.returncode})")
        time.sleep(0.2)


def _stop(children: Sequence[subprocess.Popen[bytes]]) -> None:
    """Stop the children in the reverse order of their start; kill a child that does not end in time."""
    for child in reversed(children):
        if child.poll() is None:
            child.terminate()
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            complain(f"wikka: process {child.pid} did not end after {STOP_S:.0f} s: killed")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        if child.stdout is not None:
            child.stdout.close()
