"""Accounts and TLS of etcd and ZooKeeper: a client that may do nothing is refused, and not taken for an outage."""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from columnar.coordination.cas import CasOutcomeUnknown, CasRefused, CasStore, CasUnavailable
from columnar.coordination.cas_etcd import CasEtcd, EtcdAccount
from columnar.coordination.service_access import ServiceAccess
from tests.support.cas_contract import CONTRACT
from tests.support.certificates import Authority
from tests.support.coordination_services import etcd, need, running, started
from tests.support.secured_services import PASSWORD, USER, secured

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
        doubting = CasEtcd(service.addresses, "p", tls=lambda: ssl.create_default_context(cafile=other.ca))
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


@pytest.mark.parametrize("kind", ["etcd", "zookeeper"])
def test_a_secured_service_keeps_the_contract_and_refuses_strangers(
    kind: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """TLS with certificates on both sides, and a user who may touch the keys of one cluster."""
    with secured(kind, tmp_path) as service:
        for case in CONTRACT:
            with subtests.test(case.__name__):
                clients, connect = list[CasStore](), service.connector(under=f"/{case.__name__}")
                case(_noting(connect, clients))
                for client in clients:
                    client.close()
        other = Authority(tmp_path, "other")
        good = service.access
        stranger = other.sign("node", field="O")
        strangers = {
            "no certificate": replace(good, cert_file="", key_file=""),
            "another authority's certificate": replace(good, cert_file=stranger.cert, key_file=stranger.key),
            "servers of another authority": replace(good, ca_file=other.ca),
            "another password": replace(good, password="wrong"),
            "no user": replace(good, user=""),
        }
        writer = service.connector()()
        version = writer.create_key("leader/leader", b"0")
        for what, access in strangers.items():
            with subtests.test(what):
                client = service.connector(access)()
                with pytest.raises((CasRefused, CasUnavailable)):
                    client.read_key("leader/leader")
                with pytest.raises((CasRefused, CasUnavailable, CasOutcomeUnknown)):
                    client.put_key("leader/leader", b"1", version)
                client.close()
        found = writer.read_key("leader/leader")
        assert found is not None
        assert found.value == b"0"
        writer.close()


def test_records_in_zookeeper_belong_to_the_account_alone(tmp_path: Path) -> None:
    from kazoo.security import make_digest_acl

    with secured("zookeeper", tmp_path) as service:
        client = service.connector()()
        client.create_key("nodes/n1", b"")
        client.create_key("leader/leader", b"")
        kazoo = client._client  # type: ignore[attr-defined]
        for path in (
            "/columnar",
            "/columnar/nodes",
            "/columnar/nodes/n1",
            "/columnar/leader",
            "/columnar/leader/leader",
        ):
            acls, _ = kazoo.get_acls(path)
            assert acls == [make_digest_acl(USER, PASSWORD, all=True)], path
        client.close()


def test_a_role_of_etcd_that_is_limited_to_the_cluster_is_enough_and_no_more(tmp_path: Path) -> None:
    with secured("etcd", tmp_path) as service:
        own = service.connector()()
        own.create_key("nodes/n1", b"")
        own.close()
        neighbour = CasEtcd(
            service.service.addresses,
            "columnar2",
            timeout_s=PATIENT_S,
            account=EtcdAccount(USER, PASSWORD),
            tls=lambda: _trusting(service.access),
        )
        with pytest.raises(CasRefused, match="permission denied"):
            neighbour.create_key("nodes/n1", b"")
        neighbour.close()
        pair = service.authority.sign("node")
        client = service.connector(replace(service.access, cert_file=pair.cert, key_file=pair.key))()
        with pytest.raises(CasRefused, match="make the node's certificate without a CommonName"):
            client.read_key("nodes/n1")
        client.close()


@pytest.mark.parametrize("kind", ["etcd", "zookeeper"])
def test_a_renewed_certificate_is_used_by_the_next_connection(kind: str, tmp_path: Path) -> None:
    with secured(kind, tmp_path) as service:
        connect, cert = service.connector(), Path(service.access.cert_file)
        good = cert.read_bytes()
        cert.write_bytes(b"broken\n")
        client = connect()
        client.create_key("nodes/n1", b"0")  # by the certificate from before
        client.close()
        other = Authority(tmp_path, "other").sign("node", field="O")
        cert.write_bytes(Path(other.cert).read_bytes())
        Path(service.access.key_file).write_bytes(Path(other.key).read_bytes())
        client = connect()
        with pytest.raises((CasRefused, CasUnavailable)):
            client.read_key("nodes/n1")
        client.close()
        assert good != cert.read_bytes()


@pytest.mark.parametrize("kind", ["etcd", "zookeeper"])
def test_a_certificate_for_another_machine_is_refused(kind: str, tmp_path: Path) -> None:
    with secured(kind, tmp_path, host="10.9.9.9") as service:
        client = service.connector()()
        with pytest.raises(CasRefused, match=r"certificate.* is not valid for '127.0.0.1'"):
            client.read_key("nodes/n1")
        client.close()


def _noting(connect: Callable[[], CasStore], clients: list[CasStore]) -> Callable[[], CasStore]:
    def noted() -> CasStore:
        clients.append(connect())
        return clients[-1]

    return noted


def _trusting(access: ServiceAccess) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=access.ca_file)
    context.load_cert_chain(access.cert_file, access.key_file)
    return context
