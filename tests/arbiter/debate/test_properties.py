"""What holds for any sequence of events (architecture page, "The debate core"): see `any_debate`."""

from __future__ import annotations

from any_debate import AnyDebate
from hypothesis import settings

TestAnyDebate = AnyDebate.TestCase
TestAnyDebate.settings = settings(max_examples=120, stateful_step_count=60, deadline=None)
