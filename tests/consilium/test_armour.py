"""`consilium.armour`: blocks of one kind, whatever stands around them."""

from __future__ import annotations

from consilium.armour import blocks

ONE, TWO = (
    b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
    b"-----BEGIN CERTIFICATE-----\nBBBB\n-----END CERTIFICATE-----",
)
LIST = b"-----BEGIN X509 CRL-----\nCCCC\n-----END X509 CRL-----"


def test_blocks_of_a_kind_are_found_in_order_among_others_and_commentary() -> None:
    content = b"\xff of the \x80 council\n" + ONE + b"\n" + LIST + b"\r\nthe next\r\n" + TWO
    assert blocks(content, "CERTIFICATE") == [ONE, TWO]
    assert blocks(content, "X509 CRL") == [LIST]


def test_what_does_not_end_or_begins_in_the_middle_of_a_line_is_no_block() -> None:
    assert blocks(ONE[:-5], "CERTIFICATE") == []
    assert blocks(ONE.replace(b"-----\nAAAA", b"-----AAAA"), "CERTIFICATE") == []
    assert blocks(b"", "X509 CRL") == []
