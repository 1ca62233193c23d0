"""A proof with all that goes against it: a store that is killed, regions that change, and the table of the proof."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from columnar.client import Connection
from columnar.client.errors import AlreadyExists
from tests.proofs import acid, linearizable, linked_list
from tests.proofs.asking import Asking, Lost, Refused, StoreClient
from tests.proofs.killed_store import KilledStore, StoreBroken
from tests.proofs.list_accounts import KEY_BYTES
from tests.proofs.upheaval import Upheaval
from tests.proofs.verdict import Plan, Tell, Verdict, shown_counts

ROUND_S: Final = 300.0  # a table is used so long, judged and dropped: bounds the disk that is needed
LEAST_S: Final = 0.3  # what is left of the time beside its rounds is not worth one
PLAIN: Final[Mapping[str, str]] = {}
LOGGED: Final = {"CHANGE_LOG": "5"}  # each change in the region's log, as for a trigger; rows get rising timestamps
MARKED: Final = {"DELETE_MARKERS": "600000"}  # deletes leave markers, as in tables that triggers write
Connect = Callable[[], Asking]


@dataclass(frozen=True, slots=True)
class Proof:
    table: bytes
    families: Mapping[str, Mapping[str, Any]]
    attributes: tuple[Mapping[str, str], ...]  # of the tables, one after the other; each takes another way
    split_row: Callable[[random.Random], bytes]
    prove: Callable[[Connect, Path, Plan, Tell], Verdict]


PROOFS: Final = {
    "linked-list": Proof(
        linked_list.TABLE, linked_list.FAMILIES, (PLAIN,), lambda rng: rng.randbytes(KEY_BYTES), linked_list.prove
    ),
    "acid": Proof(
        acid.TABLE,
        acid.FAMILIES,
        (PLAIN, LOGGED, MARKED),
        acid.split_row,
        lambda connect, _, plan, tell: acid.prove(connect, plan, tell),
    ),
    "linearizable": Proof(
        linearizable.TABLE,
        linearizable.FAMILIES,
        (PLAIN, LOGGED, MARKED),
        linearizable.split_row,
        lambda connect, _, plan, tell: linearizable.prove(connect, plan, tell),
    ),
}


def fight(name: str, plan: Plan, folder: Path, tell: Tell) -> Verdict:
    """The proof ``name`` with everything against it; a store that breaks is a problem as well."""
    proof, rounds = PROOFS[name], 0
    total = Verdict(name)
    begun = time.monotonic()
    store = KilledStore(folder / "data", plan.seed, plan.kill_every_s)
    try:
        with store:
            while (left_s := plan.seconds - (time.monotonic() - begun)) > LEAST_S and total.is_good:
                seconds = min(left_s, ROUND_S, plan.seconds / len(proof.attributes) + LEAST_S)
                of_round = replace(plan, seconds=seconds, seed=plan.seed + 1_000 * rounds)
                accounts = folder / f"accounts-{rounds}"
                add(total, _round(proof, rounds % len(proof.attributes), store, of_round, accounts, tell))
                shutil.rmtree(accounts, ignore_errors=True)
                rounds += 1
    except StoreBroken as failure:
        total.add(f"the store broke: {failure}")
    total.counts |= {
        "rounds": rounds,
        "kills": shown_counts(store.shots),
        "longest start, ms": round(1_000 * store.slowest_start_s),
    }
    return total


def _round(proof: Proof, number: int, store: KilledStore, plan: Plan, folder: Path, tell: Tell) -> Verdict:
    clients: list[StoreClient] = []

    def connect() -> StoreClient:
        clients.append(StoreClient(store, proof.table))
        return clients[-1]

    asking = connect()
    _again(asking, lambda connection: _make(connection, proof, proof.attributes[number]))
    try:
        with Upheaval(store, proof.table, proof.split_row, plan.seed, plan.upheaval_pause_s) as upheaval:
            verdict = proof.prove(connect, folder, plan, tell)
        if verdict.is_good:
            _again(asking, lambda connection: _drop(connection, proof))
    finally:
        for client in clients:
            client.close()
    if plan.seconds >= 60 and not upheaval.done["split"]:
        verdict.add(f"no region was split: {shown_counts(upheaval.done)}")
    verdict.counts["upheaval"] = shown_counts(upheaval.done)
    return verdict


def _again(client: StoreClient, question: Callable[[Connection], Any]) -> None:
    """What may be done twice, until it is done."""
    while True:
        try:
            client.ask(question)
            return
        except (Lost, Refused):
            continue


def _make(connection: Connection, proof: Proof, attributes: Mapping[str, str]) -> None:
    versions = {"max_versions": 1} if "DELETE_MARKERS" in attributes else {}
    families = {name: {**options, **versions} for name, options in proof.families.items()}
    try:
        connection.admin.create_table(proof.table, families, attributes)
    except AlreadyExists:
        return  # by the call whose answer was lost


def _drop(connection: Connection, proof: Proof) -> None:
    if connection.admin.exists(proof.table):
        connection.admin.drop(proof.table, disable=True)


def add(total: Verdict, one: Verdict) -> None:
    """Numbers add up; of texts the last is shown."""
    for problem in one.problems:
        total.add(problem)
    total.more_problems += one.more_problems
    for name, count in one.counts.items():
        held = total.counts.get(name, 0)
        total.counts[name] = held + count if isinstance(held, int) and isinstance(count, int) else count
