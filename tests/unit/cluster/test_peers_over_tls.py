"""Links between servers over TLS: certificates, strangers, the secret beside them, renewals."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from columnar.cluster.hello import Hello
from columnar.cluster.link_errors import NotSent
from columnar.cluster.peers import LinkTerms, Peers
from columnar.errors import HostError
from columnar.model.owner import Incarnation
from columnar.model.region_messages import CloseTable
from columnar.wire.tls_context import PeerTls, TlsFiles
from tests.support.certificates import Authority, Pair
from tests.support.linked_peers import S1, S2, SECRET, Two, linked


def files_of(authority: Authority, name: str, *, checks: bool) -> TlsFiles:
    pair = authority.sign(name)
    return TlsFiles(pair.cert, pair.key, authority.ca if checks else "")


def with_tls(two: Two, server: Incarnation, files: TlsFiles, secret: bytes = SECRET) -> Peers:
    tls = PeerTls.of_files(files)
    terms = LinkTerms(secret=secret, tls=tls)
    return Peers(Hello("c", server), two.addresses.get, two.sides[server], terms)


@pytest.mark.parametrize("checks", [False, True])
def test_links_over_tls(tmp_path: Path, checks: bool) -> None:
    authority = Authority(tmp_path, "ours")

    @linked
    async def scene(two: Two) -> None:
        near = with_tls(two, S1, files_of(authority, "s1", checks=checks))
        far = with_tls(two, S2, files_of(authority, "s2", checks=checks))
        await two.listen_tcp(far)
        await near.request_server(S2, CloseTable("t" * 300_000))
        assert two.sides[S2].asks == [CloseTable("t" * 300_000)]
        await near.close()
        await far.close()

    scene()


def test_a_peer_with_a_certificate_of_another_authority_or_without_tls_is_refused(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")

    @linked
    async def scene(two: Two) -> None:
        far = with_tls(two, S2, files_of(ours, "s2", checks=True))
        await two.listen_tcp(far)
        for near in (with_tls(two, S1, files_of(theirs, "s1", checks=False)), two.made(S1)):
            with pytest.raises(NotSent):
                await near.request_server(S2, CloseTable("t"))
            await near.close()
        assert two.sides[S2].asks == []
        picky = with_tls(two, S1, files_of(theirs, "s1", checks=True))
        with pytest.raises(NotSent):
            await picky.request_server(S2, CloseTable("t"))
        assert "cannot connect" in picky._small[S2].why
        await picky.close()
        await far.close()

    scene()


@pytest.mark.parametrize("usage", ["", "serverAuth,clientAuth"])
def test_a_certificate_that_both_ends_of_a_link_accept_is_taken(tmp_path: Path, usage: str) -> None:
    authority = Authority(tmp_path, "ours")
    pair = authority.sign("s1", usage=usage)
    assert PeerTls.of_files(TlsFiles(pair.cert, pair.key, authority.ca)).renew(pair.cert, pair.key)


@pytest.mark.parametrize(
    ("authority", "usage", "days", "why"),
    [
        ("theirs", "", 30, "unable to get local issuer certificate"),
        ("ours", "serverAuth", 30, r"un\w+ certificate purpose"),  # as public authorities give them
        ("ours", "clientAuth", 30, r"un\w+ certificate purpose"),
        ("ours", "", -1, "certificate has expired"),
    ],
)
def test_a_certificate_by_which_no_node_would_link_ends_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, authority: str, usage: str, days: int, why: str
) -> None:
    """Ports take it; without the check a node would wait for its leader for a minute, and not say why."""
    ours = Authority(tmp_path, "ours")
    signer = ours if authority == "ours" else Authority(tmp_path, authority)
    bad, good = signer.sign("s1", usage=usage, days=days), ours.sign("s1")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_text(Path(bad.cert).read_text())
    key.write_text(Path(bad.key).read_text())
    files = TlsFiles(str(cert), str(key), ours.ca)
    with pytest.raises(HostError, match=rf"no other node would link .* by the certificate in {cert} .*: {why}\. With"):
        PeerTls.of_files(files)
    PeerTls.of_files(TlsFiles(str(cert), str(key)))  # without --tls-client-ca nothing is verified
    tls = PeerTls.of_files(TlsFiles(good.cert, good.key, ours.ca))
    assert not tls.renew(str(cert), str(key))
    assert "links keep the certificate in use" in caplog.text


def test_tls_is_no_substitute_for_the_secret(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ours")

    @linked
    async def scene(two: Two) -> None:
        near = with_tls(two, S1, files_of(authority, "s1", checks=True), b"another secret" * 3)
        far = with_tls(two, S2, files_of(authority, "s2", checks=True))
        await two.listen_tcp(far)
        with pytest.raises(NotSent):
            await near.request_server(S2, CloseTable("t"))
        assert two.sides[S2].asks == []
        await near.close()
        await far.close()

    scene()


def test_a_renewed_certificate_is_that_of_later_links(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ours")
    first, second = authority.sign("s2"), authority.sign("s2")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"

    def install(pair: Pair, *, has_key: bool = True) -> None:
        cert.write_text(Path(pair.cert).read_text())
        key.write_text(Path(pair.key).read_text() if has_key else "no key")

    @linked
    async def scene(two: Two) -> None:
        install(first)
        tls = PeerTls.of_files(TlsFiles(str(cert), str(key), authority.ca))
        terms = LinkTerms(secret=SECRET, tls=tls)
        far = Peers(Hello("c", S2), two.addresses.get, two.sides[S2], terms)
        await two.listen_tcp(far)

        async def shown() -> bytes:
            near = with_tls(two, S1, files_of(authority, "s1", checks=True))
            await near.request_server(S2, CloseTable("t"))
            transport = near._small[S2]._transport
            assert transport is not None
            found = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
            await near.close()
            assert isinstance(found, bytes)
            return found

        def der(pair: Pair) -> bytes:
            return ssl.PEM_cert_to_DER_cert(Path(pair.cert).read_text())

        assert await shown() == der(first)
        install(second, has_key=False)
        assert not tls.renew(str(cert), str(key))
        assert await shown() == der(first)
        install(second)
        assert tls.renew(str(cert), str(key))
        assert await shown() == der(second)
        await far.close()

    scene()
