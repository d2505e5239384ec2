"""``list``: what was issued and what became of it."""

from __future__ import annotations

import pytest
from certificates import DAY

from pki.index import Index, Lists, Record
from pki.listing import as_json, as_text, sentence, state

NOW = 1_800_000_000.0


def record(name: str, serial: str, **other: object) -> Record:
    tree = {
        "name": name,
        "profile": "participant",
        "issuer": "participants",
        "uri": f"spiffe://council.local/participant/{name}",
        "days": 30,
        "serial": serial,
        "fingerprint": serial * 32,
        "not_before": int(NOW),
        "not_after": int(NOW + 30 * DAY),
    }
    return Record.model_validate(tree | other)


GONE = record("guest", "a1", revoked=int(NOW), reason="key-compromise")
STATES = [
    (record("seat", "a1"), NOW, "valid", "valid, ends in 30 days"),
    (record("seat", "a1"), NOW - 1, "not yet valid", "not yet valid"),
    (record("seat", "a1"), NOW + 30 * DAY, "expired", "expired 0 seconds ago"),
    (record("seat", "a1"), NOW + 33 * DAY, "expired", "expired 3 days ago"),
    (GONE, NOW + DAY, "revoked", "revoked 2027-01-15 08:00:00 UTC (key-compromise)"),
    (GONE, NOW + 90 * DAY, "revoked", "revoked 2027-01-15 08:00:00 UTC (key-compromise)"),
]


@pytest.mark.parametrize(("found", "now", "word", "told"), STATES)
def test_every_certificate_has_one_state(found: Record, now: float, word: str, told: str) -> None:
    assert (state(found, now), sentence(found, now)) == (word, told)


INDEX = Index(
    lists=Lists.first(NOW), issued=(record("guest", "a1"), record("hub", "b2"), record("guest", "c3"))
)


def test_the_text_has_a_line_for_each_and_marks_what_a_holder_got_last() -> None:
    lines = as_text(INDEX, NOW).splitlines()
    assert lines[0].split() == ["NAME", "PROFILE", "FINGERPRINT", "SERIAL", "STATE"]
    assert [line.split()[0] for line in lines[1:4]] == ["guest", "hub", "guest"]
    assert [" * " in line for line in lines[1:4]] == [False, True, True]
    assert "_A1A1A1A1" in lines[1]
    assert lines[4:] == ["revocation lists: number 1, good for another 30 days"]


def test_an_authority_that_has_issued_nothing_says_so() -> None:
    told = as_text(Index(lists=Lists.first(NOW)), NOW + 33 * DAY)
    assert told == (
        "nothing was issued yet\nrevocation lists: number 1, too old by 3 days: `consilium pki crl`\n"
    )


def test_the_json_holds_every_field() -> None:
    told = as_json(INDEX, NOW)
    first, second, third = told["certificates"]
    assert (first["latest"], second["latest"], third["latest"]) == (False, True, True)
    assert (first["suffix"], first["state"], first["ends_in"]) == ("A1A1A1A1", "valid", 30 * DAY)
    assert first["fingerprint"] == "a1" * 32
    assert told["lists"] == {
        "number": 1,
        "this_update": int(NOW) - 300,
        "next_update": int(NOW + 30 * DAY),
        "days": 30,
    }
