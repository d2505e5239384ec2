"""The coverage gates: run after `coverage run -m pytest`, fails where a module is tested too little.

Pure modules are held to every branch, the rest to nine in ten.
"""

from __future__ import annotations

import subprocess
import sys

PURE = (
    "arbiter/debate/*,arbiter/admission.py,arbiter/permissions.py,arbiter/tokens.py,arbiter/translate.py",
    "arbiter/changes.py,arbiter/edge/limits.py,arbiter/metrics/catalogue.py,arbiter/metrics/tally.py,arbiter/revocation.py",
    "consilium/armour.py,consilium/bucket.py,consilium/chain.py,consilium/codec.py,consilium/config.py",
    "consilium/conversation.py",
    "consilium/errors.py,consilium/findings.py,consilium/framing.py,consilium/governing.py,consilium/identity.py",
    "consilium/inspection.py,consilium/messages.py,consilium/profile.py,consilium/records.py,consilium/words.py",
    "consilium/naming.py,consilium/pausing.py",
    "council/course.py,council/plan.py,council/status.py,council/summary.py",
    "council/tally.py,council/telling.py",
    "council/conformance/table.py,council/conformance/verdicts.py",
    "pki/build.py,pki/index.py,pki/listing.py,pki/names.py,pki/revocation.py,pki/wanted.py",
    "wrapper/adapters/chats.py,wrapper/adapters/faults.py,wrapper/adapters/parts.py,wrapper/adapters/reading.py",
    "wrapper/adapters/gaps.py,wrapper/adapters/logins.py,wrapper/adapters/people.py,wrapper/adapters/templates.py,wrapper/adapters/trying.py",
    "wrapper/clean.py,wrapper/envelope.py,wrapper/events.py,wrapper/floor.py,wrapper/prompts.py",
    "wrapper/human/commands.py,wrapper/human/draft.py,wrapper/human/keys.py,wrapper/human/pages.py",
    "wrapper/presence.py,wrapper/telling.py",
    "wrapper/egress/hello.py,wrapper/egress/request.py,wrapper/egress/verdicts.py",
    "wrapper/isolation/attempts.py,wrapper/isolation/fence.py,wrapper/isolation/launch.py",
    "wrapper/reconnection.py,wrapper/refusals.py,wrapper/turn.py",
    "wrapper/adapters/screens.py,wrapper/terminal/emulator.py,wrapper/terminal/keys.py",
    "wrapper/terminal/queries.py,wrapper/terminal/reading.py,wrapper/terminal/stream.py",
)

GATES = ((",".join(PURE), 100), ("consilium/*,arbiter/*,wrapper/*,pki/*,council/*", 90))


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
        sys.stderr.write(f"coverage: below {percent} % of branches; the lines are listed above\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
