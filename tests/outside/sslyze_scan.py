"""Scan one port with a client certificate and write what counts as JSON. Runs in sslyze's own environment.

    python sslyze_scan.py PORT CERT KEY

The answer: ``{"reached": bool, "versions": {...}, "weak_ciphers": [...], ...}``, as `test_sslyze` judges it.
"""

import json
import sys
from pathlib import Path

from sslyze import Scanner, ServerNetworkConfiguration, ServerNetworkLocation, ServerScanRequest
from sslyze.server_setting import ClientAuthenticationCredentials

VERSIONS = ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1", "tls_1_2", "tls_1_3")


def main(port: str, cert: str, key: str) -> None:
    """Scan, and print."""
    request = ServerScanRequest(
        server_location=ServerNetworkLocation(hostname="localhost", port=int(port), ip_address="127.0.0.1"),
        network_configuration=ServerNetworkConfiguration(
            tls_server_name_indication="localhost",
            tls_client_auth_credentials=ClientAuthenticationCredentials(
                certificate_chain_path=Path(cert), key_path=Path(key)
            ),
        ),
    )
    scanner = Scanner()
    scanner.queue_scans([request])
    (scanned,) = scanner.get_results()
    if scanned.scan_result is None:
        json.dump({"reached": False, "why": str(scanned.connectivity_error_trace)}, sys.stdout)
        return
    found = scanned.scan_result
    attempts = {name: getattr(found, name) for name in found.__dataclass_fields__}

    def told(attempt: str, field: str) -> object:
        # What could not be tried has no result, and stands among the failed.
        value = getattr(attempts[attempt].result, field, None)
        return getattr(value, "value", value)

    suites = {name: attempts[f"{name}_cipher_suites"].result for name in VERSIONS}
    json.dump(
        {
            "reached": True,
            "failed": sorted(name for name, attempt in attempts.items() if attempt.status == "ERROR"),
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
                for deployment in found.certificate_info.result.certificate_deployments
            ],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
