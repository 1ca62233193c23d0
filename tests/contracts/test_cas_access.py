"""Accounts and TLS of etcd and ZooKeeper: a client that may do nothing is refused, and not taken for an outage."""

from __future__ import annotations

import json
import ssl
import urllib.request
from pathlib import Path

import pytest

from columnar.coordination.cas import CasRefused
from columnar.coordination.cas_etcd import CasEtcd, EtcdAccount
from tests.support.certificates import Authority
from tests.support.coordination_services import etcd, need, running, started

PATIENT_S = 5.0


def test_etcd_asks_for_user_and_password(tmp_path: Path) -> None:
    with running("etcd", tmp_path) as service:
        url = service.addresses[0]
        for path, body in (
            ("user/add", {"name": "root", "password": "right"}),
            ("user/grant", {"user": "root", "role": "root"}),
            ("enable", {}),
        ):
            urllib.request.urlopen(f"{url}/v3/auth/{path}", json.dumps(body).encode(), PATIENT_S).close()
        for account in (None, EtcdAccount("root", "wrong"), EtcdAccount("nobody", "right")):
            refused = CasEtcd([url], "p", timeout_s=PATIENT_S, account=account)
            with pytest.raises(CasRefused):
                refused.create_key("nodes/n1", b"")
            refused.close()
        client = CasEtcd([url], "p", timeout_s=PATIENT_S, account=EtcdAccount("root", "right"))
        version = client.create_key("nodes/n1", b"0")
        service.kill()
        service.servers[0].start()
        service.wait(CasEtcd([url], "p", timeout_s=PATIENT_S, account=EtcdAccount("root", "right")))
        assert client.read_key("nodes/n1") is not None, "etcd has forgotten its token: the client gets another one"
        client.put_key("nodes/n1", b"1", version)
        client.close()


def test_etcd_is_verified_by_tls(tmp_path: Path) -> None:
    need("etcd")
    ours, other = Authority(tmp_path, "ours"), Authority(tmp_path, "other")
    server, own = ours.sign("etcd"), ours.sign("client")
    options = ("--cert-file", server.cert, "--key-file", server.key, "--client-cert-auth", "--trusted-ca-file", ours.ca)
    trusting = ssl.create_default_context(cafile=ours.ca)
    trusting.load_cert_chain(own.cert, own.key)
    with started(etcd(tmp_path, 1, options, tls=trusting)) as service:
        client = service.connect("p", PATIENT_S)
        client.create_key("nodes/n1", b"")
        client.close()
        doubting = CasEtcd(service.addresses, "p", tls=ssl.create_default_context(cafile=other.ca))
        with pytest.raises(CasRefused, match=r"certificate"):
            doubting.read_key("nodes/n1")
        doubting.close()


def test_zookeeper_keeps_nodes_of_an_account_from_others(tmp_path: Path) -> None:
    with running("zookeeper", tmp_path) as service:
        from columnar.coordination.cas_zookeeper import CasZookeeper, ZookeeperAccount

        account = ZookeeperAccount("columnar", "right")
        owner = CasZookeeper.connect(service.addresses, "p", timeout_s=PATIENT_S, account=account)
        version = owner.create_key("nodes/n1", b"0")
        wrong = ZookeeperAccount("columnar", "wrong")
        for other_account in (None, wrong):
            other = CasZookeeper.connect(service.addresses, "p", timeout_s=PATIENT_S, account=other_account)
            with pytest.raises(CasRefused):
                other.read_key("nodes/n1")
            with pytest.raises(CasRefused):
                other.put_key("nodes/n1", b"1", version)
            with pytest.raises(CasRefused):
                other.list_keys("nodes")
            with pytest.raises(CasRefused):
                other.create_key("nodes/n2", b"")
            other.close()
        owner.put_key("nodes/n1", b"1", version)
        owner.close()
