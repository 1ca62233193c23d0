"""A proof under attack: a store that is killed, regions that change, tables of several kinds."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.proofs import acid, grounds, grouped, linearizable, linked_list, referring
from tests.proofs.administration import Administration
from tests.proofs.asking import PATIENCE_S, Refused, StoreClient
from tests.proofs.cluster_asking import client_of
from tests.proofs.grounds import LOGGED, MARKED, PLAIN, TRIGGERED, Ground
from tests.proofs.killed_cluster import KilledCluster
from tests.proofs.killed_nodes import KilledNodes
from tests.proofs.killed_store import KilledStore, StoreBroken
from tests.proofs.list_accounts import KEY_BYTES
from tests.proofs.upheaval import Upheaval
from tests.proofs.verdict import Plan, Tell, Verdict
from tests.support.standalone_store import ENVIRONMENT

NOT_CHECKED: Final = 2  # the status with which the check says so
LONG_S: Final = 60.0  # a run of so long has splits, or something is wrong with it
ADMINISTRATION_PAUSES: Final = 3  # an administrator does less often what takes longer
ROUND_S: Final = 300.0  # a table is used so long, judged and dropped: bounds the disk that is needed


@dataclass(frozen=True, slots=True)
class Proof:
    table: bytes
    families: Mapping[str, Mapping[str, Any]]
    grounds: tuple[Ground, ...]  # of the rounds, one after the other
    split_row: Callable[[random.Random], bytes]
    prove: Callable[[Round], Verdict]


@dataclass(frozen=True, slots=True)
class Round:
    """A round: the time of one table."""

    proof: Proof
    ground: Ground
    store: KilledStore
    plan: Plan
    folder: Path  # of its own, not there yet
    tell: Tell
    clients: list[StoreClient] = field(default_factory=list)

    def connect(self, table: bytes | None = None) -> StoreClient:
        self.clients.append(client_of(self.store, table or self.proof.table))
        return self.clients[-1]

    def deliver(self) -> bool:
        client = client_of(self.store, self.proof.table)  # not kept: every circle of the list comes here
        try:
            return grounds.deliver(client)
        finally:
            client.close()

    def fight(self) -> Verdict:
        asking, upheavals = self.connect(), []
        grounds.make(asking, self.proof.table, self.proof.families, self.ground)
        try:
            with ExitStack() as stack:
                for table in (self.proof.table, *([referring.TABLE] if self.ground.has_trigger else [])):
                    arguments = (self.proof.split_row, self.plan.seed, self.plan.upheaval_pause_s)
                    upheavals.append(stack.enter_context(Upheaval(self.store, table, *arguments)))
                arguments = (self.plan.seed, ADMINISTRATION_PAUSES * self.plan.upheaval_pause_s)
                operator = Administration(self.store, self.proof.table, list(self.proof.families), *arguments)
                upheavals.append(stack.enter_context(operator))
                verdict = self.proof.prove(self)
            for problem in operator.problems:
                verdict.add(problem)
            if verdict.is_good:
                grounds.drop(asking, self.proof.table, self.ground)
        finally:
            for client in self.clients:
                client.close()
        verdict.against = sum((upheaval.done for upheaval in upheavals), Counter[str]())
        return verdict


def _linked_list(of: Round) -> Verdict:
    derived = None
    if of.ground.has_trigger:
        derived = linked_list.Derived(lambda: of.connect(referring.TABLE), of.deliver)
    return linked_list.prove(of.connect, of.folder, of.plan, of.tell, derived=derived)


PROOFS: Final = {
    "linked-list": Proof(
        linked_list.TABLE,
        linked_list.FAMILIES,
        (PLAIN, TRIGGERED),
        lambda rng: rng.randbytes(KEY_BYTES),
        _linked_list,
    ),
    "acid": Proof(
        acid.TABLE,
        acid.FAMILIES,
        (PLAIN, LOGGED, MARKED),
        acid.split_row,
        lambda of: acid.prove(of.connect, of.plan, of.tell),
    ),
    "linearizable": Proof(
        linearizable.TABLE,
        linearizable.FAMILIES,
        (PLAIN, LOGGED, MARKED),
        linearizable.split_row,
        lambda of: linearizable.prove(of.connect, of.plan, of.tell),
    ),
    "groups": Proof(
        grouped.TABLE,
        grouped.FAMILIES,
        tuple(Ground({**ground.attributes, **grouped.ATTRIBUTES}) for ground in (PLAIN, LOGGED, MARKED)),
        grouped.split_row,
        lambda of: linearizable.prove(of.connect, of.plan, of.tell, grouped.GAME),
    ),
}


def checked(folder: Path) -> list[str]:
    """Return the faults and stray folders that ``columnar check`` finds in a store that no process serves.

    A note is no fault: a node that ends, or is killed, between the takeover of a region's folder and the region's
    opening leaves the older generation, which the next opening removes.
    """
    command = [sys.executable, "-m", "columnar", "check", "--data", str(folder), "--json"]
    told = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if told.returncode == NOT_CHECKED:
        return [told.stderr]
    return [str(finding) for finding in json.loads(told.stdout)["findings"] if finding["severity"] != "note"]


def fight(name: str, plan: Plan, folder: Path, tell: Tell) -> Verdict:
    """Run the proof ``name`` round after round; a store that breaks is a problem as well."""
    proof, rounds = PROOFS[name], 0
    total = Verdict(name)
    share_s = min(ROUND_S, plan.seconds / len(proof.grounds))  # each ground is fought on, however short the time
    begun = time.monotonic()
    kind = KilledNodes if plan.nodes else KilledCluster if plan.servers > 1 else KilledStore
    store = kind(folder / "data", plan, (referring.__name__,))
    try:
        with store:
            while total.is_good:
                left_s = plan.seconds - (time.monotonic() - begun)
                if left_s < share_s / 2 and rounds >= len(proof.grounds):
                    break
                of_round = replace(plan, seconds=share_s, seed=plan.seed + 1_000 * rounds)
                accounts = folder / f"accounts-{rounds}"
                ground = proof.grounds[rounds % len(proof.grounds)]
                total.take_in(Round(proof, ground, store, of_round, accounts, tell).fight())
                shutil.rmtree(accounts, ignore_errors=True)
                rounds += 1
            tell("checking every file of the store")
            store.end()
            for finding in checked(folder / "data"):
                total.add(f"columnar check: {finding}")
    except StoreBroken:
        pass  # said below, as where it broke after the last question
    except Refused as failure:
        total.add(f"the store refused for {PATIENCE_S:.0f} s what it should do: {failure}")
    total.look_for_nothing()
    for what in ("split", *(["move"] if plan.servers > 1 or plan.nodes else [])):
        if plan.seconds >= LONG_S and not total.against[what]:
            total.add(f"there was no {what} of a region: the run shows less than it should")
    if store.broken:
        total.add(f"the store broke: {store.broken}")
    total.against += Counter({f"{how} of the store" if how == "kill -9" else how: n for how, n in store.shots.items()})
    total.counts |= {"rounds": rounds, "longest start, ms": round(1_000 * store.slowest_start_s)}
    return total
