"""The common options of all commands that talk to a store, and their message if the store does not answer."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import click
from rich.console import Console
from thriftpy2.thrift import TApplicationException

from columnar.client import ClientTls
from columnar.client.addresses import DEFAULT_PORT, addresses_of
from columnar.client.errors import IllegalArgument, IOError, NotColumnar
from columnar.client.tls_options import tls_options
from columnar.errors import CallerError, HostError
from columnar.settings.configured import config_option
from wikka_port.commands.settings import CLIENT, WIKKA, setting
from wikka_port.folder_format import NewerFolder
from wikka_port.pages import StoreUnavailable, Wiki
from wikka_port.store import TIMEOUT_MS, NotPrepared

STORE_UNREACHABLE: Final = 2  # exit status
_SETTLE_STEP_S: Final = 5.0
json_option: Final = click.option("--json", "as_json", is_flag=True, help="For programs.")
errors: Final = Console(stderr=True, highlight=False, soft_wrap=True)


def store_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of ``store_address`` and ``--config``; the command has the settings of clients."""
    return config_option(WIKKA, CLIENT, is_client=True)(store_address(command))


def store_address(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--store``, ``--indexes`` and the options of TLS; the command gets ``store``, a StoreOptions."""

    @setting(
        "--store",
        envvar="WIKKA_STORE",
        default="127.0.0.1:9090",
        show_default=True,
        metavar="HOST:PORT",
        help="Where the store is: a server, or several with commas, of which the first that answers is used.",
    )
    @setting(
        "--indexes",
        type=click.Choice(["triggers", "application"]),
        default="triggers",
        show_default=True,
        help="Who keeps the indexes: the store's triggers, or, on a plain HBase, the wiki itself.",
    )
    @tls_options
    @functools.wraps(command)
    def with_store(store: str, indexes: Any, tls: ClientTls | None, **arguments: Any) -> Any:
        return command(store=StoreOptions(store, indexes, tls), **arguments)

    return with_store


@click.command()
@store_options
def client(store: StoreOptions) -> None:
    """Do nothing: the command stands for all commands that talk to a store."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The options that name a command's store."""

    address: str
    indexes: Any = "triggers"
    tls: ClientTls | None = None

    @property
    def place(self) -> tuple[str, int]:
        """Return host and port; several addresses are a host.  Raises click.BadParameter."""
        if "," in self.address:
            try:
                return ",".join(map(str, addresses_of(self.address))), DEFAULT_PORT
            except CallerError as error:
                raise click.BadParameter(error.text) from None
        host, colon, port = self.address.rpartition(":")
        if not colon or not host or not port.isdigit():
            raise click.BadParameter(f"'{self.address}' is no address: write HOST:PORT, for example 127.0.0.1:9090")
        return host.strip("[]"), int(port)

    def checked_tls(self) -> ClientTls | None:
        """End the command with one line if a file of ``tls`` cannot be read."""
        try:
            if self.tls is not None:
                self.tls.context()
        except (HostError, CallerError) as error:
            _end(error.text)
        return self.tls

    @contextmanager
    def open_wiki(self, *, pool: int = 2, timeout_ms: int = TIMEOUT_MS) -> Iterator[Wiki]:
        """Open the wiki; if the store refuses a call or does not answer, the command ends with one line.

        ``timeout_ms`` bounds each call.
        """
        host, port = self.place
        wiki = Wiki(host, port, pool=pool, indexes=self.indexes, tls=self.checked_tls(), timeout_ms=timeout_ms)
        try:
            wiki.folder()
            yield wiki
        except (NewerFolder, NotPrepared) as unfit:
            _end(str(unfit))
        except StoreUnavailable as away:
            _end(f"{away}; is it running? Start one with: wikka run")
        except NotColumnar as plain:
            _end(f"{plain}. It has no triggers: use --indexes=application")
        except TApplicationException as unknown:
            _end(f"{self.address} failed: {unknown.message}; look at --store and at the store's log")
        except (IOError, IllegalArgument) as refused:
            message = refused.message
            _end(message.decode(errors="replace") if isinstance(message, bytes) else str(message))
        finally:
            wiki.store.close()


def settled_after(wiki: Wiki, within_s: float) -> float | None:
    """Wait until the triggers have delivered all changes; return the seconds that took, or None if it was not in time.

    It waits in several calls, since one call must end before the connection's timeout.
    """
    begun = time.monotonic()
    while (left_s := within_s - (time.monotonic() - begun)) > 0:
        if wiki.settle("", min(left_s, _SETTLE_STEP_S)):
            return time.monotonic() - begun
    return None


@contextmanager
def progress_bar(*columns: Any, total: int | None, **shown: Any) -> Iterator[Callable[..., None]]:
    """Show a progress bar if stderr is a terminal; the yielded function updates it like ``Progress.update`` of rich."""
    if not sys.stderr.isatty():
        yield lambda **_: None
        return
    from rich.progress import Progress  # imported here, since a serving wiki never needs it

    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, **shown)
        yield lambda **given: bar.update(task, **given)


def _end(message: str) -> None:
    errors.print(f"wikka: {message}", markup=False)
    raise SystemExit(STORE_UNREACHABLE)
