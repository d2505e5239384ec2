"""Reference of P9: AutoGen's RoundRobinGroupChat of three AssistantAgents whose model answers at once.

An agent as it comes shows its model the whole debate so far, so that a turn costs the more, the longer the
debate. With ``--bounded`` it keeps the last two speeches, which is what a seat of ours is sent.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from itertools import pairwise

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_ext.models.replay import ReplayChatCompletionClient

from benchmarks.peers.common import SEATS, SPEAKERS, Taken, answer, questions, ready, speech, topic


def team(turns: int, *, bounded: bool) -> RoundRobinGroupChat:
    """A new debate of ``turns`` turns."""
    agents = []
    for place, name in enumerate(SPEAKERS):
        says = [speech(turn) for turn in range(place, turns + SEATS, SEATS)]
        memory = BufferedChatCompletionContext(buffer_size=2) if bounded else None
        agents.append(AssistantAgent(name, ReplayChatCompletionClient(says), model_context=memory))
    return RoundRobinGroupChat(agents, termination_condition=MaxMessageTermination(turns + 1))


async def take(turns: int, *, bounded: bool) -> Taken:
    """Hold a debate of ``turns`` turns. What it takes to set it up and to end it is not counted."""
    said = team(turns, bounded=bounded).run_stream(task=topic())
    marks = [(time.perf_counter(), time.process_time()) async for _ in said]
    marks = marks[: turns + 1]  # the topic, and the turns; then comes the result
    taken = [after - before for (before, _), (after, _) in pairwise(marks)]
    return Taken(taken, marks[-1][1] - marks[0][1])


def main() -> None:
    """Hold a debate for each question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bounded", action="store_true")
    args = parser.parse_args()
    ready()
    for turns in questions():
        answer(asyncio.run(take(turns, bounded=args.bounded)))


if __name__ == "__main__":
    main()
