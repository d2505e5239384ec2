"""The coverage gates: run after `coverage run -m pytest`, fails where a module is tested too little.

Pure modules are held to every branch, the rest to nine in ten.
"""

from __future__ import annotations

import subprocess
import sys

PURE = (
    "arbiter/debate/*,arbiter/admission.py,arbiter/permissions.py,arbiter/tokens.py,arbiter/translate.py,"
    "consilium/codec.py,consilium/config.py,consilium/conversation.py,consilium/errors.py,"
    "consilium/framing.py,consilium/identity.py,consilium/messages.py,consilium/profile.py,"
    "consilium/records.py,wrapper/clean.py,wrapper/envelope.py,wrapper/prompts.py,wrapper/turn.py"
)

GATES = ((PURE, 100), ("consilium/*,arbiter/*,wrapper/*,pki/*,council/*", 90))


def coverage(*arguments: str) -> int:
    """Run one coverage command."""
    return subprocess.run([sys.executable, "-m", "coverage", *arguments], check=False).returncode


def main() -> int:
    """Combine what every process measured, and judge it."""
    coverage("combine", "--quiet")
    failed = [
        percent
        for include, percent in GATES
        if coverage("report", f"--include={include}", f"--fail-under={percent}", "--precision=2")
    ]
    for percent in failed:
        print(f"coverage: below {percent} % of branches; the lines are listed above", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
