"""Options common to ``wikka serve`` and ``wikka run``: those of serving and of accounts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from wikka_port.accounts.factory import Accounts, make_accounts
from wikka_port.accounts.rows import Rows
from wikka_port.accounts.tables import ADDRESS, SERVED_ROW, SITE
from wikka_port.commands.settings import setting
from wikka_port.config import FileConfig, MailConfig, SignOnConfig, WikiConfig
from wikka_port.edit_buckets import EditBuckets
from wikka_port.files.content_types import ALL, BY_ENDING, DEFAULT_ENDINGS
from wikka_port.files.picture_sources import HOSTS_MAX, checked_host
from wikka_port.hosts import checked_name
from wikka_port.markup.code_blocks import checked_renderer
from wikka_port.markup.formats import FORMATS
from wikka_port.names import normalise
from wikka_port.pages import Wiki
from wikka_port.site_settings import CAMEL_CASES, REGISTRATIONS, USUAL
from wikka_port.texts import speak_as_wiki
from wikka_port.texts.catalogue import Languages, UnreadableTexts
from wikka_port.urls import site_path

_DEFAULTS: Final = WikiConfig()
METRICS_HOST: Final = "127.0.0.1"
F = TypeVar("F", bound=Callable[..., Any])
_WINS: Final = "it wins over the setting of the site"


def _setting(name: str, **given: Any) -> Callable[[F], F]:
    """Return an option for a field of WikiConfig; its help shows the field's default."""
    option = f"--{name.replace('_', '-')}"
    return setting(option, default=getattr(_DEFAULTS, name), show_default=True, **given)


public_url_option = setting(
    "--public-url",
    envvar="WIKKA_PUBLIC_URL",
    default="",
    metavar="URL",
    help="Where people reach the wiki, for links  [default: where it listens]",
)

ACCOUNT_OPTIONS: Final = (
    setting(
        "--registration",
        type=click.Choice(REGISTRATIONS),
        help=f"Who may make an account  [default: {USUAL.registration}]; {_WINS}",
    ),
    _setting("user_names", type=click.Choice(["any", "wikiwords"]), help="What a new account may be called."),
    public_url_option,
    setting("--smtp", metavar="HOST:PORT", help="Server that takes the wiki's mail; without it none is sent."),
    setting(
        "--smtp-tls",
        default="starttls",
        show_default=True,
        type=click.Choice(["starttls", "tls", "none"]),
        help="How the way to it is hidden.",
    ),
    setting("--smtp-user", metavar="NAME", help="Name to sign in there with."),
    setting(
        "--smtp-password-file",
        type=click.Path(exists=True, dir_okay=False),
        help="File whose first line is the password for it.",
    ),
    setting("--mail-from", metavar="ADDRESS", help="Sender of the wiki's mail."),
    setting("--sign-on-header", metavar="NAME", help="Header in which a proxy names who is signed in."),
    setting(
        "--sign-on-from",
        multiple=True,
        metavar="ADDRESS",
        help="Address of such a proxy; repeatable  [default: 127.0.0.1 and ::1]",
    ),
)

_HOST_AND_PORT: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?")
FILE_OPTIONS: Final = (
    setting(
        "--file-bytes-max",
        default=_DEFAULTS.files.bytes_max,
        show_default=True,
        type=click.IntRange(1),
        help="The largest file of a page.",
    ),
    setting(
        "--file-types",
        default="default",
        show_default=True,
        metavar="ENDINGS",
        callback=lambda _context, _option, given: _endings(given),
        help="Types of files that are taken: png,jpg,pdf; default; default,heic; or all.",
    ),
    setting(
        "--files-page",
        default=_DEFAULTS.files.shared_page,
        show_default=True,
        metavar="NAME",
        help="The page whose files all pages can name; an empty NAME: none.",
    ),
    setting(
        "--files-url",
        default="",
        metavar="URL",
        callback=lambda _context, _option, given: _checked_origin(given),
        help="A second origin of this wiki, as https://files.example, for files that everybody may read.",
    ),
    setting(
        "--foreign-pictures",
        type=click.Choice(["none", "listed", "all"]),
        help="Pictures of other sites in pages, which tell these sites who reads; others are links  "
        "[default: none; all for a folder from before files]",
    ),
    setting(
        "--picture-host",
        multiple=True,
        metavar="HOST",
        callback=lambda _context, _option, given: _checked_picture_hosts(given),
        help="Host for --foreign-pictures listed, '*.photos.example' for all below it; repeatable.",
    ),
    setting(
        "--renderer",
        multiple=True,
        metavar="LANGUAGE=ADDRESS",
        callback=lambda _context, _option, given: _checked_renderers(given),
        help="Draws code of a language, as mermaid=https://kroki.example/mermaid/svg/{code}; repeatable.",
    ),
)


def taken_files(given: dict[str, Any]) -> FileConfig:
    """Remove the values of FILE_OPTIONS from ``given``, and return them."""
    hosts: tuple[str, ...] = given.pop("picture_host")
    kind, shared_page = given.pop("foreign_pictures"), given.pop("files_page")
    if bool(hosts) != (kind == "listed"):
        raise click.UsageError(
            "--picture-host and --foreign-pictures listed go together: the hosts are listed one by one, "
            "as --foreign-pictures listed --picture-host commons.example --picture-host '*.photos.example'"
        )
    shared_page = normalise(shared_page) if shared_page else ""
    return FileConfig(
        bytes_max=given.pop("file_bytes_max"),
        types=given.pop("file_types"),
        foreign_pictures=kind,
        picture_hosts=hosts,
        renderers=tuple(map(checked_renderer, given.pop("renderer"))),
        shared_page=shared_page,
        origin=given.pop("files_url"),
    )


def _checked_picture_hosts(given: tuple[str, ...]) -> tuple[str, ...]:
    if len(given) > HOSTS_MAX:
        raise click.BadParameter(f"{len(given)} hosts, and {HOSTS_MAX} are the most: they are in each answer")
    try:
        return tuple(map(checked_host, given))
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from None


def _checked_origin(given: str) -> str:
    """Return an origin in lower case, without a slash at its end.  Raises click.BadParameter."""
    origin = given.strip().lower().rstrip("/")
    scheme, _, host = origin.partition("://")
    if origin and (scheme not in ("http", "https") or not _HOST_AND_PORT.fullmatch(host)):
        raise click.BadParameter(f"'{given}' is no origin: write https://files.example, without a path")
    return origin


def _endings(given: str) -> frozenset[str]:
    """Return the endings of ``--file-types``.  Raises click.BadParameter if one of them means no type."""
    found: set[str] = set()
    for one in filter(None, (part.strip().lower().lstrip(".") for part in given.split(","))):
        if one == "default":
            found |= DEFAULT_ENDINGS
        elif one == ALL or one in BY_ENDING:
            found.add(one)
        else:
            raise click.BadParameter(f"'{one}' is no ending that the wiki knows; write for example png,jpg,pdf")
    return frozenset(found)


def taken_metrics(given: dict[str, Any]) -> tuple[str, int] | None:
    """Remove the options of metrics from ``given``, and return where they are served, or None."""
    host, port = given.pop("metrics_host"), given.pop("metrics_port")
    if port < 0 and host != METRICS_HOST:
        raise click.UsageError("--metrics-host needs --metrics-port: metrics are served at a port of their own")
    return None if port < 0 else (host, port)


def taken_accounts(given: dict[str, Any]) -> dict[str, Any]:
    """Remove the values of ACCOUNT_OPTIONS from ``given``, and return them as fields of WikiConfig."""
    names = ("smtp", "smtp_tls", "smtp_user", "smtp_password_file", "mail_from", "sign_on_header", "sign_on_from")
    taken = {name: given.pop(name) for name in names}
    fields = {name: given.pop(name) for name in ("registration", "user_names", "public_url")}
    fields["mail"] = _mail(taken)
    if fields["mail"] is not None and not fields["public_url"]:
        raise click.UsageError("--smtp needs --public-url: links in mails lead there, as https://wiki.example")
    if taken["sign_on_header"]:
        proxies = taken["sign_on_from"] or SignOnConfig().proxies
        fields["sign_on"] = SignOnConfig(taken["sign_on_header"], proxies)
    return fields


def _mail(taken: dict[str, Any]) -> MailConfig | None:
    if not taken["smtp"]:
        return None
    host, colon, port = taken["smtp"].rpartition(":")
    if not colon or not host or not port.isdigit():
        raise click.BadParameter(f"'{taken['smtp']}' is no address: write HOST:PORT, for example mail.example:587")
    if not taken["mail_from"]:
        raise click.UsageError("--smtp needs --mail-from: the address that the mails come from")
    password = ""
    if taken["smtp_password_file"]:
        password = _password_in(taken["smtp_password_file"])
    return MailConfig(
        host=host.strip("[]"),
        port=int(port),
        tls=taken["smtp_tls"],
        user=taken["smtp_user"] or "",
        password=password,
        sender=taken["mail_from"],
    )


def _password_in(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").split("\n", 1)[0]
    except UnicodeDecodeError:
        raise click.UsageError(f"--smtp-password-file {path} is no text in UTF-8") from None


def accounts_of(wiki: Wiki) -> Accounts:
    """Return the accounts for a command, without limits of attempts and without mail."""
    return make_accounts(wiki.rows, _DEFAULTS, time.time, EditBuckets.opened(1))


def absolute_url(rows: Rows, public_url: str, handler: str, **query: str) -> str:
    """Return the URL of a handler.

    Without ``public_url`` it is at the address of the wiki that last started on this store.
    """
    served = "" if public_url else rows.row(SITE, SERVED_ROW, [ADDRESS]).get(ADDRESS, b"").decode(errors="replace")
    base = public_url or served or f"http://{_DEFAULTS.host}:{_DEFAULTS.port}"
    return base.rstrip("/") + site_path(handler, **query)


def _checked_names(given: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(map(checked_name, given))
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from None


def _checked_renderers(given: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(map("=".join, map(checked_renderer, given)))
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from None


languages_option: Final = setting(
    "--languages",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with files of other languages, as `wikka texts fr.po` makes them.",
)
backup_report_option: Final = setting(
    "--backup-report",
    envvar="WIKKA_BACKUP_REPORT",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File that `columnar backup --report` writes; administrators see the last backup.",
)
camel_case_option: Final = setting(
    "--camel-case",
    type=click.Choice(CAMEL_CASES),
    help="Formats in which CamelCase words are links, on new pages; none: on no page that is saved from now on  "
    f"[default: {USUAL.camel_case}]; {_WINS}",
)
language_option: Final = _setting(
    "language",
    metavar="CODE",
    help="What the wiki speaks: en, de, or a language of --languages. Users can choose another one.",
)
_OPTIONS: Final = (
    _setting("workers", type=click.IntRange(1, 64), help="Processes."),
    _setting("threads", type=click.IntRange(1, 64), help="Of each process."),
    setting("--site-name", metavar="NAME", help=f"What the wiki is called  [default: {USUAL.name}]; {_WINS}"),
    _setting("root_page", help="The page at /."),
    setting(
        "--markup",
        type=click.Choice(list(FORMATS)),
        help=f"The format of new pages  [default: {USUAL.markup}]; {_WINS}",
    ),
    camel_case_option,
    language_option,
    languages_option,
    backup_report_option,
    _setting(
        "edit_notes",
        type=click.IntRange(0, 2),
        help="Notes of edits, as in WikkaWiki: 0 may be given, 1 must be, 2 are not asked for.",
    ),
    _setting("edits_per_minute", type=click.IntRange(0), help="From one address; 0: no limit."),
    setting("--proxies", default=0, type=click.IntRange(0, 9), help="Reverse proxies before the wiki."),
    setting(
        "--allow-host",
        multiple=True,
        metavar="NAME",
        callback=lambda _context, _option, given: _checked_names(given),
        help="Name by which a wiki on loopback answers beside localhost, as a proxy passes it on; repeatable.",
    ),
    setting(
        "--secret-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Keeps what signs the forms, so that open ones outlive a restart; made if it is not there.",
    ),
    setting(
        "--metrics-port",
        default=-1,
        show_default=True,
        type=click.IntRange(-1, 65535),
        help="Serves /metrics alone, for Prometheus; 0: any free one, -1: none.",
    ),
    setting(
        "--metrics-host",
        default=METRICS_HOST,
        show_default=True,
        metavar="ADDRESS",
        help="Address of that port; whoever reaches it reads the numbers.",
    ),
    *FILE_OPTIONS,
    *ACCOUNT_OPTIONS,
    setting("--log-level", default="warning", type=click.Choice(["debug", "info", "warning", "error"])),
)


def serving_options(command: F) -> F:
    """Add the options of serving to a command, which gets them under their names with ``_`` for ``-``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def as_arguments(given: Mapping[str, Any]) -> list[str]:
    """Return the options as arguments of ``wikka serve``, without those that are None or empty."""
    return [
        f"--{name.replace('_', '-')}={one}"
        for name, value in given.items()
        for one in (value if isinstance(value, tuple) else (_text(value),))
        if one is not None and one != ""
    ]


def _text(value: Any) -> Any:
    return ",".join(sorted(value)) if isinstance(value, frozenset) else value


def speak_the_language(given: Mapping[str, Any]) -> None:
    """Set the wiki's language in this process.  Raises click.ClickException if there is no such language."""
    try:
        languages = Languages.found(given["languages"])
        catalogue = languages.catalogue(given["language"])
    except UnreadableTexts as problem:
        raise click.ClickException(str(problem)) from None
    names = languages.names
    if given["language"] not in names:
        known = ", ".join(f"{code} ({name})" for code, name in names.items())
        raise click.ClickException(
            f"--language {given['language']}: there are {known}. Make another one by: wikka texts"
        )
    speak_as_wiki(catalogue)
