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


def certificates(certs: Path) -> list[Path]:
    """Every file that begins with a certificate."""
    return sorted(certs.rglob("cert.pem"))


def lint(path: Path) -> set[str]:
    """What pkilint finds of a certificate."""
    return findings("lint_pkix_cert", "--document-format", "PEM", str(path))


def test_every_certificate_is_well_formed(tmp_path: Path) -> None:
    made = certificates(issue_all(tmp_path))
    assert len(made) >= 4
    found = {path.parent.name: lint(path) for path in made}
    assert {name: unaccepted(each) for name, each in found.items() if unaccepted(each)} == {}
    unneeded = [
        form
        for form in ACCEPTED
        if not any(re.fullmatch(form, each) for each in set().union(*found.values()))
    ]
    assert not unneeded, "an exception that nothing needs"


def test_the_judgement_can_fail(tmp_path: Path) -> None:
    bad = issue_odd(forge_root(), names=[x509.DNSName("a..b")])
    path = tmp_path / "cert.pem"
    path.write_bytes(bad.pem)
    assert unaccepted(lint(path))
