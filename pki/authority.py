"""The authority of a council: one folder, its keys, and the certificates that it signs (§14.4).

    DIR/ca/root/{cert.pem,key.pem}               the root: signs the three below, and its own revocation list
    DIR/ca/participants/, operators/, servers/   what signs the holders: cert.pem, key.pem
    DIR/ca/crl.pem                               the current revocation lists of all four
    DIR/ca/index.json                            what was issued and revoked
    DIR/<name>/{cert.pem,key.pem,ca.pem}         one holder, ready to be copied to where it is used

An Arbiter's folder also has ``crl.pem``. A holder's ``cert.pem`` is the leaf and who signed it; ``ca.pem`` is
the root alone, so that an intermediate can be replaced without a change for those who verify.

Whatever writes holds the folder's lock and writes in this order: index, certificates, lists. What is
interrupted between two of these is whole, and put right by the next that writes.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from cryptography import x509

from consilium.certificate import validity
from consilium.credentials import CA, CERT, CRL, KEY, Credentials
from consilium.errors import UserError
from consilium.identity import MAX_LIFETIME_DAYS
from pki.build import build_leaf
from pki.index import Index, Lists, ListsBehind
from pki.names import check_days, check_name, check_trust_domain
from pki.outcomes import Published, Revocation
from pki.reading import called, der, is_usable, read_certificates
from pki.signers import (
    ISSUERS,
    is_numbered,
    key_pem,
    lists_pem,
    new_key,
    new_signers,
    pem,
    read_signer,
    trust_domain_of,
)
from pki.store import check_root, locked, make_root, read_index, replace_files, write_folder
from pki.terms import (
    CA_DAYS,
    CA_FOLDER,
    CRL_DAYS,
    INDEX,
    ISSUER_OF,
    LEAF_DAYS,
    MAX_CA_DAYS,
    MAX_CRL_DAYS,
    ROOT,
    TRUST_DOMAIN,
)
from pki.wanted import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pki.build import Leaf, Signer
    from pki.index import Record
    from pki.terms import Issuer, Reason


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority that can issue. Make one with `create` or `open`; ``clock`` gives the time in seconds."""

    folder: Path
    trust_domain: str
    root: x509.Certificate
    clock: Callable[[], float]

    @classmethod
    def create(
        cls,
        folder: Path,
        *,
        trust_domain: str = TRUST_DOMAIN,
        days: int = CA_DAYS,
        crl_days: int = CRL_DAYS,
        clock: Callable[[], float] = time.time,  # noqa: TID251 - this is the shell: the clock enters here
    ) -> Self:
        """Make a new authority in ``folder``, which may exist but must not hold one yet.

        Raises `UserError` for a trust domain or a number of days that cannot be, or a folder that cannot be
        used. An authority's key is never overwritten.
        """
        check_trust_domain(trust_domain)
        check_days(days, MAX_CA_DAYS)
        check_days(crl_days, MAX_CRL_DAYS)
        make_root(folder)
        now = clock()
        index = Index(lists=Lists.first(now, crl_days))
        signers = new_signers(trust_domain, now=now, days=days)
        files = {f"{name}/{CERT}": pem(signer.certificate) for name, signer in signers.items()}
        files |= {f"{name}/{KEY}": key_pem(signer.key) for name, signer in signers.items()}
        files |= {INDEX: index.written(), CRL: lists_pem(signers, index, index.lists)}
        write_folder(folder / CA_FOLDER, files, way_out="give another folder for another authority")
        return cls(folder, trust_domain, signers[ROOT].certificate, clock)

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        clock: Callable[[], float] = time.time,  # noqa: TID251 - as above
    ) -> Self:
        """Read the authority of ``folder``. Raises `UserError` when there is none that can be used."""
        path = folder / CA_FOLDER / ROOT / CERT
        if not path.parent.is_dir():
            raise UserError(f"there is no authority in {folder}", hint=f"consilium pki init {folder}")
        check_root(folder)
        check_root(folder / CA_FOLDER)
        root = read_certificates(path)[0]
        return cls(folder, trust_domain_of(root, path), root, clock)

    @property
    def place(self) -> Path:
        """The authority's own folder."""
        return self.folder / CA_FOLDER

    @property
    def lists(self) -> Path:
        """The current revocation lists: what an Arbiter elsewhere needs a copy of."""
        return self.place / CRL

    @property
    def anchors(self) -> bytes:
        """The PEM of what a holder shall trust: the content of ``ca.pem``."""
        return pem(self.root)

    @property
    def index(self) -> Index:
        """What was issued and revoked. Raises `UserError` when the file cannot be used."""
        path = self.place / INDEX
        try:
            return Index.read(read_index(path))
        except ValueError as cause:
            raise UserError(
                f"{path} is damaged, and nothing is issued without it",
                hint="put a copy back; without one, make a new authority in another folder",
            ) from cause

    def signer(self, name: str) -> Signer:
        """One of the four that sign, with its key. Raises `UserError` when it cannot be used."""
        return read_signer(self.place / name)

    def issue(
        self,
        name: str,
        *,
        profile: str,
        issuer: Issuer | None = None,
        dns: Sequence[str] = (),
        ips: Sequence[str] = (),
        days: int = LEAF_DAYS,
        replace: bool = False,
    ) -> Credentials:
        """Make a key and a certificate for ``name`` and write them to its folder.

        ``profile`` is the capability profile that the certificate names, ``issuer`` who signs it; without
        one, it is the one that signs this profile. ``dns`` and ``ips`` are the hosts of an Arbiter, and only
        of an Arbiter. The certificate ends with the authority's own, if that is earlier. Raises `UserError`
        when something asked for cannot be granted, or when the folder exists and ``replace`` was not asked
        for; the certificate that is replaced stays valid.
        """
        self.check_free(name, replace=replace)
        check_days(days, MAX_LIFETIME_DAYS)
        by = ISSUER_OF[profile] if issuer is None else issuer
        wanted = Wanted(name, profile, by, tuple(dns), tuple(ips), days)
        leaf = wanted.leaf(self.trust_domain)
        folder = self.folder / name
        with locked(self.place):
            self.check_free(name, replace=replace)
            self._deliver(wanted, leaf, exists=os.path.lexists(folder))
        return Credentials.load(folder)

    def check_free(self, name: str, *, replace: bool = False) -> None:
        """Raise `UserError` unless ``name`` can be a holder's, and is nobody's yet or may be replaced."""
        check_name(name)
        if os.path.lexists(self.folder / name) and not replace:
            raise UserError(
                f"{self.folder / name} is there already, and no key is overwritten",
                hint="--replace puts a new key and certificate in its place",
            )

    def renew(self, name: str, *, days: int | None = None, within: int | None = None) -> Record | None:
        """Give ``name`` a new key and certificate: same identity, hosts and, without ``days``, lifetime.

        With ``within``, only if what it has ends within so many days or cannot be used; else None is
        returned. What it had stays valid. Raises `UserError` when it has none, or when it was revoked.
        """
        if days is not None:
            check_days(days, MAX_LIFETIME_DAYS)
        with locked(self.place):
            old, folder = self._last(name), self.folder / name
            if old.revoked is not None:
                raise UserError(
                    f"the certificate of {name} was revoked, and is not renewed",
                    hint=f"if it shall take part again: consilium pki issue {self.folder} {name} "
                    f"--profile {old.profile} --replace",
                )
            if within is not None and not old.ends_within(self.clock(), within) and is_usable(folder):
                return None
            wanted = Wanted(name, old.profile, old.issuer, old.dns, old.ips, days or old.days)
            return self._deliver(wanted, wanted.leaf(self.trust_domain), exists=os.path.lexists(folder))

    def revoke(self, key: str, *, reason: Reason = "unspecified") -> Revocation:
        """Revoke what ``key`` names: all certificates of a holder that have not ended, or a single one.

        New lists are written, to the folder of every Arbiter too. Raises `UserError` when ``key`` names
        nothing, or several things.
        """
        with locked(self.place):
            now, index = self.clock(), self.index
            records = _alive(self._meant(index, key), key, now)
            before = tuple(record for record in records if record.revoked is not None)
            fresh = [record for record in records if record.revoked is None]
            index = index.with_revoked(fresh, now, reason)
            published = self._publish(index, now)
        serials = {record.serial for record in fresh}
        done = tuple(record for record in index.issued if record.serial in serials)
        return Revocation(done, before, published)

    def refresh(self, *, within: int) -> Published | None:
        """Make the revocation lists anew if they end within so many days, or if a copy of them is missing."""
        with locked(self.place):
            now, index = self.clock(), self.index
            copies = [self.lists, *(folder / CRL for folder in self._arbiters(index))]
            current = all(is_numbered(path, index.lists.number) for path in copies)
            if current and not index.lists.end_within(now, within):
                return None
            return self._publish(index, now)

    def publish(self, *, days: int | None = None) -> Published:
        """Make the revocation lists anew, good for ``days``, or for as long as the last ones were."""
        if days is not None:
            check_days(days, MAX_CRL_DAYS)
        with locked(self.place):
            return self._publish(self.index, self.clock(), days)

    def _last(self, name: str) -> Record:
        found = self.index.latest(name)
        if found is None:
            raise UserError(
                f"this authority has issued nothing to {name!r}",
                hint=f"to whom it has: consilium pki list {self.folder}",
            )
        return found

    def _meant(self, index: Index, key: str) -> list[Record]:
        readings = index.found(key)
        if not readings:
            raise UserError(
                f"this authority has issued nothing that is called {key!r}",
                hint=f"names, serials and fingerprints: consilium pki list {self.folder}",
            )
        if len(readings) > 1:
            raise UserError(
                f"{key!r} can mean {len(readings)} things here",
                hint=f"give the serial or the whole fingerprint: consilium pki list {self.folder} --json",
            )
        return readings[0]

    def _deliver(self, wanted: Wanted, leaf: Leaf, *, exists: bool) -> Record:
        now = self.clock()
        signer = self.signer(wanted.issuer)
        self._check_valid(signer.certificate, now)
        lists = {CRL: self._current_lists(now)} if wanted.issuer == "servers" else {}
        key = new_key()
        serial = x509.random_serial_number()
        certificate = build_leaf(signer, key.public_key(), leaf, serial=serial, now=now, days=wanted.days)
        record = wanted.record(leaf, certificate)
        index = self.index.with_issued(record)
        chain = pem(certificate) + pem(signer.certificate)
        files = {KEY: key_pem(key), CERT: chain, CA: self.anchors} | lists
        replace_files(self.place, {INDEX: index.written()})
        if exists:
            replace_files(self.folder / wanted.name, files)
        else:
            write_folder(self.folder / wanted.name, files)
        return record

    def _current_lists(self, now: float) -> bytes:
        """The lists as they are, made anew if they are too old to be of use or were not written."""
        path, index = self.lists, self.index
        if index.lists.end_within(now, 0) or not is_numbered(path, index.lists.number):
            self._publish(index, now)
        return path.read_bytes()

    def _publish(self, index: Index, now: float, days: int | None = None) -> Published:
        try:
            lists = index.lists.following(now, days)
        except ListsBehind as behind:
            raise UserError(f"{behind}: nothing was changed", hint="is this machine's clock right?") from None
        content = lists_pem({name: self.signer(name) for name in (ROOT, *ISSUERS)}, index, lists)
        replace_files(self.place, {INDEX: index.with_lists(lists).written()})
        replace_files(self.place, {CRL: content})
        written, failed = [self.lists], {}
        for folder in self._arbiters(index):
            try:
                replace_files(folder, {CRL: content})
            except UserError as refusal:
                failed[folder / CRL] = refusal.message
            else:
                written.append(folder / CRL)
        return Published(lists, tuple(written), failed)

    def _arbiters(self, index: Index) -> list[Path]:
        """The folders of Arbiters that are still here."""
        names = dict.fromkeys(record.name for record in index.issued if record.issuer == "servers")
        return [self.folder / name for name in names if os.path.lexists(self.folder / name)]

    def _check_valid(self, signer: x509.Certificate, now: float) -> None:
        state = validity(der(signer), now)
        if state.state != "valid":
            name = called(signer.subject)
            raise UserError(
                f"the authority in {self.folder} cannot issue: {name} is {state.sentence}",
                hint="check this machine's clock, or make a new authority in another folder",
            )


def _alive(records: list[Record], key: str, now: float) -> list[Record]:
    alive = [record for record in records if record.not_after > now]
    if not alive:
        raise UserError(
            f"every certificate that {key!r} names has expired", hint="an expired certificate admits nobody"
        )
    return alive
