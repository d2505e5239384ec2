from __future__ import annotations

import re

import pytest

from consilium import errors
from consilium.errors import (
    AdapterFault,
    ChannelBroken,
    ChannelClosed,
    ChannelError,
    ChannelRefused,
    ConsiliumError,
    ErrorCode,
    Objection,
    PeerError,
    TranscriptError,
    UserError,
)
from consilium.messages import Error, Fault, PromptSent


def test_every_code_is_its_own_name_and_fits_in_an_error_message() -> None:
    for code in ErrorCode:
        assert code.value == code.name
        assert Error(code=code.value, message="").code == code


def test_the_codes_of_the_specification_are_there() -> None:
    named = (
        "INVALID_STATE NOT_REGISTERED TURN_MISMATCH TIMEOUT POLICY_DENIED PROFILE_CAP"
        " DUPLICATE_DISPLAY_NAME PROTOCOL_VERSION_UNSUPPORTED NOT_OWNER"
    )
    assert set(named.split()) <= set(ErrorCode)


def test_a_peer_error_keeps_its_reason_apart_from_what_the_peer_is_told() -> None:
    error = PeerError(ErrorCode.MALFORMED, "not one JSON object", detail="line 1 column 5", in_reply_to="c-1")
    assert (error.code, error.message, error.detail) == (
        ErrorCode.MALFORMED,
        "not one JSON object",
        "line 1 column 5",
    )
    assert error.in_reply_to == "c-1"
    assert str(error) == "MALFORMED: not one JSON object (line 1 column 5)"


def test_a_peer_error_without_detail_ends_after_its_message() -> None:
    error = PeerError(ErrorCode.TIMEOUT, "too late")
    assert str(error) == "TIMEOUT: too late"
    assert error.in_reply_to is None


def test_a_user_error_says_the_way_out_on_a_line_of_its_own() -> None:
    assert str(UserError("no such file: a.yaml", hint="run: consilium init")) == (
        "no such file: a.yaml\n  run: consilium init"
    )
    bare = UserError("no such file: a.yaml")
    assert (str(bare), bare.message, bare.hint) == ("no such file: a.yaml", "no such file: a.yaml", "")


def test_an_adapter_fault_says_whether_the_prompt_may_have_arrived() -> None:
    fault = AdapterFault(Fault.STALLED, PromptSent.MAYBE, "nothing for 120 s")
    assert (fault.fault, fault.prompt_sent, fault.detail) == (
        Fault.STALLED,
        PromptSent.MAYBE,
        "nothing for 120 s",
    )
    assert str(fault) == "nothing for 120 s"


@pytest.mark.parametrize("kind", [ChannelClosed, ChannelBroken])
def test_both_ends_of_a_connection_are_caught_as_one(kind: type[ChannelError]) -> None:
    with pytest.raises(ChannelError, match="gone"):
        raise kind("gone")


def test_a_refusal_of_tls_reads_like_any_broken_connection_and_says_what_for() -> None:
    refused = ChannelRefused("the Arbiter refused our certificate", Objection.OWN_REVOKED)
    assert str(refused) == "the Arbiter refused our certificate"
    assert type(refused)(*refused.args).objection is Objection.OWN_REVOKED


def test_the_index_names_every_exception_under_its_base() -> None:
    defined = {
        kind.__name__
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, ConsiliumError)
    }
    assert defined == {
        kind.__name__ for kind in (ConsiliumError, ChannelError, ChannelClosed, ChannelBroken, ChannelRefused)
    } | {kind.__name__ for kind in (PeerError, UserError, AdapterFault, TranscriptError)}
    indexed = re.findall(r"^ +(?:[│├└─ ]+)?([A-Z]\w+)", errors.__doc__ or "", re.MULTILINE)
    assert set(indexed) == defined
