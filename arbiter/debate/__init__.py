"""The debate core: events in, effects out; no I/O, no clock, no randomness.

Read `machine` first; `states` says what is legal when, `effects` what the shell then does.
"""

from __future__ import annotations

from arbiter.debate.machine import Debate

__all__ = ["Debate"]
