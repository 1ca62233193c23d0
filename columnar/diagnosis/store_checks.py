"""(pure) The checks of ports, certificates and a store that serves."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Final

from columnar.diagnosis.facts import CertificateFacts, Facts, PortFacts, Program, StoreFacts
from columnar.diagnosis.findings import Finding
from columnar.diagnosis.folder_checks import names_of
from columnar.diagnosis.units import duration_text, milliseconds

EXPIRY_WARNING_S: Final = 14 * 86_400.0
SLOW_ANSWER_S: Final = 2.0  # the pages count a loop that answers later as not serving
_OF_OTHERS: Final = 0o077


def check_store(facts: Facts) -> Iterator[Finding]:
    if facts.refusal:
        yield Finding(
            "problem", "settings", facts.refusal, "a start refuses its settings", "correct what the line names"
        )
    for port in facts.ports:
        yield from check_port(port)
    if facts.certificate is not None:
        yield from check_certificate(facts.certificate, facts.clock.now_ms / 1_000)
    if facts.store is not None:
        yield from check_answer(facts.store, facts.program)


def check_port(port: PortFacts) -> Iterator[Finding]:
    where = f"{port.host}:{port.port}"
    if port.error:
        yield Finding(
            "problem",
            "port",
            f"{where} cannot be listened on: {port.error}",
            "a start fails",
            f"choose another --host or {port.option}",
        )
    elif port.is_own:
        yield Finding("ok", "port", f"the store listens on {where}")
    elif port.listeners:
        known = tuple(one for one in port.listeners if one.pid)
        who = names_of(known) if known else "a process of another user"
        yield Finding(
            "problem",
            "port",
            f"{where} is in use by {who}",
            "a store cannot listen there, so it does not start",
            f"stop that process, or choose another {port.option}",
        )
    else:
        yield Finding("ok", "port", f"{where} is free")


def check_certificate(found: CertificateFacts, now_s: float) -> Iterator[Finding]:
    if found.error:
        yield Finding("problem", "certificate", found.error, "a start fails, and a renewal keeps the old certificate")
    elif found.begins_s is not None and now_s < found.begins_s:
        yield Finding(
            "problem",
            "certificate",
            f"{found.cert} is valid only in {duration_text(found.begins_s - now_s)}",
            "clients refuse it until then",
            "look at this machine's clock, or take another certificate",
        )
    elif found.ends_s is not None and now_s >= found.ends_s:
        yield Finding(
            "problem",
            "certificate",
            f"{found.cert} expired {duration_text(now_s - found.ends_s)} ago",
            "clients refuse it",
            "renew it and send the store SIGHUP",
        )
    elif found.ends_s is not None and now_s >= found.ends_s - EXPIRY_WARNING_S:
        yield Finding(
            "warning",
            "certificate",
            f"{found.cert} expires in {duration_text(found.ends_s - now_s)}",
            "clients refuse it afterwards",
            "renew it and send the store SIGHUP",
        )
    else:
        left = f", valid for {duration_text(found.ends_s - now_s)} more" if found.ends_s is not None else ""
        yield Finding("ok", "certificate", f"{found.cert} and its key belong together{left}")
    if found.key_mode is not None and found.key_mode & _OF_OTHERS:
        yield Finding(
            "warning",
            "certificate",
            f"other users may read the private key {found.key} (mode {found.key_mode:04o})",
            "a reader of it can stand in for the store",
            f"chmod 0600 {quote(found.key)}",
        )


def check_answer(store: StoreFacts, program: Program) -> Iterator[Finding]:
    """Yield how the store answers over its port."""
    if store.error:
        if store.is_wanted:
            yield Finding("problem", "store", store.error, "clients get the same answer")
        else:
            yield Finding(
                "note", "store", f"no store answers at {store.address}", "", "--store HOST:PORT names another"
            )
        return
    text = f"{store.address} answered in {milliseconds(store.seconds)}: version {store.version}, build {store.build}"
    if store.seconds >= SLOW_ANSWER_S:
        yield Finding("warning", "store", text, "requests wait as long", "look at its page /requests, and at its log")
    else:
        yield Finding("ok", "store", text)
    if (store.version, _commit(store.build)) != (program.version, _commit(program.build)):
        yield Finding(
            "note",
            "store",
            f"it runs build {store.build} of {store.version}; this command is build {program.build} of "
            f"{program.version}",
            "it was started before an upgrade, or the command is another installation's",
        )
    for remark in store.remarks:
        yield Finding("problem", "store", remark, "", "'columnar transitions' and the log say more")
    if store.silent:
        yield Finding(
            "problem",
            "store",
            f"servers without an answer: {', '.join(store.silent)}",
            "their regions may not be served",
            "'columnar servers' shows their state",
        )


def _commit(build: str) -> str:
    return build.removesuffix("-dirty")  # a store knows it some moments after somebody first looked
