"""Data tokens: one use, thirty seconds, one certificate, one session; every refusal reads the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbiter.tokens import LIFETIME, TokenLedger
from consilium.errors import ErrorCode, PeerError

ADA, BOB = b"a" * 32, b"b" * 32
START = 50.0


@pytest.fixture
def ledger() -> TokenLedger:
    ledger = TokenLedger()
    ledger.issue("of-ada", "session-ada", ADA, START)
    ledger.issue("of-bob", "session-bob", BOB, START)
    return ledger


def refused(act: Callable[[], None]) -> PeerError:
    with pytest.raises(PeerError) as refusal:
        act()
    return refusal.value


def test_a_token_is_good_once(ledger: TokenLedger) -> None:
    ledger.strike("of-ada", "session-ada", ADA, START)
    again = refused(lambda: ledger.strike("of-ada", "session-ada", ADA, START))
    assert again.code is ErrorCode.TOKEN_REFUSED


WRONG: dict[str, tuple[str, str, bytes, float]] = {
    # token, session, certificate, seconds later
    "unknown token": ("of-nobody", "session-ada", ADA, 0),
    "empty token": ("", "session-ada", ADA, 0),
    "another's token": ("of-bob", "session-ada", ADA, 0),
    "another's certificate": ("of-ada", "session-ada", BOB, 0),
    "a certificate that begins alike": ("of-ada", "session-ada", ADA[:31] + b"x", 0),
    "another's session": ("of-ada", "session-bob", ADA, 0),
    "no session": ("of-ada", "", ADA, 0),
    "a session that is no ASCII": ("of-ada", "sessión", ADA, 0),
    "too late": ("of-ada", "session-ada", ADA, LIFETIME),
    "much too late": ("of-ada", "session-ada", ADA, 1e9),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_every_refusal_reads_the_same(ledger: TokenLedger, wrong: tuple[str, str, bytes, float]) -> None:
    token, session, fingerprint, later = wrong
    refusal = refused(lambda: ledger.strike(token, session, fingerprint, START + later))
    unknown = refused(lambda: TokenLedger().strike("x", "y", ADA, START))
    assert (refusal.code, refusal.message, str(refusal)) == (unknown.code, unknown.message, str(unknown))
    assert token not in str(refusal) or not token


@pytest.mark.parametrize("wrong", [w for w in WRONG.values() if w[3] == 0])
def test_a_wrong_use_does_not_consume_it(ledger: TokenLedger, wrong: tuple[str, str, bytes, float]) -> None:
    refused(lambda: ledger.strike(*wrong[:3], START + wrong[3]))
    ledger.strike("of-ada", "session-ada", ADA, START)
    ledger.strike("of-bob", "session-bob", BOB, START)


def test_a_token_holds_to_the_end_of_its_time_and_not_longer(ledger: TokenLedger) -> None:
    ledger.strike("of-ada", "session-ada", ADA, START + LIFETIME - 0.001)
    refused(lambda: ledger.strike("of-bob", "session-bob", BOB, START + LIFETIME))


def test_a_void_session_has_no_token(ledger: TokenLedger) -> None:
    ledger.void("session-ada")
    ledger.void("session-nobody")
    refused(lambda: ledger.strike("of-ada", "session-ada", ADA, START))
    ledger.strike("of-bob", "session-bob", BOB, START)


def test_a_second_token_makes_the_first_of_its_session_worthless(ledger: TokenLedger) -> None:
    ledger.issue("of-ada-again", "session-ada", ADA, START + 1)
    refused(lambda: ledger.strike("of-ada", "session-ada", ADA, START + 1))
    ledger.strike("of-ada-again", "session-ada", ADA, START + 1)


def test_what_expired_is_not_kept(ledger: TokenLedger) -> None:
    for number in range(1000):
        ledger.issue(f"token-{number}", f"session-{number}", ADA, START + number)
    assert len(ledger) <= LIFETIME + 1


def test_the_token_itself_is_nowhere_in_the_ledger(ledger: TokenLedger) -> None:
    held = repr(vars(ledger))
    assert "session-ada" in held
    assert "of-ada" not in held


@given(
    uses=st.lists(
        st.tuples(
            st.sampled_from(["of-ada", "of-bob", "of-nobody"]),
            st.sampled_from(["session-ada", "session-bob"]),
            st.sampled_from([ADA, BOB]),
            st.floats(0, 2 * LIFETIME),
        ),
        max_size=12,
    )
)
def test_of_any_uses_the_first_right_one_in_time_succeeds_and_no_other(
    uses: list[tuple[str, str, bytes, float]],
) -> None:
    ledger = TokenLedger()
    ledger.issue("of-ada", "session-ada", ADA, START)
    ledger.issue("of-bob", "session-bob", BOB, START)
    right = {("of-ada", "session-ada", ADA), ("of-bob", "session-bob", BOB)}
    for token, session, fingerprint, later in sorted(uses, key=lambda use: use[3]):
        use = (token, session, fingerprint)
        if use in right and later < LIFETIME:
            ledger.strike(*use, START + later)
            right.discard(use)
        else:
            with pytest.raises(PeerError):
                ledger.strike(*use, START + later)
