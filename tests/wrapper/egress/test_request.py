"""What a CONNECT request may ask for: a table of the allowed, and of everything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wrapper.egress.request import host_named, is_host, is_public
from wrapper.egress.verdicts import Outcome, RefusedError

ALLOWED = frozenset({"api.provider.test", "login.provider.test"})
BAD, METHOD, HOST, PORT = Outcome.MALFORMED, Outcome.METHOD, Outcome.HOST, Outcome.PORT


def request(target: str, *fields: str, method: str = "CONNECT", version: str = "HTTP/1.1") -> bytes:
    return "\r\n".join([f"{method} {target} {version}", *fields, "", ""]).encode()


@pytest.mark.parametrize(
    "head",
    [
        request("api.provider.test:443"),
        request("login.provider.test:443", version="HTTP/1.0"),
        request("api.provider.test:443", "Host: whatever:1", "Proxy-Connection: keep-alive", "X:"),
        request("api.provider.test:00443"),
    ],
)
def test_allowed(head: bytes) -> None:
    assert host_named(head, ALLOWED) in ALLOWED


@pytest.mark.parametrize(
    ("head", "outcome"),
    [
        (request("other.test:443"), HOST),
        (request("x.api.provider.test:443"), HOST),
        (request("provider.test:443"), HOST),
        (request("api.provider.test.:443"), HOST),
        (request("api.provider.test.evil.test:443"), HOST),
        (request("API.provider.test:443"), HOST),
        (request("user@api.provider.test:443"), HOST),
        (request("user:word@api.provider.test:443"), BAD),
        (request("api.provider.test@evil.test:443"), HOST),
        (request("api.provider.test%00.evil.test:443"), HOST),
        (request("api.provider.test/:443"), HOST),
        (request("93.184.216.34:443"), HOST),
        (request("0x5db8d822:443"), HOST),
        (request("1572395042:443"), HOST),
        (request("169.254.169.254:443"), HOST),
        (request("127.0.0.1:443"), HOST),
        (request("localhost:443"), HOST),
        (request("[::1]:443"), HOST),
        (request("[::ffff:127.0.0.1]:443"), HOST),
        (request("::1:443"), BAD),
        (request("arbiter:9998"), HOST),
        (request("api.provider.test:22"), PORT),
        (request("api.provider.test:0"), PORT),
        (request("api.provider.test:65979"), PORT),  # 443 if 16 bits were kept
        (request("api.provider.test:443443"), BAD),
        (request("api.provider.test:"), BAD),
        (request("api.provider.test"), BAD),
        (request("api.provider.test:-443"), BAD),
        (request("api.provider.test:443:443"), BAD),
        (request("api.provider.test:+443"), BAD),
        (request("api.provider.test:443#"), BAD),
        (request("https://api.provider.test:443"), BAD),
        (request("http://api.provider.test/", method="GET"), METHOD),
        (request("http://169.254.169.254/latest/meta-data", method="GET"), METHOD),
        (request("/", method="GET"), METHOD),
        (request("api.provider.test:443", method="connect"), METHOD),
        (request("api.provider.test:443", version="HTTP/2.0"), BAD),
        (request("api.provider.test:443", version="HTTP/1.1 "), BAD),
        (request("api.provider.test:443", method=" CONNECT"), BAD),
        (request("api.provider.test:443 x"), BAD),
        (request("api.provider.test:443\nHost: x"), BAD),
        (request("api.provider.test:443", "Host: a\nX: b"), BAD),
        (request("api.provider.test:443", "Host: a", " folded"), BAD),
        (request("api.provider.test:443", "no colon"), BAD),
        (request("api.provider.test:443", "X: a\0b"), BAD),
        (request("api.provider.test:443", "X : a"), BAD),
        (request("api.provider.test:443", "Content-Length: 5"), BAD),
        (request("api.provider.test:443", "transfer-ENCODING: chunked"), BAD),
        ("CONNECT äpi.provider.test:443 HTTP/1.1\r\n\r\n".encode(), BAD),
        (b"\x16\x03\x01\x00\x05hello\r\n\r\n", BAD),
        (b"\r\n\r\n", BAD),
    ],
)
def test_refused(head: bytes, outcome: Outcome) -> None:
    with pytest.raises(RefusedError) as raised:
        host_named(head, ALLOWED)
    assert raised.value.outcome is outcome
    assert len(raised.value.sentence) < 300
    assert raised.value.sentence.isprintable()


@given(st.binary(max_size=200))
def test_any_head_is_refused_where_nothing_is_allowed(junk: bytes) -> None:
    for head in (junk + b"\r\n\r\n", b"CONNECT " + junk + b" HTTP/1.1\r\n\r\n"):
        with pytest.raises(RefusedError) as refused:
            assert host_named(head, frozenset())
        assert refused.value.sentence.isprintable()


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::93.184.216.34", True),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("127.0.0.1", False),
        ("0.0.0.0", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("192.0.2.1", False),
        ("198.18.0.1", False),
        ("224.0.0.1", False),
        ("239.1.1.1", False),
        ("240.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:169.254.169.254", False),
        ("::127.0.0.1", False),
        ("64:ff9b::10.0.0.1", False),
        ("64:ff9b:1::1", False),
        ("2002:7f00:1::1", False),
        ("2001:0:7f00:1::1", False),
        ("2001:db8::1", False),
        ("fc00::1", False),
        ("fd00:ec2::254", False),
        ("fe80::1", False),
        ("fe80::1%eth0", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("127.1", False),
        ("a name", False),
        ("", False),
    ],
)
def test_addresses(address: str, *, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("api.provider.test", True),
        ("a-1.provider.test", True),
        ("Api.provider.test", False),
        ("*.provider.test", False),
        ("api.provider.test.", False),
        ("api..test", False),
        ("-a.test", False),
        ("localhost", False),
        ("93.184.216.34", False),
        ("api.provider.test:443", False),
        ("api.provider.test\n", False),
        (f"{'a' * 64}.test", False),
        (f"{'a.' * 130}test", False),
        ("", False),
    ],
)
def test_hosts(name: str, *, fits: bool) -> None:
    assert is_host(name) is fits
