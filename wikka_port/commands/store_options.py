"""The shared part of all commands that talk to a store: their options, and their message when it does not answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

import click
from rich.console import Console
from thriftpy2.thrift import TApplicationException

from columnar.client import ClientTls
from columnar.client.errors import IllegalArgument, IOError, NotColumnar
from columnar.client.tls_options import tls_options
from columnar.errors import CallerError, HostError
from wikka_port.folder_format import NewerFolder
from wikka_port.pages import StoreUnavailable, Wiki
from wikka_port.store import NotPrepared

STORE_UNREACHABLE: Final = 2  # exit status
errors: Final = Console(stderr=True, highlight=False, soft_wrap=True)
F = TypeVar("F", bound=Callable[..., Any])


def store_options(command: F) -> F:
    """``--store``, ``--indexes`` and the options of TLS, given on as ``store``, ``indexes`` and ``tls``."""
    store = click.option(
        "--store",
        envvar="WIKKA_STORE",
        default="127.0.0.1:9090",
        show_default=True,
        metavar="HOST:PORT",
        help="Where the store is.",
    )
    indexes = click.option(
        "--indexes",
        type=click.Choice(["triggers", "application"]),
        default="triggers",
        show_default=True,
        help="Who keeps the indexes: the store's triggers, or, on a plain HBase, the wiki itself.",
    )
    return cast(F, store(indexes(tls_options(command))))


def address_of(store: str) -> tuple[str, int]:
    host, colon, port = store.rpartition(":")
    if not colon or not host or not port.isdigit():
        raise click.BadParameter(f"'{store}' is no address: write HOST:PORT, for example 127.0.0.1:9090")
    return host.strip("[]"), int(port)


def checked_tls(tls: ClientTls | None) -> ClientTls | None:
    """End the command with one line if a file of ``tls`` cannot be read."""
    try:
        if tls is not None:
            tls.context()
    except (HostError, CallerError) as error:
        _end(error.text)
    return tls


@contextmanager
def open_wiki(store: str, indexes: Any, tls: ClientTls | None = None, *, pool: int = 16) -> Iterator[Wiki]:
    """The wiki; what the store refuses or leaves unanswered ends the command with one line."""
    host, port = address_of(store)
    wiki = Wiki(host, port, pool=pool, indexes=indexes, tls=checked_tls(tls))
    try:
        wiki.folder()
        yield wiki
    except NewerFolder as newer:
        _end(str(newer))
    except NotPrepared as lacking:
        _end(str(lacking))
    except StoreUnavailable as away:
        _end(f"{away}; is it running? Start one with: wikka run")
    except NotColumnar as plain:
        _end(f"{plain}. It has no triggers: use --indexes=application")
    except TApplicationException as unknown:
        _end(f"{store} failed: {unknown.message}; look at --store and at the store's log")
    except (IOError, IllegalArgument) as refused:
        message = refused.message
        _end(message.decode(errors="replace") if isinstance(message, bytes) else str(message))
    finally:
        wiki.store.close()


def _end(message: str) -> None:
    errors.print(f"wikka: {message}", markup=False)
    raise SystemExit(STORE_UNREACHABLE)
