"""Addresses of coordination services, as operators write them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from columnar.coordination import service_address
from columnar.coordination.cas_etcd import CasEtcd
from columnar.coordination.service_access import NO_ACCESS, ServiceAccess
from columnar.coordination.service_address import BadServiceAddress, ServiceAddress
from columnar.errors import HostError
from tests.support.certificates import Authority

GOOD = {
    "etcd://a:1,b:2/c": ServiceAddress("etcd", ("a:1", "b:2"), "c"),
    "etcd://10.0.0.1/prod/columnar/": ServiceAddress("etcd", ("10.0.0.1:2379",), "prod/columnar"),
    "etcds://[::1]:7,etcd-0.etcd.ns.svc:8/c": ServiceAddress(
        "etcd", ("[::1]:7", "etcd-0.etcd.ns.svc:8"), "c", is_tls=True
    ),
    "zookeeper://z1,z2:3/c": ServiceAddress("zookeeper", ("z1:2181", "z2:3"), "c"),
    "zookeepers://z/c": ServiceAddress("zookeeper", ("z:2181",), "c", is_tls=True),
}
BAD = [
    "",
    "etcd",
    "http://a:1/c",
    "etcd://a:1",
    "etcd://a:1/",
    "etcd:///c",
    "etcd://a:0/c",
    "etcd://a:65536/c",
    "etcd://a:x/c",
    "etcd://a,,b/c",
    "etcd://::1/c",
    "etcd://a/c d",
    "etcd://a/../c/",
    "etcd://a//c",
    "etcd://user@a/c",
    "etcd://me:secret@a/c",
]


@pytest.mark.parametrize("url", GOOD)
def test_an_address_is_read(url: str) -> None:
    assert ServiceAddress.parse(url) == GOOD[url]


@pytest.mark.parametrize("url", BAD)
def test_what_is_no_address_is_refused_and_the_form_is_named(url: str) -> None:
    with pytest.raises(BadServiceAddress, match=r"etcd://HOST:PORT"):
        ServiceAddress.parse(url)


@pytest.mark.parametrize(
    "url", ["etcd://me:secret@a/c", "etcd://me:secret@a:x/c", "etcd://me:secret@a/c d", "me:secret@x"]
)
def test_a_password_is_in_no_text(url: str) -> None:
    try:
        text = str(ServiceAddress.parse(url))
    except BadServiceAddress as error:
        text = str(error)
    assert "secret" not in text


def test_the_text_of_an_address_is_read_again() -> None:
    for url, address in GOOD.items():
        again = ServiceAddress.parse(str(address))
        assert (again.kind, again.hosts, again.name, again.is_tls) == (
            address.kind,
            address.hosts,
            address.name,
            address.is_tls,
        ), url


def test_a_client_has_a_part_of_the_lease_for_a_call() -> None:
    for lease_s, timeout_s in ((1.5, 0.6), (60.0, 2.0)):
        client = ServiceAddress.parse("etcd://a/c").connector(lease_s, NO_ACCESS)()
        assert isinstance(client, CasEtcd)
        assert client._timeout_s == pytest.approx(timeout_s)


def test_a_password_is_that_of_the_environment_or_the_first_line_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("pass word\n")
    access = ServiceAccess(user="me", password_file=str(file))
    assert access.read_password() == "pass word"
    assert replace(access, password="other").read_password() == "other"
    assert "other" not in repr(replace(access, password="other"))
    file.write_text("\n")
    with pytest.raises(HostError, match="is empty; write the password into it"):
        access.read_password()
    file.unlink()
    with pytest.raises(HostError, match=r"cannot read .*--coordination-password-file"):
        ServiceAddress.parse("etcd://a/c").connector(1.5, access)


def test_files_that_are_no_certificates_are_named_with_their_option(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ours")
    one, two = authority.sign("one"), authority.sign("two")
    address = ServiceAddress.parse("etcds://a/c")
    missing = str(tmp_path / "missing")
    for access, words in (
        (ServiceAccess(ca_file=missing), "--coordination-ca must name a PEM file"),
        (ServiceAccess(ca_file=one.key), "(--coordination-ca) holds no certificates"),
        (ServiceAccess(ca_file=authority.ca, cert_file=missing, key_file=missing), "look at --coordination-cert"),
        (ServiceAccess(ca_file=authority.ca, cert_file=one.cert, key_file=two.key), "(--coordination-key) is not that"),
    ):
        with pytest.raises(HostError, match=re.escape(words)):
            address.connector(1.5, access)


def test_the_local_address_is_the_one_towards_the_service() -> None:
    assert ServiceAddress.parse("etcd://127.0.0.1/c").find_local_address() == "127.0.0.1"
    assert ServiceAddress.parse("etcd://no-such-host.invalid,127.0.0.1/c").find_local_address() == "127.0.0.1"
    with pytest.raises(OSError, match=r"."):
        ServiceAddress.parse("etcd://no-such-host.invalid/c").find_local_address()


def test_a_service_with_a_host_on_this_machine_has_the_address_towards_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each machine may run a member of the service, and name it first by its loopback address."""
    own = {"127.0.0.1": "127.0.0.1", "10.0.0.2": "10.0.0.1", "::1": "::1", "fe80::2": "fe80::1%eth0"}
    monkeypatch.setattr(service_address, "_address_towards", lambda host, _port: own[host])
    for hosts, address in (
        ("127.0.0.1,10.0.0.2", "10.0.0.1"),
        ("10.0.0.2,127.0.0.1", "10.0.0.1"),
        ("127.0.0.1,[::1]", "127.0.0.1"),
        ("[::1],[fe80::2]", "fe80::1%eth0"),
    ):
        assert ServiceAddress.parse(f"etcd://{hosts}/c").find_local_address() == address
