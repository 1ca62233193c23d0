"""An etcd that is full: what a node says, and how it is repaired; an etcd that is started as on the pages stays small.

etcd keeps each value that a key ever had until a compaction, and a node writes four values a second.
"""

from __future__ import annotations

import json
import re
import shlex
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from columnar.coordination.cas import CasOutcomeUnknown, CasRefused, CasStore
from tests.support.coordination_services import etcd, need, started
from tests.support.deep import IS_DEEP

ROOT = Path(__file__).parents[2]
PATIENT_S = 5.0
QUOTA_BYTES = 2_000_000
VALUE = b"x" * 400  # about that of a node's record
COMPACTION = ("--auto-compaction-mode=revision", "--auto-compaction-retention=10000")
TICK_S = 300.0  # etcd compacts by revisions every five minutes


def call_gateway(url: str, path: str, body: dict[str, object]) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/v3/{path}", json.dumps(body).encode(), PATIENT_S) as reply:
        found = json.loads(reply.read())
    assert isinstance(found, dict)
    return found


def version_of(store: CasStore) -> int:
    found = store.read_key("nodes/n1")
    assert found is not None, "what is written can be read"
    return found.version


def fill(store: CasStore, version: int) -> tuple[int, str]:
    """Write until the service refuses; returns the last version and the refusal.

    The write by which etcd becomes full is carried out, and its answer is an error nevertheless.
    """
    for _ in range(20_000):
        try:
            version = store.put_key("nodes/n1", VALUE, version)
        except CasOutcomeUnknown:
            version = version_of(store)
        except CasRefused as refused:
            return version, str(refused)
    raise AssertionError("it is not full")


def test_a_full_etcd_says_how_it_is_repaired(tmp_path: Path) -> None:
    need("etcd")
    with started(etcd(tmp_path, 1, ("--quota-backend-bytes", str(QUOTA_BYTES)))) as service:
        url, store = service.addresses[0], service.connect("p", PATIENT_S)
        version, said = fill(store, store.create_key("nodes/n1", VALUE))
        assert "database space exceeded" in said
        steps = [said.index(step) for step in ("etcdctl compact", "etcdctl defrag", "etcdctl alarm disarm")]
        assert steps == sorted(steps), said
        assert all(option in said for option in COMPACTION), said
        assert version_of(store) == version, "the refused write did not take effect"
        # The steps of the text, by the calls that etcdctl makes.
        call_gateway(url, "kv/compaction", {"revision": str(version), "physical": True})
        call_gateway(url, "maintenance/defragment", {})
        with pytest.raises(CasRefused, match="alarm disarm"):  # each step counts
            store.put_key("nodes/n1", VALUE, version)
        for alarm in call_gateway(url, "maintenance/alarm", {"action": "GET"})["alarms"]:
            call_gateway(url, "maintenance/alarm", {"action": "DEACTIVATE", **alarm})
        store.put_key("nodes/n1", VALUE, version)
        store.close()


def options_of_the_page() -> list[str]:
    """Return the command by which docs/many-machines.md starts etcd."""
    text = (ROOT / "docs/many-machines.md").read_text()
    found = re.search(r"^ +(etcd --name (?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert found is not None
    return shlex.split(found[1].replace("\\\n", " "))


def test_every_etcd_of_the_pages_is_compacted() -> None:
    manifest = list(yaml.safe_load_all((ROOT / "packaging/kubernetes/etcd.yaml").read_text()))
    commands = [
        container["command"]
        for one in manifest
        if one["kind"] == "StatefulSet"
        for container in one["spec"]["template"]["spec"]["containers"]
    ]
    assert len(commands) == 1
    for command in (options_of_the_page(), *commands):
        assert [word for word in command if word.startswith("--auto-compaction")] == list(COMPACTION)


@pytest.mark.skipif(not IS_DEEP, reason="etcd compacts every five minutes: make test-deep waits for it")
@pytest.mark.timeout(900)
@pytest.mark.lasts(330)
def test_an_etcd_that_is_started_as_on_the_page_does_not_fill_up(tmp_path: Path) -> None:
    """Write more than the quota holds; without the options the second half is refused."""
    need("etcd")
    options = [word for word in options_of_the_page() if word.startswith("--auto-compaction")]
    quota_bytes = 12_000_000
    with started(etcd(tmp_path, 1, ("--quota-backend-bytes", str(quota_bytes), *options))) as service:
        url, store = service.addresses[0], service.connect("p", PATIENT_S)
        version = store.create_key("nodes/n1", VALUE)
        end_s = time.monotonic() + 2 * TICK_S
        for _ in range(20_000):
            version = store.put_key("nodes/n1", VALUE, version)
        while not is_compacted(url):
            assert time.monotonic() < end_s, "it was not compacted"
            time.sleep(1.0)  # another process's clock
        for _ in range(10_000):
            version = store.put_key("nodes/n1", VALUE, version)
        store.close()
        assert 30_000 * len(VALUE) >= quota_bytes, "without a compaction it were full"


def is_compacted(url: str) -> bool:
    try:
        call_gateway(url, "kv/range", {"key": "cA==", "revision": "2"})
        return False
    except urllib.error.HTTPError as error:
        with error:
            return "has been compacted" in error.read().decode()
