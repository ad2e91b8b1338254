"""thread_run and thread_view: what was said in a Run, by whom, in which order."""

import pytest

from psych_runtime.core.codec import Entry
from psych_runtime.testing.log_builder import LogBuilder
from psych_runtime.views import messages_passed_on, thread_run, thread_view
from psych_schema.common import BlobRef
from psych_schema.model import BlobPart, JsonPart, ReasoningPart, TextPart, UserMessage
from psych_schema.record import Broken, Failure, QueueCancelled, RunSettled, Said, ThreadRef
from psych_schema.view import CallMade, SaidByModel, SaidByUser, ThreadRun
from tests.unit.views.erasing import erased

PICTURE = BlobPart(blob=BlobRef(hash="a" * 64, bytes=3, media_type="image/png"))


def admitted(input: object = "hi", **fields: object) -> LogBuilder:
    log = LogBuilder()
    log.admit(input, **fields)  # type: ignore[arg-type]
    return log


def claimed() -> LogBuilder:
    log = admitted({"message": "hi"})
    log.claim()
    return log


def view(log: LogBuilder, entries: list[Entry] | None = None) -> ThreadRun:
    return thread_run(log.header, log.entries if entries is None else entries)


def kinds(run: ThreadRun) -> list[str]:
    return [one.kind for one in run.said]


def calls(run: ThreadRun) -> list[tuple[str | None, str | None, str, str | None]]:
    made = [one for one in run.said if isinstance(one, CallMade)]
    return [(one.name, one.identity, one.outcome, one.code) for one in made]


def test_thread_run_says_what_the_header_does() -> None:
    """Which Run, where in the thread, of which Version, since when, and where it stands."""
    log = admitted(thread=ThreadRef(id="t", position=1))
    header = log.header

    found = view(log)

    assert (found.run_id, found.position, found.version) == (log.run_id, 1, header.version)
    assert (found.lifecycle, found.ended, found.created_at) == ("queued", None, header.created_at)


@pytest.mark.parametrize(
    ("input", "text"),
    [
        ({"message": "hi"}, "hi"),
        ({"message": [{"kind": "text", "text": "h"}, {"kind": "json", "value": [1]}]}, "h[1]"),
        ({"n": 1}, '{"n":1}'),
        ("hi", '"hi"'),
    ],
)
def test_thread_input_is_the_first_that_a_user_said(input: object, text: str) -> None:
    """As the model is shown it, by whoever began the Run."""
    [said] = view(admitted(input, by="ann")).said

    assert isinstance(said, SaidByUser)
    assert (said.seq, said.by, said.entry_id, said.queue) == (1, "ann", None, None)
    assert (said.text, said.attachments, said.gone) == (text, (), False)


def test_thread_run_without_an_input_begins_with_nothing() -> None:
    """None was given: nobody has said anything."""
    assert view(admitted(None)).said == ()


def test_thread_message_stands_where_the_model_read_it() -> None:
    """Sent before the answer, read behind it; with its author, its queue and its instant."""
    log = claimed()
    later = log.send("and then?", "follow_up", by="bob")
    sent = log.entries[-1].record
    log.turn(text="One.")
    log.begin_turn()
    consumed = log.consume(later)
    log.answer(log.ask(), text="Two.")

    found = view(log)

    assert kinds(found) == ["user", "model", "user", "model"]
    said = found.said[2]
    assert isinstance(said, SaidByUser)
    assert (said.text, said.by, said.queue) == ("and then?", "bob", "follow_up")
    assert (said.entry_id, said.seq, said.at) == (later, consumed.seq, sent.at)
    assert found.unread == ()


def test_thread_message_shows_its_attachments() -> None:
    """A picture is no text; what somebody thought is not said."""
    log = claimed()
    parts = (TextPart(text="a"), PICTURE, JsonPart(value=None), ReasoningPart(text="hmm"))
    log.send(message=UserMessage(parts=parts))

    [unread] = view(log).unread

    assert (unread.text, unread.attachments) == ("anull", (PICTURE,))


def test_thread_unread_is_what_nobody_has_read_and_nobody_took_back() -> None:
    """While the Run lives they are queued; then they are left. The next Run has the others."""
    log = claimed()
    taken_back = log.send("no", by="ann")
    log.send("steer")
    log.send("next", "next_run", by="bob")
    log.write(QueueCancelled, entry_id=taken_back)
    living = view(log)
    log.abort()
    log.settle("aborted")
    ended = view(log)

    assert [(one.state, one.text) for one in living.unread] == [
        ("queued", "steer"),
        ("queued", "next"),
    ]
    assert [(one.state, one.text, one.by) for one in ended.unread] == [("left", "steer", "ann")]
    assert not any(one.gone for one in ended.unread)


def passed(*messages: UserMessage) -> LogBuilder:
    """Return the log of a Run that left messages to the next one, of which one was taken back."""
    log = claimed()
    for place, message in enumerate(messages):
        log.send("", "next_run", message=message, by=f"person {place}")
    slip = log.send("slip", "next_run", by="dan")
    log.send("read", "follow_up", by="eve")
    log.write(QueueCancelled, entry_id=slip)
    log.abort()
    log.settle("aborted")
    return log


def behind(log: LogBuilder, input: object) -> LogBuilder:
    """Return the log of the Run that follows in the thread."""
    previous = ThreadRef(id=log.run_id, position=2, previous=log.run_id)
    return admitted(input, thread=previous)


def words(text: str) -> UserMessage:
    return UserMessage(parts=(TextPart(text=text),))


def part(text: str) -> dict[str, str]:
    return {"kind": "text", "text": text}


def test_r_18_messages_that_begin_a_run_stand_by_themselves() -> None:
    """Each with its words, its attachments, its author and its name, in order."""
    log = passed(words("a"), UserMessage(parts=(TextPart(text="b"), PICTURE)), words("c"))
    picture = PICTURE.model_dump(mode="json")
    following = behind(log, {"message": [part("a"), part("b"), picture, part("c")]})
    left = messages_passed_on(log.entries, next_of(log))

    found = thread_run(following.header, following.entries, passed_on=left)

    said = [one for one in found.said if isinstance(one, SaidByUser)]
    assert [(one.text, one.by, one.queue) for one in said] == [
        ("a", "person 0", "next_run"),
        ("b", "person 1", "next_run"),
        ("c", "person 2", "next_run"),
    ]
    assert [one.entry_id for one in said] == [one.entry_id for one in left]
    assert [one.seq for one in said] == [1, 1, 1]
    assert [one.at for one in said] == [one.at for one in left]
    assert [one.attachments for one in said] == [(), (PICTURE,), ()]


def next_of(log: LogBuilder) -> str:
    """Return the id of the Run that a log names as the next one."""
    [settled] = [r for one in log.entries if isinstance(r := one.record, RunSettled)]
    return str(settled.next_run)


def test_r_18_only_the_run_that_was_begun_has_the_messages() -> None:
    """A Run that somebody admitted behind it does not."""
    log = passed(words("a"))
    assert len(messages_passed_on(log.entries, next_of(log))) == 1
    assert messages_passed_on(log.entries, "run_other") == ()
    assert messages_passed_on(claimed().entries, next_of(log)) == ()


def test_r_11_erased_messages_that_begin_a_run_have_their_authors() -> None:
    """Erased in the Run that had them: there is one for each, without words."""
    log = passed(words("a"), words("b"))
    following = behind(log, {"message": [part("a"), part("b")]})
    following.claim()
    following.turn(text="One.")
    following.settle()
    following.erase()

    left = messages_passed_on(log.entries, next_of(log))
    found = thread_run(following.header, erased(following), passed_on=left)

    said = [one for one in found.said if isinstance(one, SaidByUser)]
    assert [(one.by, one.text, one.gone) for one in said] == [
        ("person 0", None, True),
        ("person 1", None, True),
    ]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([part("a"), part("b")], [("person 0", "a"), ("person 1", "b")]),
        ([part("a"), part("b"), part("c")], [(None, "abc")]),
    ],
)
def test_r_11_words_of_an_erased_run_before_are_told_apart_where_they_can_be(
    parts: list[dict[str, str]], expected: list[tuple[str | None, str]]
) -> None:
    """Where nobody knows any more who said which, nobody is named."""
    log = passed(words("a"), words("b"))
    log.erase()
    following = behind(log, {"message": parts})

    left = messages_passed_on(erased(log), next_of(log))
    found = thread_run(following.header, following.entries, passed_on=left)

    said = [one for one in found.said if isinstance(one, SaidByUser)]
    assert [(one.by, one.text) for one in said] == expected


def test_thread_message_that_was_passed_on_stands_in_the_next_run_only() -> None:
    """It waits until the Run ends, and then is nothing of this Run."""
    log = claimed()
    log.send("Look.", "next_run", message=UserMessage(parts=(TextPart(text="Look."), PICTURE)))
    [waiting] = view(log).unread
    log.turn(text="One.")
    log.settle()
    assert (waiting.text, waiting.attachments) == ("Look.", (PICTURE,))
    assert view(log).unread == ()


def test_thread_abort_stands_in_its_place() -> None:
    """Behind what was said before it; the second, forced one as well."""
    log = claimed()
    log.turn(text="One.")
    log.abort(by="ann", reason="enough")
    log.abort(by="bob", reason="now", force=True)

    found = view(log)

    assert found.lifecycle == "stopping"
    assert kinds(found) == ["user", "model", "abort", "abort"]
    assert [(one.by, one.reason, one.force) for one in found.said if one.kind == "abort"] == [
        ("ann", "enough", False),
        ("bob", "now", True),
    ]


def test_thread_calls_stand_where_they_were_asked_for() -> None:
    """In the order asked, whatever their outcome is and whenever it came."""
    log = claimed()
    names = ["look", "charge", "put", "wait"]
    look, charge, put, _ = log.turn(names, text="Let me look.")
    log.start(charge)
    log.start(put)
    log.finish(charge, outcome="error", failure=Failure(code="no_money", transient=False))
    log.refuse(look, "denied")

    found = view(log)

    assert kinds(found) == ["user", "model", "call", "call", "call", "call"]
    assert calls(found) == [
        ("look", None, "refused", "denied"),
        ("charge", "code:charge", "error", "no_money"),
        ("put", "code:put", "open", None),
        ("wait", None, "open", None),
    ]


def test_thread_turn_without_words_is_its_calls() -> None:
    """An empty text is nothing that the model said."""
    log = claimed()
    log.turn(["look"], text="")

    assert kinds(view(log)) == ["user", "call"]


def test_thread_words_of_a_call_that_is_made_again_are_not_repeated() -> None:
    """RUN-11: only the call that ended counts, or one that broke off for good."""
    log = claimed()
    log.begin_turn()
    said = Broken(parts=(TextPart(text="It i"),))
    log.fail(log.ask(), said=said)
    retried = view(log)
    log.fail(log.ask(tries=2), said=said, next="give_up")
    given_up = view(log)

    assert kinds(retried) == ["user"]
    [_, words] = given_up.said
    assert isinstance(words, SaidByModel)
    assert (words.text, words.partial, words.gone) == ("It i", True, False)


def test_thread_has_no_words_of_a_compaction() -> None:
    """It is not said to anybody."""
    log = claimed()
    log.turn(text="One.")
    log.answer(log.ask(purpose="compaction"), text="In short: one.")

    assert kinds(view(log)) == ["user", "model"]


def test_thread_leaves_out_what_the_model_thought() -> None:
    """What it said stands in one piece."""
    log = claimed()
    log.begin_turn()
    parts = (TextPart(text="4"), ReasoningPart(text="hmm"), TextPart(text="2"))
    log.answer(log.ask(), said=Said(parts=parts))

    last = view(log).said[-1]

    assert isinstance(last, SaidByModel)
    assert (last.text, last.partial) == ("42", False)


def test_r_11_erased_words_are_gone_and_who_said_them_is_left() -> None:
    """Facts stay: who, when, what came of a call; no text of anybody does."""
    log = claimed()
    entry = log.send("and?", by="bob")
    log.send("no", "follow_up", by="cay")
    [call] = log.turn(["look"], text="Let me look.")
    log.start(call)
    log.finish(call)
    log.begin_turn()
    log.consume(entry)
    log.answer(log.ask(), text="Done.")
    log.abort(by="ann", reason="enough")
    log.settle("aborted")
    log.erase()

    found = view(log, erased(log))

    assert kinds(found) == ["user", "model", "call", "user", "model", "abort"]
    assert calls(found) == [(None, "code:look", "ok", None)]
    others = [one for one in found.said if not isinstance(one, CallMade)]
    assert all(one.gone for one in (*others, *found.unread))
    words = [one.reason if one.kind == "abort" else one.text for one in others]
    assert words == [None] * 5
    assert [one.text for one in found.unread] == [None]
    assert [one.by for one in others if one.kind != "model"] == [None, "bob", "ann"]


def test_log_3_thread_shows_what_can_be_read_of_an_illegal_log() -> None:
    """Up to the place where it is wrong; such a Run has failed."""
    log = claimed()
    log.turn(text="One.")
    log.turn(text="Two.")
    entries = list(log.entries)
    place = next(n for n, one in enumerate(entries) if one.record.type == "model.completed")
    del entries[place + 1]

    found = view(log, entries)

    assert (found.lifecycle, found.ended) == ("failed", None)
    assert kinds(found) == ["user", "model"]


def test_thread_view_is_in_the_order_of_the_thread() -> None:
    """Whatever order its Runs were read in."""
    first, second = LogBuilder(), LogBuilder()
    first.admit("1?")
    second.admit("2?", thread=ThreadRef(id=first.run_id, position=2, previous=first.run_id))
    found = thread_view(first.run_id, [view(second), view(first)], cursor="run_x")

    assert (found.thread, found.cursor) == (first.run_id, "run_x")
    assert [one.run_id for one in found.runs] == [first.run_id, second.run_id]
