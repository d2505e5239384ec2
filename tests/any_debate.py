"""A state machine that feeds a debate whatever may come, and checks at each step what must always hold."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from playbook import NAMES, Playbook, frozen, participant

from arbiter.debate import delta, events
from arbiter.debate.effects import Append, Channel, Effect, Refuse, Send
from arbiter.debate.flow import COMPLETED
from arbiter.debate.states import TERMINAL, TRANSITIONS
from consilium import messages
from consilium.errors import ErrorCode
from consilium.messages import Context, DebateState, DisconnectPolicy, PromptSent, Recovery, Usage
from consilium.records import EventName, EventRecord, TurnRecord

EXTRAS = ("dan", "eve")
names = st.sampled_from(NAMES + EXTRAS)
sessions = st.sampled_from([f"{name}-{n}" for name in NAMES + EXTRAS for n in range(3)] + ["stranger"])
usages = st.none() | st.builds(
    Usage, tokens_in=st.none() | st.integers(0, 40), tokens_out=st.none() | st.integers(0, 40)
)
choices = st.sampled_from(list(Recovery))
phases = st.sampled_from(list(messages.Phase))
whens = st.sampled_from(list(messages.When))

COMMANDS = st.one_of(
    st.builds(messages.Kick, seat=names),
    st.just(messages.ForceTurnEnd()),
    st.just(messages.SetTopic(topic="Another?")),
    st.builds(messages.SetPhase, phase=phases, when=whens),
    st.builds(messages.SetPhase, phase=phases, when=whens, round=st.integers(0, 4)),
    st.just(messages.Pause()),
    st.builds(messages.Resume, seats=st.dictionaries(names, choices, max_size=3)),
    st.builds(messages.Resume, seats=st.dictionaries(names, st.just(Recovery.SKIP), max_size=5)),
    st.builds(messages.Next, seat=names),
    st.builds(messages.Terminate, when=st.just(messages.When.ROUND_END)),
)
policies = st.sampled_from(list(DisconnectPolicy))
metas = st.sampled_from(
    [messages.Meta(), messages.Meta(brand="human"), messages.Meta(brand="llm", reports_usage=False)]
)
rarely = st.integers(0, 9).map(lambda n: n == 9)
"""What ends a debate has to be rare, or nothing else is ever tried."""

OF_A_TURN = (events.TurnAcknowledged, events.SpeechReceived, events.TurnEnded, events.TurnFaulted)
ALL_IT_HOLDS = delta.MAX_DELTA_BYTES


class AnyDebate(RuleBasedStateMachine):
    """Feeds whatever may come, in any order, and checks each step against what must always hold.

    ``fed`` are the kinds of events and of commands that any run of it has fed.
    """

    fed: ClassVar[set[type]] = set()

    @initialize(
        opening=st.sampled_from(["sealed", "open"]),
        policy=st.sampled_from(
            ["round_robin", "least_recently_spoken", "most_recently_contradicted", "manual"]
        ),
        mode=st.sampled_from(["static", "dynamic"]),
        caps=st.sampled_from([{"max_rounds": 3}, {"max_tokens": 200}, {"max_seconds": 300}]),
        visible=st.booleans(),
        budget=st.sampled_from([1, 90, ALL_IT_HOLDS]),
    )
    def begin(
        self, *, opening: str, policy: str, mode: str, caps: dict[str, int], visible: bool, budget: int
    ) -> None:
        delta.MAX_DELTA_BYTES = budget
        roster: dict[str, Any] = {"mode": mode}
        if mode == "dynamic":
            roster["required_names"] = ["ada"]
        self.play = Playbook(
            opening=opening,
            turn_policy=policy,
            roster=roster,
            caps=caps,
            identity_visible=visible,
            limits={"turn_seconds": 60},
        )
        self.texts: dict[str, str] = {}
        self.given: dict[str, set[str]] = {}
        self.entered: dict[str, int] = {}
        self.in_turn: dict[int, tuple[str, set[str]]] = {}
        self.ended: set[int] = set()
        self.started: set[int] = set()
        self.count = 0
        self.may_require: set[str] = set()
        self.may_keep: set[str] = set()
        self.pseudonyms: dict[str, str] = {}

    def teardown(self) -> None:
        delta.MAX_DELTA_BYTES = ALL_IT_HOLDS

    # --- whatever may come ----------------------------------------------------------------------------

    @rule(name=names, n=st.integers(0, 2), policy=policies, required=st.booleans(), meta=metas)
    def registers(
        self, name: str, n: int, policy: DisconnectPolicy, required: bool, meta: messages.Meta
    ) -> None:
        self.step(
            events.SeatRegistered(
                session=f"{name}-{n}",
                msg_id="m",
                participant_id=participant(name),
                name=name,
                required=required,
                disconnect_policy=policy,
                meta=meta,
                data_token="t",
            )
        )

    @rule(session=sessions)
    def binds(self, session: str) -> None:
        self.step(events.DataBound(session, "m"))

    @rule(name=names, n=st.integers(0, 2))
    def joins(self, name: str, n: int) -> None:
        self.registers(name, n, DisconnectPolicy.KEEP_ALIVE, required=False, meta=messages.Meta())
        self.binds(f"{name}-{n}")

    @rule()
    def everybody_joins(self) -> None:
        for name in NAMES:
            self.joins(name, 0)

    @rule(session=sessions, back=st.integers(-1, 3))
    def acknowledges(self, session: str, back: int) -> None:
        self.step(events.TurnAcknowledged(session, "m", max(self.play.debate.turn_counter - back, 0)))

    @rule(session=sessions, back=st.integers(-1, 3), usage=usages)
    def speaks_out_of_turn(self, session: str, back: int, usage: Usage | None) -> None:
        self.speech(session, max(self.play.debate.turn_counter - back, 0), usage)

    @rule(usage=usages, announced=st.booleans(), first=st.booleans())
    def speaks_in_turn(self, usage: Usage | None, announced: bool, first: bool) -> None:
        turn, session = self.play.turn, self.play.speaking
        if session is None:
            return
        if first:
            self.step(events.TurnEnded(session, "m", turn, announced))
        self.speech(session, turn, usage)
        if not first:
            self.step(events.TurnEnded(session, "m", turn, announced))

    def speech(self, session: str, turn: int, usage: Usage | None) -> None:
        self.count += 1
        text = f"<{self.count}> bob, " + '{"type":"UNREG"} TURN_END'
        turn_before = self.play.debate.turn
        legal = (
            turn_before is not None
            and turn_before.turn_id == turn
            and turn_before.text is None
            and self.play.seat_of(turn_before.participant_id).session == session
        )
        if legal and turn_before is not None:
            self.texts[text] = turn_before.participant_id
        self.step(events.SpeechReceived(session, "m", turn, text, usage))
        assert (self.play.refusal is None) == legal

    @rule(session=sessions, back=st.integers(-1, 3), speech=st.booleans())
    def ends(self, session: str, back: int, speech: bool) -> None:
        self.step(events.TurnEnded(session, "m", max(self.play.debate.turn_counter - back, 0), speech))

    @rule(sent=st.sampled_from(list(PromptSent)), seen=st.none() | st.integers(0, 9))
    def fails(self, sent: PromptSent, seen: int | None) -> None:
        if self.play.speaking:
            self.fails_out_of_turn(self.play.speaking, 0, sent, seen)

    @rule(
        session=sessions,
        back=st.integers(-1, 3),
        sent=st.sampled_from(list(PromptSent)),
        seen=st.none() | st.integers(0, 9),
    )
    def fails_out_of_turn(self, session: str, back: int, sent: PromptSent, seen: int | None) -> None:
        turn = max(self.play.debate.turn_counter - back, 0)
        self.step(events.TurnFaulted(session, "m", turn, messages.Fault.STALLED, sent, "hm", seen))

    @rule(session=sessions)
    def leaves(self, session: str) -> None:
        self.step(events.SeatLeft(session, "m", "quit"))

    @rule(then=st.sampled_from(["speech", "nothing"]))
    def leaves_with_a_speech_on_its_way(self, then: str) -> None:
        turn, session = self.play.turn, self.play.speaking
        if session is not None:
            self.step(events.TurnEnded(session, "m", turn, speech=True))
            self.step(events.SeatLeft(session, "m", "quit"))
            if then == "speech":
                self.speech(session, turn, None)

    @rule(session=sessions)
    def is_lost(self, session: str) -> None:
        self.step(events.SessionLost(session, "gone"))

    @rule(changed=st.sampled_from([(), ("certificate",), ("profile participant",)]))
    def reloads(self, changed: tuple[str, ...]) -> None:
        self.step(events.Reloaded("operator", "m", changed))

    @rule(
        session=sessions,
        required=st.none() | st.booleans(),
        policy=st.none() | policies,
        over=st.booleans(),
        over_policy=st.booleans(),
    )
    def updates(
        self,
        session: str,
        required: bool | None,
        policy: DisconnectPolicy | None,
        over: bool,
        over_policy: bool,
    ) -> None:
        # What is over the ceiling is not granted: it comes as None.
        self.step(
            events.StateUpdated(
                session,
                "m",
                None if over else required,
                None if over_policy else policy,
                over_required=over,
                over_policy=over_policy,
            )
        )

    @rule(session=sessions, channel=st.sampled_from([Channel.CONTROL, Channel.ADMIN]))
    def asks_for_the_status(self, session: str, channel: Channel) -> None:
        before = self.play.debate.state, self.play.turn
        self.step(events.StatusAsked(session, "m", channel))
        assert before == (self.play.debate.state, self.play.turn)

    @rule()
    def the_record_was_delayed(self) -> None:
        self.step(events.RecordDelayed("no space"))

    @rule(really=rarely)
    def the_record_failed(self, really: bool) -> None:
        if really:
            self.started -= {self.play.turn}  # nothing more can be said of it
            self.step(events.RecordFailed("gone"))

    @rule(really=rarely)
    def is_terminated(self, really: bool) -> None:
        if really:
            self.step(events.Operated("operator", "m", messages.Terminate()))

    @rule(session=sessions, event=st.sampled_from(["HUMAN_SKIP", "PARTICIPANT_MEMORY_LOST"]))
    def reports(self, session: str, event: str) -> None:
        self.step(events.SeatReported(session, "m", event))

    @rule(command=COMMANDS)
    def commands(self, command: Any) -> None:
        self.step(events.Operated("operator", "m", command))

    @rule()
    def injects(self) -> None:
        self.count += 1
        text = f"<{self.count}> from the moderator"
        self.texts[text] = "moderator"
        self.step(events.Operated("operator", "m", messages.Inject(text=text)))

    @rule(choice=choices)
    def resumes_everybody(self, choice: Recovery) -> None:
        seats = {seat.participant_id: choice for seat in self.play.debate.roster.troubled()}
        self.step(events.Operated("operator", "m", messages.Resume(seats=seats)))

    @rule(seconds=st.integers(0, 70))
    def time_passes(self, seconds: int) -> None:
        due = self.play.debate.next_deadline()
        self.play.now += seconds
        if due is not None and due <= self.play.now:
            self.step(events.AlarmRang())

    @rule()
    def what_was_waited_for_is_due(self) -> None:
        due = self.play.debate.next_deadline()
        self.play.now = max(self.play.now, due or 0)
        self.step(events.AlarmRang())  # one that rings for nothing changes nothing

    # --- what must hold -------------------------------------------------------------------------------

    def step(self, event: events.Event) -> None:
        debate = self.play.debate
        self.fed.add(type(event.command) if isinstance(event, events.Operated) else type(event))
        before, state = frozen(debate), debate.state
        cursors = {seat.participant_id: seat.cursor for seat in debate.roster}
        late = isinstance(event, OF_A_TURN) and event.turn_id in self.ended
        effects = self.play.happens(event)
        if self.play.refusal is not None:
            assert [type(effect) for effect in effects] == [Refuse]
            assert frozen(debate) == before
        else:
            self.note_grants(event)
        if late:
            assert self.play.refusal is not None
            assert self.play.refusal.code in (ErrorCode.TURN_MISMATCH, ErrorCode.NOT_REGISTERED)
        assert debate.state is state or debate.state in reachable(state)
        if state in TERMINAL:
            assert debate.state is state
        if state is DebateState.PAUSED and debate.state is not state:
            assert isinstance(event, events.Operated | events.RecordFailed)
        self.check_records(effects)
        self.check_cursors(effects, cursors)
        self.check_deltas(effects)

    def note_grants(self, event: events.Event) -> None:
        """Remember what each seat's profile has granted; events bear no more than that."""
        if not isinstance(event, events.SeatRegistered | events.StateUpdated):
            return
        seat = self.play.debate.roster.of_session(event.session)
        if isinstance(event, events.SeatRegistered):
            self.may_require.discard(seat.participant_id)
            self.may_keep.discard(seat.participant_id)
        if event.required:
            self.may_require.add(seat.participant_id)
        if event.disconnect_policy is DisconnectPolicy.KEEP_ALIVE:
            self.may_keep.add(seat.participant_id)

    def check_records(self, effects: list[Effect]) -> None:
        debate = self.play.debate
        for entry in [effect.entry for effect in effects if isinstance(effect, Append)]:
            if isinstance(entry, EventRecord) and entry.event is EventName.TURN_STARTED:
                assert entry.turn_id is not None
                assert entry.turn_id not in self.started
                self.started.add(entry.turn_id)
                assert debate.state is DebateState.RUNNING
                assert debate.meter.reached(self.play.now) is None
            if isinstance(entry, EventRecord) and entry.data.get("returned") is False:
                assert entry.participant_id is not None
                self.entered[entry.participant_id] = debate.roster.resolve(entry.participant_id).cursor
            if isinstance(entry, TurnRecord):
                assert entry.turn_id in self.started - self.ended
                self.ended.add(entry.turn_id)
                recipient, texts = self.in_turn.pop(entry.turn_id)
                if entry.outcome in COMPLETED:
                    self.given.setdefault(recipient, set()).update(texts)

    def check_cursors(self, effects: list[Effect], cursors: dict[str, int]) -> None:
        completed = {
            effect.entry.participant_id
            for effect in effects
            if isinstance(effect, Append)
            and isinstance(effect.entry, TurnRecord)
            and effect.entry.outcome in COMPLETED
        }
        for seat in self.play.debate.roster:
            if seat.joined and cursors.get(seat.participant_id, seat.cursor) != seat.cursor:
                joined_now = any(
                    isinstance(e, Append)
                    and isinstance(e.entry, EventRecord)
                    and e.entry.event in (EventName.PARTICIPANT_JOINED, EventName.PARTICIPANT_JOINED_COLD)
                    and e.entry.participant_id == seat.participant_id
                    for e in effects
                )
                assert seat.participant_id in completed or joined_now

    def check_deltas(self, effects: list[Effect]) -> None:
        debate = self.play.debate
        for effect in effects:
            if not isinstance(effect, Send):
                continue
            if effect.channel is Channel.CONTROL:
                assert not any(text in str(effect.message) for text in self.texts)
            if isinstance(effect.message, Context):
                recipient = debate.roster.of_session(effect.session).participant_id
                heard = [entry.text for entry in effect.message.delta]
                assert len(heard) == len(set(heard))
                due = [
                    said.text
                    for said in debate.discourse._published[self.entered[recipient] :]
                    if said.text not in self.given.get(recipient, set())
                ]
                others = [text for text in due if self.texts[text] != recipient]
                assert heard == others[: len(heard)], "oldest first, and nothing is left out"
                assert effect.message.waiting == len(others) - len(heard)
                assert heard or not others
                if debate.council.opening == "sealed" and debate.phase is messages.Phase.OPENING:
                    held = {said.text for said in debate.discourse._sealed}
                    assert not held & set(heard)
                self.in_turn[effect.message.turn_id] = (recipient, set(heard))

    @invariant()
    def every_turn_that_began_is_open_or_has_ended_once(self) -> None:
        still_open = {self.play.turn} - {0}
        assert self.started - self.ended == still_open
        if self.play.state() in TERMINAL:
            assert not still_open

    @invariant()
    def no_seat_has_more_rights_than_its_profile_and_the_roster_give(self) -> None:
        roster = self.play.debate.roster
        for seat in roster:
            if seat.required:
                assert roster.requires(seat.name) or seat.participant_id in self.may_require
            if seat.disconnect_policy is DisconnectPolicy.KEEP_ALIVE:
                assert seat.participant_id in self.may_keep

    @invariant()
    def a_speaker_keeps_its_pseudonym_and_has_it_alone(self) -> None:
        for seat in self.play.debate.roster.joined():
            assert self.pseudonyms.setdefault(seat.participant_id, seat.pseudonym) == seat.pseudonym
        assert len(set(self.pseudonyms.values())) == len(self.pseudonyms)

    @invariant()
    def who_leaves_waits_only_for_the_speech_that_it_announced(self) -> None:
        turn = self.play.debate.turn
        for seat in self.play.debate.roster:
            if seat.leaving is not None and self.play.state() not in TERMINAL:
                assert turn is not None
                assert (turn.participant_id, turn.announced, turn.text) == (seat.participant_id, True, None)

    @invariant()
    def what_is_still_to_be_scored_has_an_alarm_that_scores_it(self) -> None:
        debate = self.play.debate
        unread = Counter(id(said) for said in debate._unread)
        assert all(unread[id(seat.said)] == len(seat.said._unread) for seat in debate.roster)
        assert (debate._quiet_at is None) == (not unread)
        if unread:
            assert debate.next_deadline() is not None

    @invariant()
    def the_alarm_is_set_while_a_turn_is_open(self) -> None:
        if self.play.turn:
            assert self.play.debate.next_deadline() is not None


def reachable(state: DebateState) -> set[DebateState]:
    """Every state that one event may lead to: several moves may follow one another."""
    found = {state}
    while True:
        more = {target for source in found for target in TRANSITIONS[source]} | found
        if more == found:
            return found
        found = more
