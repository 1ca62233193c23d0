"""The diagnosis of a store: its facts are gathered, and each check looks at them.

gather      asks the store over its port, then the data folder, its processes, the machine; blocks for seconds
diagnose    (pure) findings of facts
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from columnar.client import ClientTls
from columnar.client.user_options import ClientUser
from columnar.diagnosis.facts import CertificateFacts, Facts, PortFacts, Role, RunningStore, StoreFacts
from columnar.diagnosis.findings import Finding, by_level
from columnar.diagnosis.folder_checks import check_folder
from columnar.diagnosis.folder_facts import gather_folder
from columnar.diagnosis.machine_checks import check_machine
from columnar.diagnosis.machine_facts import clock_facts, memory_facts, program_facts
from columnar.diagnosis.process_facts import limits_of, port_facts, running_store, served_by
from columnar.diagnosis.store_checks import check_store
from columnar.diagnosis.store_facts import certificate_facts, store_facts
from columnar.diagnosis.time_limit import PATH_S, is_same_folder, within

PORTS: Final = {
    "port": "--port",
    "web_port": "--web-port",
    "thrift2_port": "--thrift2-port",
    "sqs_port": "--sqs-port",
    "kafka_port": "--kafka-port",
    "health_port": "--health-port",
}
DEFAULT_PORTS: Final = {"port": 9090, "web_port": 9095}


@dataclass(frozen=True, slots=True)
class Subject:
    """The store to diagnose; None and empty texts stand for what was not said."""

    data: str | None
    default_data: str  # the folder that is taken if neither ``data`` nor an answering store names one
    store: str  # HOST:PORT
    is_store_wanted: bool  # ``store`` was named
    tls: ClientTls | None = None
    user: ClientUser | None = None
    settings: Mapping[str, Any] | None = None  # of the store that is to start: host, port, web_port, tls_cert ...
    role: Role | None = None
    is_before_start: bool = False  # a served folder and taken ports hinder the start that is to follow
    refusal: str = ""  # the line with which that start refuses its settings


def gather(subject: Subject) -> Facts:
    """Gather the facts.  Takes some seconds, and a minute if store and folder do not answer."""
    if subject.is_before_start:
        store = StoreFacts(subject.store, False)
    else:
        store = store_facts(subject.store, subject.tls, subject.user, is_wanted=subject.is_store_wanted)
    data = subject.data
    if data is None and store.data and _is_local(store.data):
        data = store.data
    data = data if data is not None else subject.default_data
    folder, lock, syncs = gather_folder(data, os.geteuid())
    is_of_folder = not store.error and store.data != "" and is_same_folder(store.data, data)
    running: RunningStore | None = None
    if (lock.is_locked or folder.state == "stalled") and not subject.is_before_start:
        running = running_store(data, lock) or (served_by(lock) if is_of_folder else None)
    if running is not None and running.address and not (is_of_folder or subject.is_store_wanted):
        can_be_asked = subject.tls is not None or not running.speaks_tls  # else it refuses whoever has no certificate
        store = store_facts(running.address, subject.tls, subject.user, is_wanted=can_be_asked)
        is_of_folder = True
    settings = _settings(subject, running)
    return Facts(
        program_facts(),
        folder,
        lock,
        syncs,
        limits_of(running),
        memory_facts(running, _ordered_bytes(settings)),
        clock_facts(),
        tuple(_ports(settings, running)),
        _certificate(settings),
        running,
        _answer(store, subject, is_of_folder=is_of_folder),
        subject.role or (running.role if running is not None else None),
        _servers_in(settings),
        bool(settings.get("trigger_modules")),
        subject.refusal,
    )


def _is_local(path: str) -> bool:
    """Tell whether the folder is on this machine; one that stalls is."""
    return within(PATH_S, lambda: os.path.isdir(path)) is not False


def _answer(store: StoreFacts, subject: Subject, *, is_of_folder: bool) -> StoreFacts | None:
    """Return the answer if it is about the folder, or was wanted."""
    if subject.is_before_start:
        return None
    return store if subject.is_store_wanted or is_of_folder or subject.data is None else None


def _settings(subject: Subject, running: RunningStore | None) -> dict[str, Any]:
    """Return the settings that were named, over those of the running store, over the defaults."""
    named = {key: value for key, value in (subject.settings or {}).items() if value not in (None, "")}
    return {"host": "127.0.0.1", **DEFAULT_PORTS, **(running.settings if running is not None else {}), **named}


def _ports(settings: Mapping[str, Any], running: RunningStore | None) -> list[PortFacts]:
    found = []
    for name, option in PORTS.items():
        port = settings.get(name, -1)
        if isinstance(port, int) and port > 0:
            found.append(port_facts(option, str(settings["host"]), port, running))
    return found


def _certificate(settings: Mapping[str, Any]) -> CertificateFacts | None:
    cert, key, authority = (str(settings.get(name) or "") for name in ("tls_cert", "tls_key", "tls_client_ca"))
    node = settings.get("node")
    links = isinstance(node, dict) and bool(node.get("coordination"))
    return certificate_facts(cert, key, authority, links=links) if cert else None


def _ordered_bytes(settings: Mapping[str, Any]) -> int:
    memory = settings.get("memory")
    size = memory.get("size_bytes") if isinstance(memory, dict) else None
    return size if isinstance(size, int) else 0


def _servers_in(settings: Mapping[str, Any]) -> int:
    node = settings.get("node")
    number = node.get("servers") if isinstance(node, dict) else settings.get("servers")
    return number if isinstance(number, int) and number > 0 else 1


def diagnose(facts: Facts) -> list[Finding]:
    """Return all findings, the worst first."""
    return by_level([*check_folder(facts), *check_store(facts), *check_machine(facts)])
