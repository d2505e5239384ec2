"""What pkilint says of every certificate and revocation list that the authority makes (RFC 5280)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest
from certificates import forge_root, issue_odd
from cryptography import x509
from outsiders import PATIENCE, issue_all, program

from pki.authority import Authority

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = [pytest.mark.outside, pytest.mark.timeout(300)]

ACCEPTED = {
    r'pkix\.invalid_uri_syntax: Invalid URI syntax: "spiffe://[a-z0-9./_-]+"': (
        "it knows the forms of a few registered schemes, and SPIFFE's is not among them"
    ),
    r'pkix\.invalid_domain_name_syntax: Invalid domain name syntax: "localhost"': (
        "it wants a dot in every host name, and this one has none"
    ),
}
"""What it finds that is meant so, and why."""


CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", re.DOTALL)
LIST = re.compile(rb"-----BEGIN X509 CRL-----.*?-----END X509 CRL-----\n", re.DOTALL)


def findings(tool: str, *words: str) -> set[str]:
    """What pkilint finds at severity WARNING and above: codes and sentences."""
    command = [program("pkilint", tool), "lint", "-s", "WARNING", "-f", "JSON", *words]
    done = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE)
    try:
        results = orjson.loads(done.stdout)["results"]
    except ValueError:
        pytest.fail(done.stderr.decode())
    found = {
        f"{told['code']}: {told.get('message', '')}"
        for result in results
        for told in result["finding_descriptions"]
    }
    # Its exit code counts them: nothing was lost on the way here.
    assert bool(found) == bool(done.returncode)
    return found


def unaccepted(found: Iterable[str]) -> set[str]:
    """Those that nobody has given a reason for."""
    return {each for each in found if not any(re.fullmatch(form, each) for form in ACCEPTED)}


def lint(certificate: bytes, folder: Path) -> set[str]:
    """What pkilint finds of a certificate; it reads one a file."""
    path = folder / "one.pem"
    path.write_bytes(certificate)
    return findings("lint_pkix_cert", "--document-format", "PEM", str(path))


def test_every_certificate_is_well_formed(tmp_path: Path) -> None:
    made = {
        each
        for path in issue_all(tmp_path).rglob("cert.pem")
        for each in CERTIFICATE.findall(path.read_bytes())
    }
    assert len(made) == 7, "a root, three intermediates, three holders"
    found = {
        x509.load_pem_x509_certificate(each).subject.rfc4514_string(): lint(each, tmp_path) for each in made
    }
    assert {name: unaccepted(each) for name, each in found.items() if unaccepted(each)} == {}
    unneeded = [
        form
        for form in ACCEPTED
        if not any(re.fullmatch(form, each) for each in set().union(*found.values()))
    ]
    assert not unneeded, "an exception that nothing needs"


def test_the_judgement_can_fail(tmp_path: Path) -> None:
    bad = issue_odd(forge_root(), names=[x509.DNSName("a..b")])
    assert unaccepted(lint(bad.pem, tmp_path))


def test_every_chain_and_list_is_well_formed(tmp_path: Path) -> None:
    certs = issue_all(tmp_path)
    authority = Authority.open(certs)
    authority.revoke("ada", reason="key-compromise")
    ca = certs / "ca"
    lists = LIST.findall((ca / "crl.pem").read_bytes())
    assert any(len(x509.load_pem_x509_crl(each)) for each in lists), "no list names the revoked certificate"
    for place, each in enumerate(lists):
        path = tmp_path / f"{place}.crl"
        path.write_bytes(each)
        told = findings("lint_crl", "-t", "CRL", "-p", "PKIX", "--document-format", "PEM", str(path))
        assert unaccepted(told) == set(), path
    for name in ("participants", "operators", "servers"):
        pair = [str(ca / "root" / "cert.pem"), str(ca / name / "cert.pem")]
        told = findings("lint_pkix_signer_signee_cert_chain", "--document-format", "PEM", *pair)
        assert unaccepted(told) == set(), name
