"""What ``--help`` shows below the options of each command. Every line of an example can be typed."""

from __future__ import annotations

ALL = """\
examples:
  consilium pki init certs
  consilium pki issue certs hub --profile arbiter --dns localhost --ip 127.0.0.1
  consilium pki issue certs claude_sonnet --profile participant
  consilium pki issue certs anna --profile operator --days 7
  consilium pki invite certs guest --profile participant --name guest_claude --host council.example
  consilium pki renew certs --all --if-within 10
  consilium pki revoke certs guest --reason key-compromise
  consilium pki list certs
  consilium pki verify certs/claude_sonnet
"""

INIT = """\
example:
  consilium pki init certs --trust-domain council.example --days 365

DIR/ca then holds the root and what it signs: participants, operators and servers, each of which signs one
kind of holder. Their keys are there too, with the revocation lists in crl.pem, and index.json, which says
what was issued and revoked. Whoever has this folder decides whom the council admits: keep a copy of it, and
keep it away from the seats.
"""

ISSUE = """\
examples:
  consilium pki issue certs hub --profile arbiter --dns arbiter --dns localhost --ip 127.0.0.1
  consilium pki issue certs claude_sonnet --profile participant
  consilium pki issue certs claude_sonnet --profile participant --replace     (the old one stays valid)
  consilium pki issue certs guest --profile visitor --profiles profiles.yaml

DIR/NAME then holds cert.pem, key.pem and ca.pem: all that this one holder needs. An Arbiter's also holds the
revocation lists, crl.pem, which `revoke` and `crl` renew as long as the folder is in DIR.
"""

RENEW = """\
examples:
  consilium pki renew certs hub
  consilium pki renew certs claude_sonnet --revoke                            (the old one is revoked)
  consilium pki renew certs --all --if-within 10

A renewed holder has the same identity, hosts and lifetime, and a new key. What it had stays valid until it
ends, so that nobody is cut off by a renewal; --revoke ends it. --all renews every holder whose folder is in
DIR, save those that were revoked, and the revocation lists. Run it at every start: where nothing is due, it
does nothing. The Arbiter takes its new certificate at `consilium admin reload`, a seat when it starts again.
"""

REVOKE = """\
examples:
  consilium pki revoke certs guest                               (all that guest still has)
  consilium pki revoke certs guest --reason key-compromise
  consilium pki revoke certs guest_claude_9F1C22A0               (the one that STATUS shows)

What is revoked stays so; `issue --replace` gives the holder another. New revocation lists are written to
DIR/ca/crl.pem and to every Arbiter's folder in DIR. An Arbiter elsewhere needs a copy of that file.
"""

CRL = """\
examples:
  consilium pki crl certs
  consilium pki crl certs --days 7

Makes the revocation lists anew without revoking anything: a list that is too old refuses every newcomer. The
Arbiter warns when half of a list's life is over. --days holds for the lists after it, too.
"""

LIST = """\
examples:
  consilium pki list certs
  consilium pki list certs --json
"""

BUNDLE = """\
examples:
  consilium pki bundle certs anna --out anna.p12                      (asks for a passphrase, twice)
  consilium pki bundle certs anna --out anna.p12 --passphrase-file secret.txt
  consilium pki bundle certs anna --out anna.pem --format pem --no-passphrase

FILE then holds the certificate, the key and the CA of this one holder, and is readable by its owner only.
Without an option the passphrase is taken from CONSILIUM_BUNDLE_PASSPHRASE, or asked for. Whoever gets hold of
FILE can try many passphrases a second: make it a long one.
"""

INVITE = """\
examples:
  consilium pki invite certs guest --profile participant --name guest_claude --host council.example
  consilium pki invite certs guest --profile visitor --profiles profiles.yaml --name guest_claude
  consilium pki invite certs guest --profile participant --name guest_qwen --preset llm --role sceptic
  consilium pki invite certs guest --profile participant --name guest_claude --passphrase-file secret --json

Issues a certificate to a holder NAME, puts it into one file, and prints the line to run on the other machine.
A passphrase is made up and shown once, at this terminal; send it another way than the file.

Whether the Arbiter admits the name is said by its own capability profiles, and not by the certificate. Those
that are built in let a holder sit under its own name, or under one that begins with it: guest, guest_claude.
If your Arbiter was started with --profiles FILE, name the same file here. A name that would not be admitted
is refused before anything is issued.
"""

SHOW = """\
example:
  consilium pki show certs/claude_sonnet
"""

VERIFY = """\
examples:
  consilium pki verify certs/claude_sonnet
  consilium pki verify received.pem --ca certs/ca/root/cert.pem --crl certs/ca/crl.pem

Revocation is asked of --crl PATH, or else of the authority in whose folder the certificate is, or of crl.pem
beside it. Exit code 0 when every step held, 1 when one failed, 2 when there was nothing to verify.
"""
