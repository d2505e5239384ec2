"""``verify``: what holds, and at which step it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from certificates import DAY, ODD, Forged, forge_root, issue_odd, key_usage
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from consilium.errors import UserError
from pki.authority import Authority
from pki.build import Signer
from pki.verify import Report, verify

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_800_000_000.0
ROOT = forge_root(now=NOW)


def failed(report: Report) -> dict[str, str]:
    return {finding.check: finding.sentence for finding in report.findings if not finding.ok}


def check(forged: Forged, tmp_path: Path, *, now: float = NOW, chain: bytes = b"") -> Report:
    forged.write(tmp_path / "seat", intermediates=chain)
    return verify(tmp_path / "seat", ca=None, now=now)


def authority_below(signer: Signer, *, cn: str, path_length: int | None = None, **odd: Any) -> Signer:
    forged = issue_odd(
        signer,
        cn=cn,
        names=[],
        usages=None,
        usage=key_usage("key_cert_sign", "crl_sign"),
        constraints=x509.BasicConstraints(ca=True, path_length=path_length),
        now=NOW,
        **odd,
    )
    return signer_of(forged)


def signer_of(forged: Forged) -> Signer:
    assert isinstance(forged.key, ec.EllipticCurvePrivateKey)
    return Signer(forged.certificate, forged.key)


def pem(*signers: Signer) -> bytes:
    return b"".join(each.certificate.public_bytes(serialization.Encoding.PEM) for each in signers)


def test_every_step_holds_for_what_the_authority_issues(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "pki", clock=lambda: NOW)
    authority.issue("seat", profile="participant")
    authority.issue("anna", profile="operator")
    authority.issue("hub", profile="arbiter", dns=["localhost"])
    for name in ("seat", "anna", "hub"):
        report = verify(tmp_path / "pki" / name, ca=None, now=NOW)
        assert report.ok
        assert not failed(report)
        assert [finding.check for finding in report.findings][:4] == [
            "key file",
            "chain",
            "validity",
            "validity",
        ]


def test_a_certificate_by_itself_is_verified_against_a_named_authority(tmp_path: Path) -> None:
    Authority.create(tmp_path / "pki", clock=lambda: NOW).issue("seat", profile="participant")
    (tmp_path / "received.pem").write_bytes((tmp_path / "pki" / "seat" / "cert.pem").read_bytes())
    report = verify(tmp_path / "received.pem", ca=tmp_path / "pki" / "ca" / "root" / "cert.pem", now=NOW)
    assert report.ok
    assert "key file" not in {finding.check for finding in report.findings}


def test_an_expired_certificate_fails_at_its_validity_and_nowhere_else(tmp_path: Path) -> None:
    report = check(issue_odd(ROOT, now=NOW, start=-33 * DAY), tmp_path)
    assert not report.ok
    assert failed(report) == {"validity": "seat: expired 3 days ago (2027-01-12 08:00:00 UTC)"}


def test_a_certificate_from_the_future_fails_at_its_validity(tmp_path: Path) -> None:
    report = check(issue_odd(ROOT, now=NOW, start=3 * DAY), tmp_path)
    assert failed(report)["validity"].startswith("seat: not valid for another 3 days")


def test_an_expired_authority_is_told_from_an_expired_leaf(tmp_path: Path) -> None:
    root = forge_root(now=NOW - 400 * DAY)
    report = check(issue_odd(root, now=NOW), tmp_path)
    assert list(failed(report)) == ["validity"]
    assert failed(report)["validity"].startswith("Consilium CA council.local: expired 35 days ago")


def test_another_authority_of_the_same_name_is_not_the_same(tmp_path: Path) -> None:
    forged = issue_odd(ROOT, now=NOW)
    forged.write(tmp_path / "seat")
    other = forge_root(now=NOW).certificate
    assert other.subject == ROOT.certificate.subject
    (tmp_path / "other.pem").write_bytes(other.public_bytes(serialization.Encoding.PEM))
    report = verify(tmp_path / "seat", ca=tmp_path / "other.pem", now=NOW)
    assert list(failed(report)) == ["chain"]
    assert failed(report)["chain"].startswith(
        "seat was not signed by the trusted authority, but by another of the same name ("
    )


def test_a_stranger_authority_is_not_trusted(tmp_path: Path) -> None:
    forged = issue_odd(ROOT, now=NOW)
    forged.write(tmp_path / "seat")
    other = forge_root("elsewhere.local", now=NOW).certificate
    (tmp_path / "other.pem").write_bytes(other.public_bytes(serialization.Encoding.PEM))
    report = verify(tmp_path / "seat", ca=tmp_path / "other.pem", now=NOW)
    assert failed(report)["chain"].startswith("seat was not signed by a trusted authority (")


def test_a_self_signed_copy_of_a_seat_is_not_trusted(tmp_path: Path) -> None:
    seat = issue_odd(ROOT, now=NOW)
    copy = issue_odd(signer_of(seat), key=seat.key, now=NOW)
    assert copy.certificate.issuer == copy.certificate.subject
    copy.write(tmp_path / "seat", anchors=seat.anchors)
    report = verify(tmp_path / "seat", ca=None, now=NOW)
    assert failed(report)["chain"].startswith("seat was not signed by a trusted authority (")


def test_a_damaged_signature_fails_the_chain(tmp_path: Path) -> None:
    der = bytearray(issue_odd(ROOT, now=NOW).der)
    der[-1] ^= 1
    damaged = x509.load_der_x509_certificate(bytes(der))
    (tmp_path / "seat.pem").write_bytes(damaged.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "ca.pem").write_bytes(issue_odd(ROOT).anchors)
    report = verify(tmp_path / "seat.pem", ca=None, now=NOW)
    assert failed(report) == {"chain": "seat: certificate signature failure"}


def test_a_leaf_cannot_sign_a_leaf(tmp_path: Path) -> None:
    seat = issue_odd(ROOT, now=NOW, cn="seat one")
    below = issue_odd(signer_of(seat), now=NOW, cn="seat two")
    below.write(tmp_path / "seat", intermediates=seat.pem, anchors=seat.anchors)
    assert list(failed(verify(tmp_path / "seat", ca=None, now=NOW))) == ["chain"]


def test_an_intermediate_below_an_intermediate_is_beyond_the_path_length(tmp_path: Path) -> None:
    one = authority_below(ROOT, cn="Seats")
    two = authority_below(one, cn="Seats of May")
    issue_odd(two, now=NOW).write(tmp_path / "seat", intermediates=pem(two, one), anchors=pem(ROOT))
    chain = failed(verify(tmp_path / "seat", ca=None, now=NOW))["chain"]
    assert chain == "Consilium CA council.local: path length constraint exceeded"


def test_intermediates_are_followed_to_a_root_that_allows_them(tmp_path: Path) -> None:
    root = authority_below(ROOT, cn="Consilium CA council.local", key=ROOT.key)
    one = authority_below(root, cn="Seats", path_length=1)
    two = authority_below(one, cn="Seats of May", path_length=0)
    issue_odd(two, now=NOW).write(tmp_path / "seat", intermediates=pem(two, one), anchors=pem(root))
    report = verify(tmp_path / "seat", ca=None, now=NOW)
    assert report.ok
    assert report.findings[1].sentence == (
        "signed by Seats of May, which is signed by Seats, "
        "which is signed by Consilium CA council.local, which is trusted"
    )
    assert [finding.check for finding in report.findings].count("validity") == 4


def test_an_expired_intermediate_is_named(tmp_path: Path) -> None:
    root = ROOT
    old = authority_below(root, cn="Seats", path_length=0, start=-40 * DAY)
    issue_odd(old, now=NOW).write(tmp_path / "seat", intermediates=pem(old), anchors=pem(root))
    problems = failed(verify(tmp_path / "seat", ca=None, now=NOW))
    assert problems == {"validity": "Seats: expired 10 days ago (2027-01-05 08:00:00 UTC)"}


@pytest.mark.parametrize("kind", [kind for kind in ODD if kind != "arbiter's identity"])
def test_an_odd_certificate_fails_the_same_check_as_on_the_wire(tmp_path: Path, kind: str) -> None:
    odd, why = ODD[kind]
    report = check(issue_odd(ROOT, now=NOW, **odd), tmp_path)
    assert not report.ok
    assert any(why in sentence for sentence in failed(report).values())


def test_a_chain_that_openssl_refuses_does_not_hide_the_profile(tmp_path: Path) -> None:
    forged = issue_odd(forge_root("elsewhere.local", now=NOW), now=NOW, usages=None)
    forged.write(tmp_path / "seat", anchors=issue_odd(ROOT).anchors)
    assert set(failed(verify(tmp_path / "seat", ca=None, now=NOW))) == {"chain", "extended key usage"}


def test_an_authoritys_own_certificate_is_trusted_and_of_no_use_to_a_seat(tmp_path: Path) -> None:
    Authority.create(tmp_path / "pki", clock=lambda: NOW)
    own = tmp_path / "pki" / "ca" / "root" / "cert.pem"
    report = verify(own, ca=own, now=NOW)
    chain = next(finding for finding in report.findings if finding.check == "chain")
    assert (chain.ok, chain.sentence) == (True, "it is itself trusted")
    assert "leaf" in failed(report)


def test_a_key_that_does_not_belong_is_noticed(tmp_path: Path) -> None:
    forged = issue_odd(ROOT, now=NOW)
    forged.write(tmp_path / "seat")
    (tmp_path / "seat" / "key.pem").write_bytes(issue_odd(ROOT, key="P-384").key_pem)
    report = verify(tmp_path / "seat", ca=None, now=NOW)
    assert failed(report) == {
        "key file": f"{tmp_path / 'seat' / 'key.pem'} is not the key of this certificate"
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda key: key.unlink(), "does not exist"),
        (lambda key: key.chmod(0o644), "is open to other users"),
        (lambda key: key.write_bytes(b"nothing"), "holds no private key in PEM form"),
    ],
    ids=["missing", "open", "broken"],
)
def test_a_key_file_that_will_not_do_is_a_failed_step(tmp_path: Path, change: object, why: str) -> None:
    issue_odd(ROOT, now=NOW).write(tmp_path / "seat")
    assert callable(change)
    change(tmp_path / "seat" / "key.pem")
    report = verify(tmp_path / "seat", ca=None, now=NOW)
    assert list(failed(report)) == ["key file"]
    assert why in failed(report)["key file"]


def test_without_an_authority_there_is_nothing_to_verify_against(tmp_path: Path) -> None:
    (tmp_path / "seat.pem").write_bytes(issue_odd(ROOT).pem)
    with pytest.raises(UserError, match=r"there is no ca\.pem beside") as refusal:
        verify(tmp_path / "seat.pem", ca=None, now=NOW)
    assert "--ca PATH" in refusal.value.hint


@pytest.mark.parametrize("content", [b"", b"prose", issue_odd(ROOT).key_pem, issue_odd(ROOT).pem[:100]])
def test_a_file_without_a_certificate_cannot_be_verified(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "seat.pem").write_bytes(content)
    (tmp_path / "ca.pem").write_bytes(issue_odd(ROOT).anchors)
    with pytest.raises(UserError, match="holds no certificate in PEM form"):
        verify(tmp_path / "seat.pem", ca=None, now=NOW)


def test_a_certificate_with_unreadable_extensions_cannot_be_verified(tmp_path: Path) -> None:
    broken = x509.UnrecognizedExtension(x509.SubjectInformationAccess.oid, b"\x05\x00")
    (tmp_path / "seat.pem").write_bytes(issue_odd(ROOT, extra=[(broken, False)]).pem)
    (tmp_path / "ca.pem").write_bytes(issue_odd(ROOT).anchors)
    with pytest.raises(UserError, match=r"seat\.pem: it cannot be read as a certificate of ours"):
        verify(tmp_path / "seat.pem", ca=None, now=NOW)


def test_the_report_reads_as_lines_with_a_verdict(tmp_path: Path) -> None:
    good = check(issue_odd(ROOT, now=NOW), tmp_path / "good").as_text().splitlines()
    assert good[0] == str(tmp_path / "good" / "seat" / "cert.pem")
    assert "  ok     chain               signed by Consilium CA council.local, which is trusted" in good
    assert good[-1] == "good; revocation was not asked, no list is at hand (--crl PATH)"
    bad = check(issue_odd(ROOT, now=NOW, usages=None), tmp_path / "bad").as_text().splitlines()
    assert [line for line in bad if line.startswith("  FAILED ")] == [
        "  FAILED extended key usage  the extended key usage is missing; it must be exactly clientAuth"
    ]
    assert bad[-1].startswith("not good: 1 of 12 steps failed; revocation was not asked")


def test_the_report_is_an_object_for_a_program(tmp_path: Path) -> None:
    report = check(issue_odd(ROOT, now=NOW, start=-33 * DAY), tmp_path).as_json()
    assert (report["path"], report["ok"]) == (str(tmp_path / "seat" / "cert.pem"), False)
    steps = report["steps"]
    assert isinstance(steps, list)
    assert steps[2] == {
        "step": "validity",
        "ok": False,
        "sentence": "seat: expired 3 days ago (2027-01-12 08:00:00 UTC)",
    }


def test_a_name_made_to_move_the_cursor_is_escaped_in_the_report(tmp_path: Path) -> None:
    report = check(issue_odd(ROOT, now=NOW, cn="\x1b]0;x\x07seat"), tmp_path)
    assert all(line.isprintable() for line in report.as_text().splitlines())
    assert "\\x1b]0;x\\x07seat: valid for another" in report.as_text()


# --- revocation ---------------------------------------------------------------------------------------


def revocation(report: Report) -> list[tuple[bool, str]]:
    return [(finding.ok, finding.sentence) for finding in report.findings if finding.check == "revocation"]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority.create(tmp_path / "pki", clock=lambda: NOW)
    made.issue("seat", profile="participant")
    made.issue("hub", profile="arbiter", dns=["localhost"])
    return made


@pytest.mark.parametrize("name", ["seat", "hub"])
def test_a_holder_in_its_authoritys_folder_is_asked_of_its_lists(authority: Authority, name: str) -> None:
    report = verify(authority.folder / name, ca=None, now=NOW)
    assert report.ok
    assert report.lists == authority.lists
    assert [ok for ok, _ in revocation(report)] == [True, True]
    assert report.as_text().endswith("\ngood\n")


def test_the_revoked_are_told_when_and_why(authority: Authority) -> None:
    authority.revoke("seat", reason="privilege-withdrawn")
    report = verify(authority.folder / "seat", ca=None, now=NOW + 3 * DAY)
    (ok, sentence), (above, _) = revocation(report)
    assert (ok, above, report.ok) == (False, True, False)
    assert sentence == (
        "seat was revoked 3 days ago (2027-01-15 08:00:00 UTC, reason: privilege-withdrawn), "
        "says list 2 of Consilium participants (council.local)"
    )
    assert report.as_json()["lists"] == str(authority.place / "crl.pem")


def test_a_list_that_is_too_old_is_told(authority: Authority) -> None:
    authority.publish(days=1)
    problems = failed(verify(authority.folder / "seat", ca=None, now=NOW + 4 * DAY))
    assert list(problems) == ["revocation"]
    assert "list 2 of Consilium CA council.local is too old by 3 days" in problems["revocation"]


def test_lists_can_be_named(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "kept.pem").write_bytes((authority.place / "crl.pem").read_bytes())
    authority.revoke("seat")
    seat = authority.folder / "seat"
    assert verify(seat, ca=None, crl=tmp_path / "kept.pem", now=NOW).ok
    assert not verify(seat, ca=None, crl=authority.place / "crl.pem", now=NOW).ok


def test_an_arbiter_elsewhere_is_asked_of_its_copy(authority: Authority, tmp_path: Path) -> None:
    (authority.folder / "hub").rename(tmp_path / "hub")
    report = verify(tmp_path / "hub", ca=None, now=NOW)
    assert (report.ok, report.lists) == (True, tmp_path / "hub" / "crl.pem")


def test_without_lists_revocation_is_not_asked_and_that_is_said(authority: Authority, tmp_path: Path) -> None:
    (authority.folder / "seat").rename(tmp_path / "carried")
    report = verify(tmp_path / "carried", ca=None, now=NOW)
    assert (report.ok, report.lists, revocation(report)) == (True, None, [])
    assert report.as_text().endswith("\ngood; revocation was not asked, no list is at hand (--crl PATH)\n")
    assert report.as_json()["lists"] is None


def test_openssl_has_the_last_word(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pki.verify.judge", lambda *_, **__: [])
    authority.revoke("seat")
    problems = failed(verify(authority.folder / "seat", ca=None, now=NOW))
    assert problems == {"revocation": "seat: OpenSSL refuses the lists: certificate revoked"}


BROKEN = {
    "empty": (b"", "holds no revocation list in PEM form"),
    "a certificate": (issue_odd(ROOT).pem, "holds no revocation list in PEM form"),
    "garbage in armour": (
        b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n",
        "holds a revocation list that cannot be read",
    ),
    "no base64": (
        b"-----BEGIN X509 CRL-----\n????\n-----END X509 CRL-----\n",
        "holds a revocation list that cannot be read",
    ),
}


@pytest.mark.parametrize(("content", "why"), BROKEN.values(), ids=BROKEN)
def test_lists_that_are_none_are_told(authority: Authority, tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "crl.pem").write_bytes(content)
    with pytest.raises(UserError, match=why):
        verify(authority.folder / "seat", ca=None, crl=tmp_path / "crl.pem", now=NOW)
