"""Scan one port with a client certificate and write what counts as JSON. Runs in sslyze's own environment.

    python sslyze_scan.py PORT CERT KEY

The answer: ``{"reached": bool, "versions": {...}, "weak_ciphers": [...], ...}``, as `test_sslyze` judges it.
"""

import json
import sys
from pathlib import Path
from typing import Any

from sslyze import ScanCommand, Scanner, ServerNetworkConfiguration, ServerNetworkLocation, ServerScanRequest
from sslyze.server_setting import ClientAuthenticationCredentials

VERSIONS = ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1", "tls_1_2", "tls_1_3")


OLD = {
    ScanCommand.SSL_2_0_CIPHER_SUITES,
    ScanCommand.SSL_3_0_CIPHER_SUITES,
    ScanCommand.TLS_1_0_CIPHER_SUITES,
    ScanCommand.TLS_1_1_CIPHER_SUITES,
    ScanCommand.TLS_1_2_CIPHER_SUITES,
}


def _request(port: str, cert: Path, key: str, commands: set[ScanCommand]) -> ServerScanRequest:
    return ServerScanRequest(
        server_location=ServerNetworkLocation(hostname="localhost", port=int(port), ip_address="127.0.0.1"),
        network_configuration=ServerNetworkConfiguration(
            tls_server_name_indication="localhost",
            tls_client_auth_credentials=ClientAuthenticationCredentials(
                certificate_chain_path=cert, key_path=Path(key)
            ),
        ),
        scan_commands=commands,
    )


def main(port: str, cert: str, key: str) -> None:
    """Scan, and print."""
    # Its older OpenSSL, which speaks what ours does not, cannot read a certificate with its intermediate.
    leaf = Path(cert).with_name("leaf.pem")
    leaf.write_text(
        Path(cert).read_text().partition("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"
    )
    scanner = Scanner()
    scanner.queue_scans(
        [_request(port, Path(cert), key, set(ScanCommand) - OLD), _request(port, leaf, key, OLD)]
    )
    attempts: dict[str, Any] = {}
    for scanned in scanner.get_results():
        if scanned.scan_result is None:
            json.dump({"reached": False, "why": str(scanned.connectivity_error_trace)}, sys.stdout)
            return
        found = {
            name: getattr(scanned.scan_result, name) for name in scanned.scan_result.__dataclass_fields__
        }
        attempts |= {name: attempt for name, attempt in found.items() if attempt.status != "NOT_SCHEDULED"}
    failed = sorted(name for name, attempt in attempts.items() if attempt.result is None)
    suites = {name: attempts[f"{name}_cipher_suites"].result for name in VERSIONS}

    def told(attempt: str, field: str) -> object:
        # What could not be tried has no result, and stands among the failed.
        value = getattr(attempts[attempt].result, field, None)
        return getattr(value, "value", value)

    suites = {name: attempts[f"{name}_cipher_suites"].result for name in VERSIONS}
    json.dump(
        {
            "reached": True,
            "failed": failed,
            "versions": {name: result.is_tls_version_supported for name, result in suites.items()},
            "ciphers": {
                name: [each.cipher_suite.name for each in result.accepted_cipher_suites]
                for name, result in suites.items()
            },
            "early_data": told("tls_1_3_early_data", "supports_early_data"),
            "compression": told("tls_compression", "supports_compression"),
            "heartbleed": told("heartbleed", "is_vulnerable_to_heartbleed"),
            "ccs_injection": told("openssl_ccs_injection", "is_vulnerable_to_ccs_injection"),
            "robot": told("robot", "robot_result"),
            "renegotiation": told("session_renegotiation", "is_vulnerable_to_client_renegotiation_dos"),
            "resumed_by_id": told("session_resumption", "session_id_resumption_result"),
            "resumed_by_ticket": told("session_resumption", "tls_ticket_resumption_result"),
            "chain_in_order": [
                deployment.received_chain_has_valid_order
                for deployment in attempts["certificate_info"].result.certificate_deployments
            ],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
