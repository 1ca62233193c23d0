"""The parts of a support archive, made of a diagnosis, the store's answers and its log, without data and secrets.

The facts and answers are gathered first, because they name the keys and secrets that no part may have.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Final

from columnar.config import NodeConfig, StandaloneConfig
from columnar.diagnosis.archive import PART_BYTES, LeftOut, Part, json_part
from columnar.diagnosis.diagnosis import Subject, diagnose, gather
from columnar.diagnosis.facts import Facts, RunningStore, reachable
from columnar.diagnosis.findings import Finding
from columnar.diagnosis.process_facts import PROC
from columnar.diagnosis.redaction import (
    Redactor,
    redact_attributes,
    redact_environment,
    redact_settings,
)
from columnar.diagnosis.store_answers import StoreAnswers
from columnar.diagnosis.time_limit import PATH_S, within
from columnar.model.schema import ATTRIBUTES
from columnar.storage.cluster_file import SECRET

LOG_LINES: Final = 2_000
LOG_S: Final = 15.0  # it may be in a folder that stalls
LOG_BYTES: Final = 1024 * 1024  # read from the end of the log's file
KEY_FILE_BYTES: Final = 64 * 1024
PLAIN_VARIABLES: Final = frozenset(
    """COLUMNAR_COMPILED COLUMNAR_STORE COLUMNAR_ZONE COLUMNAR_TLS COLUMNAR_TLS_CA LANG LC_ALL TZ PYTHONMALLOC
    MALLOC_ARENA_MAX MALLOC_MMAP_THRESHOLD_ MALLOC_TOP_PAD_ MALLOC_TRIM_THRESHOLD_""".split()  # noqa: SIM905
)
PATH_VARIABLES: Final = frozenset(
    """COLUMNAR_TLS_KEY COLUMNAR_TLS_CLIENT_KEY COLUMNAR_PASSWORD_FILE COLUMNAR_TOKEN_FILE COLUMNAR_COORDINATION_KEY
    COLUMNAR_COORDINATION_PASSWORD_FILE WIKKA_SMTP_PASSWORD_FILE WIKKA_SECRET_FILE""".split()  # noqa: SIM905
)  # their files have secrets; their values, which parts may name, are none
KNOWN_SETTINGS: Final = frozenset(
    {one.name for kind in (StandaloneConfig, NodeConfig) for one in fields(kind)} | {"node", "log", "health_port"}
)
NEVER: Final = (
    LeftOut("values of cells, row keys, columns of rows", "they are data"),
    LeftOut("passwords, tokens, private keys, the file secret", "they are secrets"),
    LeftOut("start and end keys of regions", "they are row keys: regions.json has a hash of each, with a random salt"),
    LeftOut("words of log lines, remarks and reasons", "they may be data: words that the program itself has are kept"),
    LeftOut("tracebacks, rows, filters and quoted texts of log lines", "they may have row keys and values"),
    LeftOut("attributes that have no effect", "clients may keep anything in them"),
    LeftOut("arguments of the fence command", "they may be a user and a password: its first word is kept"),
    LeftOut("values of settings and variables that the program does not know", "they may be secrets"),
)
_SOURCE_WORD: Final = re.compile(r"[a-z]{2,}")
_SECRET_VARIABLE: Final = re.compile(r"PASS|SECRET|TOKEN|KEY|CREDENTIAL", re.IGNORECASE)
_PEM_LINE: Final = re.compile(rb"[A-Za-z0-9+/=]{32,}")


def gather_bundle(subject: Subject, log: str) -> tuple[list[Part], list[LeftOut], dict[str, Any]]:
    """Return the parts, what was left out, and the program that gathered them.  Takes seconds."""
    facts = gather(subject)
    running = facts.running
    settings = dict(running.settings) if running is not None else {}
    answers = StoreAnswers()
    answers.query_store(_address(subject, running), subject.tls, subject.user)
    web = settings.get("web_port", (subject.settings or {}).get("web_port"))
    if isinstance(web, int) and web > 0:
        scheme = "https" if settings.get("tls_cert") or subject.tls is not None else "http"
        host = reachable(str(settings.get("host", "127.0.0.1")))
        answers.read_pages(f"{scheme}://{host}:{web}/", subject.tls, subject.user)
    else:
        answers.failures["metrics"] = answers.failures["slow requests"] = "the port of the pages is not known"
    lines = within(LOG_S, lambda: _last_lines(log or _log_of(running)))
    variables = _variables_of(running)
    known = known_secrets(facts, settings, variables)
    redactor = Redactor(secrets.token_bytes(16), program_words(), _names(facts, answers), _keys(answers), known)
    parts, left_out = make_parts(facts, settings, variables, answers, lines, redactor)
    return parts, [*NEVER, *left_out], asdict(facts.program)


def _address(subject: Subject, running: RunningStore | None) -> str:
    return subject.store if subject.is_store_wanted or running is None else running.address or subject.store


# --- what the redactor knows -----------------------------------------------------------------------


def program_words() -> frozenset[str]:
    """Return the words of the program's own sources, of which its messages are made.  Reads some 3 MB."""
    package = Path(__file__).parents[1]
    words: set[str] = set()
    for path in package.rglob("*.py"):
        words.update(_SOURCE_WORD.findall(path.read_text(encoding="utf-8", errors="replace").lower()))
    return frozenset(words)


def _names(facts: Facts, answers: StoreAnswers) -> Iterable[str]:
    """Yield names that may stay in texts: of tables, servers, nodes, zones, and paths."""
    yield from (facts.folder.path, facts.program.version, facts.program.build, facts.program.python)
    yield os.uname().nodename
    yield from (_text(table.name) for table in (answers.report.tables if answers.report is not None else ()))
    cluster = answers.cluster
    if cluster is not None:
        for server in cluster.servers:
            yield f"{server.name} {server.name}.{server.incarnation}"
        yield from (*cluster.nodes.values(), *cluster.living_nodes, *cluster.zones.values())


def _keys(answers: StoreAnswers) -> Iterable[bytes]:
    for regions in answers.regions.values():
        for region in regions:
            yield region.start_key
            yield region.end_key


def known_secrets(facts: Facts, settings: Mapping[str, Any], variables: Mapping[str, str]) -> list[bytes]:
    """Return secrets that this user can read: no part may have one of them."""
    secret_variables = (name for name in variables if _SECRET_VARIABLE.search(name) and name not in PATH_VARIABLES)
    found = [os.fsencode(variables[name]) for name in secret_variables]
    node = settings.get("node")
    access = node.get("access") if isinstance(node, dict) else None
    access = access if isinstance(access, dict) else {}
    found += [str(access.get("password") or "").encode()]
    key = facts.certificate.key if facts.certificate is not None else ""
    named = [variables[name] for name in sorted(PATH_VARIABLES & variables.keys())]
    own = os.path.join(facts.folder.path, SECRET) if facts.folder.state != "stalled" else ""
    for path in (own, str(access.get("password_file") or ""), *named):
        found.append(_start_of(path).strip())
    for path in (key, str(access.get("key_file") or ""), *named):
        found += _PEM_LINE.findall(_start_of(path))
    return [secret for secret in found if secret]


def _start_of(path: str) -> bytes:
    """Return the start of a file; nothing of one that cannot be read, or stalls."""
    if path:
        with suppress(OSError):
            return within(PATH_S, lambda: _read_start(path)) or b""
    return b""


def _read_start(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(KEY_FILE_BYTES)


def _variables_of(running: RunningStore | None) -> dict[str, str]:
    """Return the environment of the running store, if this user may read it, over that of this process."""
    found = dict(os.environ)
    if running is not None:
        with suppress(OSError), open(f"{PROC}/{running.process.pid}/environ", "rb") as file:
            pairs = (os.fsdecode(one).partition("=") for one in file.read().split(b"\0"))
            found = {name: value for name, _, value in pairs if name}
    return found


def _log_of(running: RunningStore | None) -> str:
    """Return the file to which the running store writes its log; empty if it is none, or not known."""
    if running is not None:
        with suppress(OSError):
            path = os.readlink(f"{PROC}/{running.process.pid}/fd/2")
            return path if os.path.isfile(path) else ""
    return ""


def _last_lines(path: str) -> list[str] | None:
    """Return the last lines of the file; None without a file."""
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_BYTES))
            lines = file.read(LOG_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    return (lines if size <= LOG_BYTES else lines[1:])[-LOG_LINES:]


# --- the parts -------------------------------------------------------------------------------------


def make_parts(
    facts: Facts,
    settings: Mapping[str, Any],
    variables: Mapping[str, str],
    answers: StoreAnswers,
    lines: list[str] | None,
    redactor: Redactor,
) -> tuple[list[Part], list[LeftOut]]:
    """Return the parts, and what is missing; a part that has a known secret all the same is missing."""
    parts: list[Part] = []
    left_out = [LeftOut(what, f"no answer: {why}") for what, why in answers.failures.items()]
    for name, about, made in _plan(facts, settings, variables, answers, lines, redactor):
        value = made()
        if value is None:
            if name == "log.txt":
                left_out.append(LeftOut(name, "the file of the log is not known, or cannot be read: --log FILE"))
            continue
        part = Part(name, value[-PART_BYTES:], about) if isinstance(value, bytes) else json_part(name, value, about)
        if redactor.names_secret(part.data):
            left_out.append(LeftOut(name, "it had a secret that is known here"))
        else:
            parts.append(part)
    return parts, left_out


def _plan(
    facts: Facts,
    settings: Mapping[str, Any],
    variables: Mapping[str, str],
    answers: StoreAnswers,
    lines: list[str] | None,
    redactor: Redactor,
) -> list[tuple[str, str, Callable[[], Any]]]:
    """Return name, subject and maker of each part."""
    text = redactor.redact_text
    return [
        ("doctor.json", "findings of columnar doctor", lambda: [_finding(one, redactor) for one in diagnose(facts)]),
        ("facts.json", "folder, machine, processes", lambda: asdict(replace(facts, running=None, store=None))),
        (
            "settings.json",
            "settings and variables of the running store",
            lambda: {
                "settings": redact_settings(settings, KNOWN_SETTINGS),
                "environment": redact_environment(variables, PLAIN_VARIABLES),
            },
        ),
        ("status.json", "columnar status", lambda: _status(answers, redactor)),
        ("servers.json", "columnar servers and nodes", lambda: _servers(answers, redactor)),
        ("regions.json", "regions of each table, with hashes of their keys", lambda: _regions(answers, redactor)),
        (
            "transitions.json",
            "columnar transitions",
            lambda: _records(answers.transitions, "kind encoded_name table state from_server to_server state_ms", text),
        ),
        (
            "decisions.json",
            "columnar decisions",
            lambda: _records(answers.decisions, "kind regions server ago_ms at_ms", text),
        ),
        ("metrics.txt", "/metrics", lambda: answers.metrics),
        ("slow.json", "the last slow requests", lambda: _slow(answers, redactor)),
        (
            "log.txt",
            "the last lines of the log",
            lambda: None if lines is None else "".join(f"{redactor.redact_log(one)}\n" for one in lines).encode(),
        ),
    ]


def _finding(finding: Finding, redactor: Redactor) -> dict[str, str]:
    """Return the finding; the store's remarks may name rows."""
    found: dict[str, str] = asdict(finding)
    if finding.name == "store":
        found["text"] = redactor.redact_text(finding.text)
    return found


def _status(answers: StoreAnswers, redactor: Redactor) -> dict[str, Any] | None:
    report = answers.report
    if report is None:
        return None
    return {
        "version": _text(report.version),
        "build": _text(report.build or ""),
        "python": _text(report.python or ""),
        "data": _text(report.dataFolder),
        "uptime_seconds": report.uptimeSeconds,
        "open_regions": report.openRegions,
        "open_scanners": report.openScanners,
        "connections": report.connections,
        "requests": {_text(name): count for name, count in report.requests.items()},
        "silent_servers": [redactor.redact_text(_text(one)) for one in report.silentServers or ()],
        "remarks": [redactor.redact_text(_text(one)) for one in report.remarks or ()],
        "tables": [
            {
                "name": _text(table.name),
                "enabled": table.enabled,
                "regions": table.regions,
                "bytes": table.sizeBytes,
                "attributes": redact_attributes(
                    {_text(name): _text(value) for name, value in table.attributes.items()}, ATTRIBUTES
                ),
            }
            for table in report.tables
        ],
    }


def _servers(answers: StoreAnswers, redactor: Redactor) -> dict[str, Any] | None:
    cluster = answers.cluster
    if cluster is None:
        return None
    found = asdict(cluster)
    found["remarks"] = [redactor.redact_text(one) for one in cluster.remarks]
    for server in found["servers"]:
        server["notes"] = [redactor.redact_text(one) for one in server["notes"]]
        server["last_lines"] = [redactor.redact_log(one) for one in server["last_lines"]]
    return found


def _regions(answers: StoreAnswers, redactor: Redactor) -> dict[str, Any] | None:
    if answers.report is None:
        return None
    return {
        table: [
            {
                "encoded_name": region.encoded_name,
                "start": redactor.hash_key(region.start_key),
                "end": redactor.hash_key(region.end_key),
                "open": region.open,
                "bytes": region.size_bytes,
                "reads": region.reads,
                "writes": region.writes,
                "log_records": region.log_records,
                "log_bytes": region.log_bytes,
            }
            for region in regions
        ]
        for table, regions in answers.regions.items()
    }


def _records(found: Iterable[Any] | None, names: str, text: Callable[[str], str]) -> list[dict[str, Any]] | None:
    """Return fields of records, and the reason of each as redacted text."""
    if found is None:
        return None
    return [{**{name: _plain(getattr(one, name)) for name in names.split()}, "why": text(one.why)} for one in found]


def _plain(value: Any) -> Any:
    return _text(value) if isinstance(value, bytes) else value


def _slow(answers: StoreAnswers, redactor: Redactor) -> list[dict[str, Any]] | None:
    if answers.slow is None:
        return None
    return [
        {name: one.get(name) for name in ("at_ms", "took_ms", "method", "server")}
        | redactor.redact_slow(str(one.get("about", "")))
        for one in answers.slow
    ]


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
