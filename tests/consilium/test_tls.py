"""`consilium.tls`: both ends of one session on real sockets, and every way in which it may end."""

from __future__ import annotations

import contextlib
import gc
import shutil
import ssl
import subprocess
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketListener
from anyio.streams.buffered import BufferedByteReceiveStream
from certificates import CLIENT_AUTH, DAY, SERVER_AUTH, forge_root, issue_odd
from edge_kit import HOSTS, Council, Watched, connect, drain, gather, outcome, reset, tcp, tls

from consilium import tls as tls_module
from consilium.credentials import Credentials
from consilium.errors import ChannelBroken, ChannelClosed, UserError
from consilium.tls import CLOSE_SECONDS, SEALED, SLICE, TlsStream, client_context, server_context

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

GARBAGE_RECORD = b"\x17\x03\x03\x00\x40" + b"\xaa" * 64
SIZES = [1, SLICE - 1, SLICE, SLICE + 1, 3 * SLICE, 16384, 16385, 300_000]


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Council:
    return Council(tmp_path_factory.mktemp("council"))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> float:
    """Make closing impatient, where a test has an end that never closes."""
    monkeypatch.setattr(tls_module, "CLOSE_SECONDS", 0.2)
    return 0.2


async def meet(client: ssl.SSLContext, server: ssl.SSLContext, name: str = "localhost") -> tuple[Any, Any]:
    """Return how a handshake ends: what the client reads or raises, and what the server raises."""

    async def be_client() -> bytes:
        stream = await connect(client_raw, client, name)
        try:
            return await stream.receive()
        finally:
            await stream.aclose()

    async def be_server() -> None:
        stream = await TlsStream.handshake(server_raw, server, server_side=True)
        await stream.send(b"welcome")
        await stream.aclose()

    async with tcp() as (client_raw, server_raw):
        heard, served = await gather(partial(outcome, be_client), partial(outcome, be_server))
    return heard, served


# Handshake: who is let in, and what the other is told


async def test_both_ends_authenticate_and_see_the_others_certificate(council: Council) -> None:
    async with tls(council) as ends:
        assert ends.server.peer_der == council.alice.leaf()
        assert ends.client.peer_der == council.arbiter.leaf()
        await ends.client.send(b"hello")
        assert await ends.server.receive() == b"hello"
        await ends.server.send(b"welcome")
        assert await ends.client.receive() == b"welcome"


async def test_an_arbiter_is_known_by_its_address_too(council: Council) -> None:
    assert await meet(council.client, council.server, "127.0.0.1") == (b"welcome", None)


@pytest.mark.parametrize(
    ("name", "odd", "client_hears", "server_says"),
    [
        (
            "expired",
            {"start": -2 * DAY, "seconds": DAY},
            "the Arbiter refused our certificate: certificate expired",
            "the client's certificate was refused: certificate has expired",
        ),
        (
            "early",
            {"start": DAY},
            (
                "the Arbiter refused our certificate: bad certificate "
                "(not yet valid, for another name, or damaged)"
            ),
            "the client's certificate was refused: certificate is not yet valid",
        ),
        (
            "server_only",
            {"usages": (SERVER_AUTH,)},
            "the Arbiter refused our certificate: unsupported certificate (issued for another use)",
            "the client's certificate was refused: it was issued for another use",
        ),
    ],
)
async def test_a_client_that_believed_itself_connected_reads_why_it_is_refused(
    council: Council, name: str, odd: dict[str, Any], client_hears: str, server_says: str
) -> None:
    refused = client_context(council.issue(name, **odd))
    heard, served = await meet(refused, council.server)
    assert isinstance(heard, ChannelBroken)
    assert str(heard) == client_hears
    assert isinstance(served, ChannelBroken)
    assert str(served) == server_says


async def test_a_seat_of_another_authority_of_the_same_name_is_refused(
    council: Council, tmp_path: Path
) -> None:
    stranger = issue_odd(forge_root()).write(tmp_path / "alice", anchors=council.arbiter.ca.read_bytes())
    heard, served = await meet(client_context(stranger), council.server)
    assert "the Arbiter refused" in str(heard)
    assert "the client's certificate was refused" in str(served)


async def test_a_self_signed_copy_of_nothing_known_is_refused_by_the_client(
    council: Council, tmp_path: Path
) -> None:
    other = Council(tmp_path)
    anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anonymous.load_verify_locations(other.alice.ca)
    heard, _ = await meet(anonymous, council.server)
    assert isinstance(heard, ChannelBroken)
    assert "the Arbiter's certificate was refused" in str(heard)


async def test_an_authority_that_is_not_trusted_is_named_as_the_cause(
    council: Council, tmp_path: Path
) -> None:
    root = forge_root("elsewhere.local")
    stranger = issue_odd(root, usages=(SERVER_AUTH,), names=HOSTS).write(tmp_path / "arbiter")
    heard, served = await meet(council.client, server_context(stranger))
    assert str(heard) == "the Arbiter's certificate was refused: an authority that we do not trust issued it"
    assert str(served) == "the client refused our certificate: unknown CA (another authority issued it)"


async def test_a_client_without_a_certificate_gets_the_alert_that_asks_for_one(council: Council) -> None:
    anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anonymous.load_verify_locations(council.alice.ca)
    heard, served = await meet(anonymous, council.server)
    assert str(heard) == "the Arbiter refused the connection: certificate required, and we sent none"
    assert str(served) == "the client sent no certificate"


async def test_tls_1_2_is_refused_with_an_alert(council: Council) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.load_verify_locations(council.alice.ca)
    old.load_cert_chain(council.alice.cert, council.alice.key)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    heard, served = await meet(old, council.server)
    assert str(heard) == "the Arbiter refused the connection: protocol version"
    assert str(served) == "the client does not keep to TLS 1.3: unsupported protocol"


async def test_a_seat_cannot_serve_as_the_arbiter(council: Council) -> None:
    impostor = server_context(council.issue("impostor", usages=(CLIENT_AUTH,), names=HOSTS))
    heard, served = await meet(council.client, impostor)
    assert str(heard) == "the Arbiter's certificate was refused: it was issued for another use"
    assert (
        str(served) == "the client refused our certificate: unsupported certificate (issued for another use)"
    )


async def test_an_arbiter_of_another_name_is_refused(council: Council) -> None:
    heard, served = await meet(council.client, council.server, "elsewhere.example")
    assert "Hostname mismatch, certificate is not valid for 'elsewhere.example'" in str(heard)
    assert "the client refused our certificate: bad certificate" in str(served)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "the client does not keep to TLS 1.3: http request"),
        (b"\x00" * 200, "the client does not keep to TLS 1.3: wrong version number"),
        (b"\x16\x03\x01\x00\x05abcde", "the client does not keep to TLS 1.3: unexpected message"),
        (b"", "the client hung up during the TLS handshake"),
        (b"\x16\x03\x01", "the client hung up during the TLS handshake"),
    ],
)
async def test_what_is_not_tls_is_refused_in_words(council: Council, sent: bytes, said: str) -> None:
    async with tcp() as (client_raw, server_raw):
        if sent:
            await client_raw.send(sent)
        await client_raw.send_eof()
        wire = Watched(server_raw)
        with pytest.raises(ChannelBroken) as refusal:
            await TlsStream.handshake(wire, council.server, server_side=True)
        assert str(refusal.value) == said
        assert wire.closed


def streams() -> list[TlsStream]:
    return [each for each in gc.get_objects() if isinstance(each, TlsStream)]


async def test_nothing_of_a_refused_peer_waits_for_the_garbage_collector(council: Council) -> None:
    gc.collect()
    gc.disable()
    try:
        before = streams()  # of other tests: what a fixture or a traceback still holds
        async with tcp() as (client, server):
            await client.send(b"GET / HTTP/1.1\r\n\r\n")
            with contextlib.suppress(ChannelBroken):
                await TlsStream.handshake(server, council.server, server_side=True)
            left = [each for each in streams() if not any(each is old for old in before)]
    finally:
        gc.enable()
    assert left == []


async def test_a_reset_during_the_handshake_is_told_as_one(council: Council) -> None:
    async with tcp() as (client_raw, server_raw):
        reset(client_raw)
        await client_raw.aclose()
        with pytest.raises(ChannelBroken, match="the connection to the client was lost: Connection reset"):
            await TlsStream.handshake(server_raw, council.server, server_side=True)


async def test_a_handshake_that_is_given_up_closes_the_socket(council: Council) -> None:
    async with tcp() as (client_raw, server_raw):
        wire = Watched(server_raw)
        with anyio.move_on_after(0.05) as scope:
            await TlsStream.handshake(wire, council.server, server_side=True)
        assert scope.cancelled_caught
        assert wire.closed
        with pytest.raises(anyio.EndOfStream):
            await client_raw.receive()


async def test_a_name_that_cannot_be_checked_closes_the_socket(council: Council) -> None:
    async with tcp() as (client_raw, _):
        wire = Watched(client_raw)
        with pytest.raises(ValueError, match="idna"):
            await connect(wire, council.client, ".example")
        assert wire.closed


async def test_a_refused_client_that_is_already_talking_still_reads_why(council: Council) -> None:
    # A close with the client's bytes unread would reset the connection and lose the alert.
    expired = client_context(council.issue("talkative", start=-2 * DAY, seconds=DAY))

    async def talk() -> None:
        stream = await connect(client_raw, expired)
        for _ in range(8):
            await stream.send(b"x" * 30_000)
            await anyio.sleep(0.01)
        try:
            await stream.receive()
        finally:
            await stream.aclose()

    async with tcp() as (client_raw, server_raw):
        heard, _ = await gather(
            partial(outcome, talk),
            partial(outcome, partial(TlsStream.handshake, server_raw, council.server, server_side=True)),
        )
    assert str(heard) == "the Arbiter refused our certificate: certificate expired"


# Contexts


def test_a_client_checks_name_chain_and_profile_strictly(council: Council) -> None:
    assert council.client.check_hostname
    assert council.client.verify_mode is ssl.CERT_REQUIRED
    assert council.client.minimum_version is ssl.TLSVersion.TLSv1_3
    assert council.client.verify_flags & ssl.VERIFY_X509_STRICT


def test_a_server_demands_a_certificate_and_issues_no_ticket(council: Council) -> None:
    assert council.server.verify_mode is ssl.CERT_REQUIRED
    assert council.server.minimum_version is ssl.TLSVersion.TLSv1_3
    assert council.server.verify_flags & ssl.VERIFY_X509_STRICT
    assert council.server.num_tickets == 0


@pytest.mark.parametrize(("tickets", "resumable"), [(0, False), (2, True)])
async def test_no_session_ticket_is_sent(council: Council, tickets: int, *, resumable: bool) -> None:
    # The second case proves that the probe would see one.
    server = server_context(council.arbiter)
    server.num_tickets = tickets
    async with tls(council, server=server) as ends:
        await ends.server.send(b"after any ticket")
        await ends.client.receive()
        session = ends.client._ssl.session
        assert session is not None
        assert session.has_ticket is resumable


def replaced(good: Credentials, tmp_path: Path, **files: bytes) -> Credentials:
    """Copy ``good`` with some of its files replaced."""
    paths = {}
    for part in ("cert", "key", "ca"):
        paths[part] = tmp_path / f"{part}.pem"
        paths[part].write_bytes(files.get(part, getattr(good, part).read_bytes()))
    return Credentials(**paths)


def locked(council: Council, tmp_path: Path) -> bytes:
    """Encrypt a key under a password."""
    key = tmp_path / "locked.pem"
    subprocess.run(
        ["openssl", "pkey", "-in", council.alice.key, "-aes256", "-passout", "pass:secret", "-out", key],
        check=True,
    )
    return key.read_bytes()


def test_a_key_that_does_not_fit_is_refused_by_name(council: Council, tmp_path: Path) -> None:
    mixed = replaced(council.alice, tmp_path, cert=council.issue("other", key="P-384").cert.read_bytes())
    with pytest.raises(
        UserError, match=r"cert\.pem with key .*key\.pem cannot be used: key values mismatch"
    ) as refusal:
        client_context(mixed)
    assert "consilium pki issue" in refusal.value.hint


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the locked key")
def test_a_key_under_a_password_is_refused_without_asking_for_it(council: Council, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be used"):
        server_context(replaced(council.alice, tmp_path, key=locked(council, tmp_path)))


def test_a_missing_certificate_is_refused_by_name(council: Council, tmp_path: Path) -> None:
    gone = Credentials(cert=tmp_path / "gone.pem", key=council.alice.key, ca=council.alice.ca)
    with pytest.raises(UserError, match=r"gone\.pem .*No such file"):
        client_context(gone)


def test_trust_anchors_that_are_none_are_refused_by_name(council: Council, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"trust anchors .*ca\.pem cannot be used"):
        client_context(replaced(council.alice, tmp_path, ca=b"nothing\n"))


# Text


@pytest.mark.parametrize("size", SIZES)
async def test_text_of_any_size_arrives_whole_in_both_directions(council: Council, size: int) -> None:
    text = bytes(range(251)) * (size // 251 + 1)
    text = text[:size]
    async with tls(council) as ends, anyio.create_task_group() as tasks:

        async def speak(stream: TlsStream) -> None:
            await stream.send(text)
            await stream.aclose()

        tasks.start_soon(speak, ends.client)
        assert await drain(ends.server) == text
        await ends.server.aclose()
    async with tls(council) as ends, anyio.create_task_group() as tasks:
        tasks.start_soon(speak, ends.server)
        assert await drain(ends.client) == text
        await ends.client.aclose()


@pytest.mark.parametrize("piece", [1, 7, 1000])
async def test_records_may_arrive_in_pieces(council: Council, piece: int) -> None:
    text = b"0123456789" * 700
    async with tls(council, size=piece) as ends, anyio.create_task_group() as tasks:
        tasks.start_soon(ends.client.send, text)
        received = b""
        while len(received) < len(text):
            received += await ends.server.receive()
        assert received == text


async def test_many_records_may_arrive_as_one_piece(council: Council) -> None:
    async with tls(council) as ends:
        for number in range(50):
            await ends.client.send(b"%d\n" % number)
        expected = b"".join(b"%d\n" % number for number in range(50))
        received = b""
        while len(received) < len(expected):
            received += await ends.server.receive()
        assert received == expected


class Late(Watched):
    """Keep back the end of the client's handshake until text follows it."""

    async def send(self, item: bytes) -> None:
        self.sent.append(item)
        if len(self.sent) == 1:
            await self.below.send(item)
        elif len(self.sent) == 3:
            await self.below.send(self.sent[1] + self.sent[2])


async def test_text_that_comes_with_the_end_of_the_handshake_is_not_lost(council: Council) -> None:
    words = b"first words " * 1000

    async def speak() -> TlsStream:
        stream = await connect(Late(client_raw), council.client)
        await stream.send(words)
        return stream

    async with tcp() as (client_raw, server_raw):
        _, server = await gather(
            speak, partial(TlsStream.handshake, server_raw, council.server, server_side=True)
        )
        assert server._in.pending <= SEALED
        received = b""
        while len(received) < len(words):
            received += await server.receive()
    assert received == words


async def test_one_task_receives_while_many_send(council: Council) -> None:
    lines = {b"%d:" % sender + b"%d" % sender * 40_000 for sender in range(10, 18)}

    async def collect(stream: TlsStream) -> set[bytes]:
        received = bytearray()
        while received.count(b"\n") < len(lines):
            received += await stream.receive()
        return set(bytes(received).split(b"\n")) - {b""}

    async with tls(council) as ends:
        results = await gather(
            *(partial(stream.send, line + b"\n") for stream in (ends.client, ends.server) for line in lines),
            partial(collect, ends.client),
            partial(collect, ends.server),
        )
    assert results[-2:] == [lines, lines]


class Measured:
    """A memory BIO that notes the most it ever held."""

    def __init__(self, bio: ssl.MemoryBIO) -> None:
        self.bio = bio
        self.most = 0

    def write(self, data: bytes) -> None:
        self.bio.write(data)
        self.most = max(self.most, self.bio.pending)

    def read(self) -> bytes:
        self.most = max(self.most, self.bio.pending)
        return self.bio.read()

    @property
    def pending(self) -> int:
        return self.bio.pending


async def test_no_memory_bio_ever_holds_much(council: Council) -> None:
    # A BIO never gives memory back: what it held once, the connection holds for life.
    async with tls(council) as ends, anyio.create_task_group() as tasks:
        incoming: Any = Measured(ends.server._in)
        outgoing: Any = Measured(ends.client._out)
        ends.server._in, ends.client._out = incoming, outgoing
        tasks.start_soon(ends.client.send, b"x" * 250_000)
        received = 0
        while received < 250_000:
            received += len(await ends.server.receive())
    assert incoming.most == outgoing.most == SEALED


# Ends


async def test_a_close_is_told_after_the_last_text_and_at_every_later_call(council: Council) -> None:
    async with tls(council) as ends, anyio.create_task_group() as tasks:
        await ends.client.send(b"last words")
        tasks.start_soon(ends.client.aclose)
        assert await ends.server.receive() == b"last words"
        for _ in range(2):
            with pytest.raises(ChannelClosed, match="the client closed the connection"):
                await ends.server.receive()
        with pytest.raises(ChannelClosed):
            await ends.server.send(b"too late")
        await ends.server.aclose()


async def test_an_end_without_close_notify_is_broken_not_closed(council: Council) -> None:
    async with tls(council) as ends:
        await ends.client.send(b"cut")
        await ends.client_raw.send_eof()
        assert await ends.server.receive() == b"cut"
        for _ in range(2):
            with pytest.raises(ChannelBroken, match="without a close_notify"):
                await ends.server.receive()


async def test_half_a_record_and_the_end_is_broken(council: Council) -> None:
    async with tls(council) as ends:
        await ends.client_raw.send(GARBAGE_RECORD[:30])
        await ends.client_raw.send_eof()
        with pytest.raises(ChannelBroken, match="without a close_notify"):
            await ends.server.receive()


async def test_a_reset_is_broken_for_reading_writing_and_closing(council: Council) -> None:
    async with tls(council) as ends:
        reset(ends.client_raw)
        await ends.client_raw.aclose()
        with pytest.raises(ChannelBroken, match="the connection to the client was lost: Connection reset"):
            await ends.server.receive()
        with pytest.raises(ChannelBroken):
            await ends.server.send(b"anybody there?")
        await ends.server.aclose()


async def test_a_send_that_meets_a_reset_says_so(council: Council) -> None:
    async with tls(council) as ends:
        reset(ends.server_raw)
        await ends.server_raw.aclose()
        await anyio.sleep(0.02)

        async def talk() -> None:
            for _ in range(20):
                await ends.client.send(b"x" * 1000)
                await anyio.sleep(0.005)

        with pytest.raises(ChannelBroken, match="the connection to the Arbiter was lost"):
            await talk()


@pytest.mark.parametrize("before", [b"", b"good text"])
async def test_a_garbage_record_gets_an_alert_and_spoils_nothing_that_came_before_it(
    council: Council, before: bytes
) -> None:
    async with tls(council) as ends:
        if before:
            await ends.client.send(before)
        await ends.client_raw.send(GARBAGE_RECORD)
        if before:
            assert await ends.server.receive() == before
        with pytest.raises(ChannelBroken, match=r"the client does not keep to TLS 1\.3: .*bad record mac"):
            await ends.server.receive()
        with pytest.raises(ChannelBroken, match="bad record mac"):
            await ends.server.send(b"more")
        with pytest.raises(ChannelBroken, match="the Arbiter refused the connection: bad record mac"):
            await ends.client.receive()


async def test_records_without_text_have_an_end(council: Council) -> None:
    # Tickets are what the standard library can send of them; a flood of KeyUpdates looks the same.
    flood = server_context(council.arbiter)
    flood.num_tickets = 200
    async with tls(council, server=flood) as ends:
        with pytest.raises(ChannelBroken, match="the Arbiter sends TLS records without any text"):
            await ends.client.receive()


async def test_closing_says_close_notify_even_when_its_owner_is_cancelled(council: Council) -> None:
    async def own(stream: TlsStream) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            await stream.aclose()

    async with tls(council) as ends, anyio.create_task_group() as tasks:
        tasks.start_soon(own, ends.server)
        await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            with pytest.raises(ChannelClosed, match="the Arbiter closed the connection"):
                await ends.client.receive()
            await ends.client.aclose()


async def test_closing_twice_is_closing_once(council: Council) -> None:
    async with tls(council) as ends:
        await gather(ends.client.aclose, ends.client.aclose, ends.server.aclose)
        await ends.client.aclose()
        with pytest.raises(ChannelClosed, match="this end closed"):
            await ends.client.receive()
        with pytest.raises(ChannelClosed, match="this end closed"):
            await ends.client.send(b"too late")


async def test_closing_an_end_that_is_receiving_ends_the_receive(council: Council, hasty: float) -> None:
    async with tls(council) as ends, anyio.create_task_group() as tasks:
        ended: list[Any] = []

        async def wait() -> None:
            ended.append(await outcome(ends.server.receive))

        tasks.start_soon(wait)
        await anyio.sleep(0.01)
        with anyio.fail_after(5 * hasty):
            await ends.server.aclose()
        await anyio.sleep(0.01)
        assert [type(end) for end in ended] == [ChannelClosed]
        assert str(ended[0]) == "this end closed the connection"


async def test_closing_waits_no_longer_than_its_bound_for_a_peer_that_does_not_read(
    council: Council, hasty: float
) -> None:
    async with tls(council) as ends, anyio.create_task_group() as tasks:
        ended: list[Any] = []
        interrupted = anyio.Event()

        async def shout() -> None:
            ended.append(await outcome(partial(ends.server.send, b"x" * 20_000_000)))
            interrupted.set()

        tasks.start_soon(shout)
        await anyio.sleep(0.1)
        with anyio.fail_after(5 * hasty):
            await ends.server.aclose()
            await interrupted.wait()
        assert isinstance(ended[0], ChannelClosed)


async def test_closing_waits_no_longer_than_its_bound_for_a_peer_that_does_not_close(
    council: Council, hasty: float
) -> None:
    async with tls(council) as ends:
        with anyio.fail_after(5 * hasty):
            await ends.server.aclose()


@pytest.mark.parametrize("reading", [False, True])
async def test_last_words_reach_a_peer_that_is_still_talking(council: Council, *, reading: bool) -> None:
    async def read() -> None:
        with contextlib.suppress(ChannelClosed):
            while reading:
                await ends.server.receive()

    async with tls(council) as ends, anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await ends.client.send(b"x" * 50_000)
        await ends.server.send(b"ERROR")
        tasks.start_soon(ends.server.aclose)
        tasks.start_soon(ends.server.aclose)  # does not cut the first one short
        for _ in range(10):
            await anyio.sleep(0.005)
            await ends.client.send(b"x" * 10_000)
        assert await drain(ends.client) == b"ERROR"
        await ends.client.aclose()


async def test_a_peer_that_floods_does_not_keep_a_closing_end(council: Council) -> None:
    ended: list[Any] = []

    async def flood() -> None:
        ended.append(await outcome(partial(ends.client.send, b"x" * 20_000_000)))

    async with tls(council) as ends:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flood)
            with anyio.fail_after(CLOSE_SECONDS * 0.9):
                await ends.server.aclose()
        assert "the connection to the Arbiter was lost" in str(ended[0])


async def test_a_send_that_was_interrupted_half_way_is_the_last_one_but_reading_goes_on(
    council: Council, hasty: float
) -> None:
    async with tls(council) as ends:
        with anyio.move_on_after(0.05) as scope:
            await ends.server.send(b"x" * 20_000_000)
        assert scope.cancelled_caught
        with pytest.raises(ChannelBroken, match="an earlier send was interrupted half-way"):
            await ends.server.send(b"more")
        await ends.client.send(b"still here")
        assert await ends.server.receive() == b"still here"
        await ends.client_raw.send(GARBAGE_RECORD)
        with pytest.raises(ChannelBroken, match="bad record mac"):
            await ends.server.receive()
        await ends.server.aclose()
        # Neither the alert nor a close_notify can follow half a record.
        assert len(ends.server_wire.sent[-1]) > 20_000_000


async def test_a_send_that_is_cancelled_while_it_waits_its_turn_harms_nothing(council: Council) -> None:
    async with tls(council) as ends, anyio.create_task_group() as tasks:
        tasks.start_soon(ends.server.send, b"x" * 20_000_000)
        await anyio.sleep(0.02)
        with anyio.move_on_after(0.05) as scope:
            await ends.server.send(b"never sent")
        assert scope.cancelled_caught
        received = 0
        while received < 20_000_000:
            received += len(await ends.client.receive())
        await ends.server.send(b"y")
        assert await ends.client.receive() == b"y"


# Reading that produces bytes to send: an alert, or the answer to a KeyUpdate


class Stuck(Watched):
    """Take no more bytes once told so."""

    stuck = False

    async def send(self, item: bytes) -> None:
        if self.stuck:
            await anyio.sleep_forever()
        await super().send(item)


async def test_an_alert_that_cannot_leave_does_not_hold_up_the_reader(council: Council, hasty: float) -> None:
    async with tcp() as (client_raw, server_raw):
        wire = Stuck(server_raw)
        _, server = await gather(
            partial(connect, client_raw, council.client),
            partial(TlsStream.handshake, wire, council.server, server_side=True),
        )
        wire.stuck = True
        await client_raw.send(GARBAGE_RECORD)
        with anyio.fail_after(5 * hasty), pytest.raises(ChannelBroken, match="bad record mac"):
            await server.receive()
        await server.aclose()


async def test_an_answer_waits_for_a_sender_but_the_reader_does_not(council: Council) -> None:
    async with tls(council) as ends, anyio.create_task_group() as tasks:
        tasks.start_soon(ends.server.send, b"x" * 20_000_000)
        await anyio.sleep(0.02)
        ends.server._ssl.write(b"answer")  # a record of OpenSSL's own looks the same from outside
        await ends.client.send(b"hello")
        with anyio.fail_after(CLOSE_SECONDS / 2):
            assert await ends.server.receive() == b"hello"
        received = bytearray()
        with anyio.fail_after(5):
            while len(received) < 20_000_006:
                received += await ends.client.receive()
        assert received.endswith(b"xanswer")


# KeyUpdate, which only another program can ask for


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl asks for the KeyUpdate")
async def test_a_key_update_is_answered_and_loses_nothing(council: Council) -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listeners:
        (listener,) = listeners.listeners
        assert isinstance(listener, SocketListener)
        port = listener.extra(SocketAttribute.local_port)
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_3", "-msg"]
        command += ["-cert", f"{council.alice.cert}", "-key", f"{council.alice.key}"]
        async with await anyio.open_process(command, stderr=subprocess.DEVNULL) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            shown = BufferedByteReceiveStream(client.stdout)
            server = await TlsStream.handshake(await listener.accept(), council.server, server_side=True)
            for line in (b"before\n", b"K\n", b"between\n", b"K\n", b"after\n"):
                await client.stdin.send(line)
                if line != b"K\n":
                    assert await server.receive() == line
                else:
                    await shown.receive_until(b">>> TLS 1.3, Handshake [length 0005], KeyUpdate", 65536)
            # The second request made the first one's answer due, though this end has sent nothing itself.
            await shown.receive_until(b"<<< TLS 1.3, Handshake [length 0005], KeyUpdate", 65536)
            await server.send(b"under the newest key\n")
            await shown.receive_until(b"under the newest key", 65536)
            client.terminate()
            await server.aclose()
