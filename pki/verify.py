"""Is this certificate good, and if not, at which step does it fail? Without a network.

The steps: the key file (for a holder's folder), the chain to a trusted authority, the validity of every
certificate of that chain, whether one of them is revoked (where there are revocation lists), then each check
of the profile. A failed step does not hide the ones after it.
pyOpenSSL checks the chain as TLS would; it has no opinion on usages, which is why the profile is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from OpenSSL import crypto

from consilium.certificate import Finding, examine, validity
from consilium.credentials import CA, CERT, CRL, KEY
from consilium.errors import UserError
from pki.reading import called, der, read_certificates, read_lists, read_private_key
from pki.revocation import STEP, judge
from pki.terms import CA_FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography import x509

_NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which pyOpenSSL does not name: time is a step of its own here."""


_NOT_SIGNED = {18, 19, 20, 21}
"""OpenSSL's errors for a chain that ends somewhere else: self-signed (18, 19), issuer not found (20, 21)."""


@dataclass(frozen=True, slots=True)
class Report:
    """What verifying one certificate came to. ``lists`` is where the revocation lists were, if any were."""

    path: Path
    findings: tuple[Finding, ...]
    lists: Path | None

    @property
    def ok(self) -> bool:
        """Whether every step held."""
        return all(finding.ok for finding in self.findings)

    def as_json(self) -> dict[str, object]:
        """The report in a form that a program reads."""
        steps = [{"step": f.check, "ok": f.ok, "sentence": f.sentence} for f in self.findings]
        lists = None if self.lists is None else str(self.lists)
        return {"path": str(self.path), "ok": self.ok, "lists": lists, "steps": steps}

    def as_text(self) -> str:
        """The report in lines that a person reads."""
        width = max(len(finding.check) for finding in self.findings)
        lines = [f"  {'ok' if f.ok else 'FAILED':7}{f.check:{width}}  {f.sentence}" for f in self.findings]
        failed = sum(not finding.ok for finding in self.findings)
        verdict = f"not good: {failed} of {len(self.findings)} steps failed" if failed else "good"
        if self.lists is None:
            verdict += "; revocation was not asked, no list is at hand (--crl PATH)"
        return "\n".join([str(self.path), *lines, verdict, ""])


def verify(target: Path, *, ca: Path | None, now: float, crl: Path | None = None) -> Report:
    """Verify a holder's folder, or a file that begins with the certificate in question.

    ``ca`` holds the trust anchors; without it, the ``ca.pem`` beside the certificate does. ``crl`` holds the
    revocation lists; without it, ``crl.pem`` of the authority in whose folder the certificate is does, or the
    one beside it. Raises `UserError` when there is nothing to verify or nothing to verify it against.
    """
    path = target / CERT if target.is_dir() else target
    anchors_path = ca or path.parent / CA
    if ca is None and not anchors_path.exists():
        raise UserError(f"there is no {CA} beside {path}", hint="name the trusted authority: --ca PATH")
    chain = read_certificates(path)
    findings = [_key_file(path.parent / KEY, chain[0])] if target.is_dir() else []
    signed, trusted = _chain(chain, read_certificates(anchors_path))
    findings += [signed, *(_validity(certificate, now) for certificate in trusted)]
    lists = crl or _lists_near(path)
    if lists is not None and signed.ok:
        findings += _revocation(trusted, read_lists(lists), now)
    findings += examine(der(chain[0]))
    return Report(path, tuple(findings), lists)


def _lists_near(path: Path) -> Path | None:
    """The revocation lists nearest to a certificate at ``path``: the authority's, else an Arbiter's copy."""
    places = path.absolute().parent.parent / CA_FOLDER / CRL, path.parent / CRL
    return next((place for place in places if place.exists()), None)


def _revocation(
    chain: list[x509.Certificate], lists: list[x509.CertificateRevocationList], now: float
) -> list[Finding]:
    """What the lists say, each certificate by itself; and when they say yes, whether OpenSSL does too."""
    found = judge(chain, lists, now=now)
    if not all(finding.ok for finding in found) or len(chain) == 1:
        return found
    store = crypto.X509Store()
    store.add_cert(crypto.X509.from_cryptography(chain[-1]))
    for each in lists:
        store.add_crl(each)
    flags = crypto.X509StoreFlags
    store.set_flags(flags.X509_STRICT | flags.CRL_CHECK | flags.CRL_CHECK_ALL | _NO_CHECK_TIME)
    leaf, *others = [crypto.X509.from_cryptography(certificate) for certificate in chain[:-1]]
    try:
        crypto.X509StoreContext(store, leaf, others).verify_certificate()
    except crypto.X509StoreContextError as error:
        name = called(error.certificate.to_cryptography().subject)
        return [Finding(STEP, ok=False, sentence=f"{name}: OpenSSL refuses the lists: {error}")]
    return found


def _key_file(path: Path, certificate: x509.Certificate) -> Finding:
    try:
        key = read_private_key(path)
    except UserError as refusal:
        return Finding("key file", ok=False, sentence=refusal.message)
    if key.public_key() != certificate.public_key():
        return Finding("key file", ok=False, sentence=f"{path} is not the key of this certificate")
    return Finding(
        "key file", ok=True, sentence="the key belongs to this certificate, and is its owner's only"
    )


def _chain(
    chain: list[x509.Certificate], anchors: list[x509.Certificate]
) -> tuple[Finding, list[x509.Certificate]]:
    """Whether the chain ends in an anchor, and the certificates whose validity then matters."""
    store = crypto.X509Store()
    for anchor in anchors:
        store.add_cert(crypto.X509.from_cryptography(anchor))
    store.set_flags(crypto.X509StoreFlags.X509_STRICT | _NO_CHECK_TIME)
    leaf, *others = [crypto.X509.from_cryptography(certificate) for certificate in chain]
    try:
        verified = crypto.X509StoreContext(store, leaf, others).get_verified_chain()
    except crypto.X509StoreContextError as error:
        return Finding("chain", ok=False, sentence=_why(error, anchors)), chain[:1]
    found = [certificate.to_cryptography() for certificate in verified]
    _, *signers = [called(certificate.subject) for certificate in found]
    signed = f"signed by {', which is signed by '.join(signers)}, which is trusted"
    return Finding("chain", ok=True, sentence=signed if signers else "it is itself trusted"), found


def _why(error: crypto.X509StoreContextError, anchors: list[x509.Certificate]) -> str:
    """OpenSSL's reason, at which certificate, and the one mistake that names cannot show."""
    where = error.certificate.to_cryptography()
    name = called(where.subject)
    if error.errors[0] not in _NOT_SIGNED:
        return f"{name}: {error}"
    if any(anchor.subject == where.issuer for anchor in anchors):
        return f"{name} was not signed by the trusted authority, but by another of the same name ({error})"
    return f"{name} was not signed by a trusted authority ({error})"


def _validity(certificate: x509.Certificate, now: float) -> Finding:
    state = validity(der(certificate), now)
    sentence = f"{called(certificate.subject)}: {state.sentence}"
    return Finding("validity", ok=state.state == "valid", sentence=sentence)
