"""Who may call what: the default, others, and one that breaks (APP-1, TOOL-2, PUB-2, PUB-3)."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import pytest
from pydantic import JsonValue

from psych_runtime._reads import status, wait
from psych_runtime.api import interrupt, publish
from psych_runtime.errors import InvalidArgument, InvalidSpec
from psych_runtime.ports.policy import Allow, Decision, Deny, Policy, ToolFacts
from psych_runtime.ports.store import Store
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.decorator import tool
from psych_runtime.tools.policy import AllowAll, AskUnlessReadOnly
from psych_schema.common import Scope
from psych_schema.record import AttemptEnded, ToolStarted
from psych_schema.spec import ApprovalRules
from tests.functional.engine.behaviour.talk import Tool, answers, outcomes, talk, told
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    registry,
    runtime,
)


class Bench:
    """Tools of every risk, which remember that they ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def tools(self) -> tuple[Tool, ...]:
        """Return them."""

        @tool
        async def plain() -> str:
            """Do something."""
            self.ran.append("plain")
            return "done"

        @tool(annotations={"read-only"})
        async def look() -> str:
            """Look."""
            self.ran.append("look")
            return "seen"

        @tool(annotations={"write"})
        async def write() -> str:
            """Write."""
            self.ran.append("write")
            return "done"

        @tool(annotations={"destructive"})
        async def erase() -> str:
            """Erase."""
            self.ran.append("erase")
            return "gone"

        return plain, look, write, erase


_ALL = ("erase", "look", "plain", "write")


def _model() -> FakeModel:
    return FakeModel().turn(tool_calls=[(name, {}) for name in _ALL]).turn(text="Done.")


async def test_app_1_by_default_only_read_only_tools_run(store: Store, crew: Crew) -> None:
    """A person is asked about the others, whoever made the Runtime; nobody has to name it."""
    for policy in (AskUnlessReadOnly(), None):
        bench = Bench()
        made = Runtime(
            store=store, model=_model(), registry=registry(*bench.tools()), policy=policy
        )
        worker = await crew.start(made)
        run_id = await admit(store, agent(*_ALL))
        view = await wait(store, run_id, scope=ACME, until="suspended", timeout_seconds=20)
        assert bench.ran == ["look"]
        asked = [(one.identity, one.risk) for one in view.pending_approvals]
        assert asked == [
            ("code:erase", "destructive"),
            ("code:plain", "write"),
            ("code:write", "write"),
        ]
        await crew.stop(worker)


async def test_app_1_allow_all_runs_everything(store: Store, crew: Crew) -> None:
    """It is explicit."""
    bench = Bench()
    found = await talk(store, crew, _model(), *bench.tools(), policy=AllowAll())
    assert sorted(bench.ran) == list(_ALL)
    assert found.refusals == []


class Judge(Policy):
    """A policy that does what it is told, and notes what it is asked."""

    def __init__(self, *decisions: Decision | Exception) -> None:
        self.decisions = list(decisions)
        self.asked: list[tuple[Scope, ToolFacts, Mapping[str, JsonValue]]] = []

    async def decide_tool(
        self, scope: Scope, tool: ToolFacts, arguments: Mapping[str, JsonValue]
    ) -> Decision:
        """Decide."""
        self.asked.append((scope, tool, arguments))
        decision = self.decisions.pop(0) if len(self.decisions) > 1 else self.decisions[0]
        if isinstance(decision, Exception):
            raise decision
        return decision


async def pay(amount: int, to: str = "ann") -> str:
    """Pay.

    Args:
        amount: How much.
        to: Whom.
    """
    return f"paid {amount} to {to}"


async def test_app_1_a_denials_reason_reaches_the_model(store: Store, crew: Crew) -> None:
    """In words; the tool does not run."""
    judge = Judge(Deny("not on Sundays"))
    model = FakeModel().turn(tool_calls=[("pay", {"amount": 3})]).turn(text="Well.")
    found = await talk(store, crew, model, pay, policy=judge)
    assert found.refusals == [("denied", "The call was denied: not on Sundays")]
    assert answers(model.requests[1].messages)[0][1] == "The call was denied: not on Sundays"
    assert found.every(ToolStarted) == []
    assert found.end == ("completed", None)


async def test_tool_2_a_policy_sees_scope_tool_and_valid_arguments_only(
    store: Store, crew: Crew
) -> None:
    """What is malformed, unknown or not granted never reaches it."""
    judge = Judge(Allow())
    model = FakeModel()
    model.turn(
        tool_calls=[("pay", {"amount": 3.0}), ("pay", {"amount": "x"}), ("nobody", {})]
    ).turn(text="Done.")
    found = await talk(store, crew, model, pay, policy=judge)
    [(scope, facts, arguments)] = judge.asked
    assert scope == ACME
    assert (facts.name, facts.identity, facts.risk) == ("pay", "code:pay", "write")
    assert arguments == {"amount": 3, "to": "ann"}  # what the call amounts to
    assert found.calls == [("ok", "", "paid 3 to ann")]


async def test_tool_2_a_policy_that_raises_ends_the_attempt_in_order(
    store: Store, crew: Crew
) -> None:
    """The call was not started; the Run is tried again and goes on where it was."""
    judge = Judge(LookupError("no rules"), Allow())
    model = FakeModel().turn(tool_calls=[("pay", {"amount": 3})]).turn(text="Done.")
    found = await talk(store, crew, model, pay, policy=judge)
    [ended] = found.every(AttemptEnded)
    assert (ended.reason, ended.code) == ("error", "internal_error")
    assert found.calls == [("ok", "", "paid 3 to ann")]
    assert found.end == ("completed", None)
    assert len(model.requests) == 2
    assert [kind for kind, _ in outcomes(found.records) if kind.startswith("attempt")] == [
        "attempt.started",
        "attempt.ended",
        "attempt.started",
    ]


async def test_run_3_a_policy_that_always_raises_fails_the_run_in_the_end(
    store: Store, crew: Crew
) -> None:
    """After max_attempts; the worker lives on."""
    judge = Judge(LookupError("no rules"))
    model = FakeModel().turn(tool_calls=[("pay", {"amount": 3})]).turn(text="Done.")
    await crew.start(runtime(store, model, pay, policy=judge), max_attempts=2)
    found = await told(store, await admit(store, agent("pay")))
    assert found.end == ("failed", "attempts_exhausted")
    assert found.every(ToolStarted) == []
    judge.decisions = [Allow()]
    again = await told(store, await admit(store, agent("pay")))
    assert again.end == ("completed", None)


async def test_tool_2_a_running_sibling_of_a_call_whose_policy_raises(
    store: Store, crew: Crew
) -> None:
    """The sibling had ended: its outcome is kept, it does not run again."""
    runs: list[str] = []

    async def first() -> str:
        """Be first."""
        runs.append("first")
        return "first is done"

    @tool(concurrent=False)
    async def second() -> str:
        """Be second."""
        runs.append("second")
        return "second is done"

    class Once(Policy):
        def __init__(self) -> None:
            self.raised = False

        async def decide_tool(
            self, scope: Scope, tool: ToolFacts, arguments: Mapping[str, JsonValue]
        ) -> Decision:
            if tool.name == "second" and not self.raised:
                self.raised = True
                raise LookupError("no rules")
            return Allow()

    model = FakeModel().turn(tool_calls=[("first", {})])
    model.turn(tool_calls=[("second", {})]).turn(text="Done.")
    found = await talk(store, crew, model, first, second, policy=Once())
    assert runs == ["first", "second"]
    assert found.end == ("completed", None)


class Silent(Policy):
    """A policy that never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def decide_tool(self, *_: object) -> Allow:
        """Think for ever."""
        self.asked.set()
        await asyncio.Event().wait()
        return Allow()


async def test_run_4_a_policy_that_never_answers_is_cut(store: Store, crew: Crew) -> None:
    """Interrupted, the call is refused: nothing was started."""
    policy = Silent()
    model = FakeModel().turn(tool_calls=[("pay", {"amount": 3})])
    await crew.start(runtime(store, model, pay, policy=policy))
    run = await admit(store, agent("pay"))
    await policy.asked.wait()
    await interrupt(store, run, scope=ACME)
    found = await told(store, run)
    assert [code for code, _ in found.refusals] == ["aborted"]
    assert found.every(ToolStarted) == []
    assert found.end == ("aborted", "aborted")


class Confused(Policy):
    """A policy that does not know what a decision is."""

    async def decide_tool(self, *_: object) -> Any:
        """Answer something."""
        return True


async def test_tool_2_what_is_no_decision_allows_nothing(store: Store, crew: Crew) -> None:
    """Only Allow lets a call run; the attempt says that the policy is at fault."""
    model = FakeModel().turn(tool_calls=[("pay", {"amount": 3})]).turn(text="Done.")
    await crew.start(runtime(store, model, pay, policy=Confused()), max_attempts=2)
    found = await told(store, await admit(store, agent("pay")))
    assert [one.code for one in found.every(AttemptEnded)] == ["invalid_argument"]
    assert found.every(ToolStarted) == []
    assert found.end == ("failed", "attempts_exhausted")


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (AllowAll, "AllowAll is a class: pass AllowAll()"),
        (True, "a bool has no allow_run(): let it extend Policy"),
    ],
)
def test_tool_2_what_is_no_policy_is_refused_at_once(policy: Any, problem: str) -> None:
    """Before any Run: the place where it was given says so."""
    with pytest.raises(InvalidArgument) as caught:
        Runtime(store=MemoryStore(), model=FakeModel(), policy=policy)
    assert caught.value.problem == problem


@pytest.mark.parametrize("model", [None, "gpt", FakeModel])
def test_mod_9_what_is_no_model_client_is_refused_at_once(model: Any) -> None:
    """A name or a class is no client."""
    with pytest.raises(InvalidArgument):
        Runtime(store=MemoryStore(), model=model)


async def test_pub_2_what_was_not_checked_is_said(store: Store) -> None:
    """Without a registry or a runtime, publishing works and names what is open."""
    version = await publish(store, agent("pay"), scope=ACME)
    assert version.unchecked
    assert any("pay" in words or "tool" in words for words in version.unchecked)


async def test_pub_2_against_a_registry_models_stay_open(store: Store) -> None:
    """Tools are checked then, models are not."""
    version = await publish(store, agent("pay"), scope=ACME, check=registry(pay))
    assert version.unchecked
    assert not any("tool" in words for words in version.unchecked)


async def test_pub_2_against_a_runtime_nothing_stays_open(store: Store) -> None:
    """Tools and models are checked."""
    made = runtime(store, FakeModel(models=["fake"]), pay)
    version = await publish(store, agent("pay"), scope=ACME, check=made)
    assert version.unchecked == ()


async def test_pub_1_a_tool_that_nobody_registered_is_refused(store: Store) -> None:
    """With the nearest name; nothing is stored."""
    with pytest.raises(InvalidSpec) as caught:
        await publish(store, agent("pai"), scope=ACME, check=registry(pay))
    [issue] = caught.value.issues
    assert "pay" in issue.text("spec")


async def test_pub_1_a_model_that_the_client_does_not_know_is_refused(store: Store) -> None:
    """A runtime knows the models of its clients."""
    made = runtime(store, FakeModel(models=["other"]), pay)
    with pytest.raises(InvalidSpec) as caught:
        await publish(store, agent("pay"), scope=ACME, check=made)
    assert len(caught.value.issues) == 1


async def test_pub_3_a_version_published_unchecked_waits_for_a_worker_that_can(
    store: Store, crew: Crew
) -> None:
    """A worker without the tool leaves the Run alone; one that has it goes on."""
    model = FakeModel().turn(tool_calls=[("pay", {"amount": 3})]).turn(text="Done.")
    await crew.start(runtime(store, model))
    run = await admit(store, agent("pay"))
    other = await told(store, await admit(store, agent(), "Hello."))
    assert other.end[0] in ("completed", "failed")
    assert (await store.header(ACME.tenant, run)).epoch == 0
    blocked = (await status(store, run, scope=ACME)).blocked_on
    assert blocked is not None
    assert blocked.tools == ("code:pay",)
    assert "no live worker has tool" in blocked.message
    await crew.start(runtime(store, model, pay))
    found = await told(store, run)
    assert found.end == ("completed", None)


class Gate(AllowAll):
    """Lets no Run in, or only some tools."""

    def __init__(self, run: object = Allow(), permitted: object = None) -> None:
        self.run = run
        self.patterns = permitted
        self.asked: list[str] = []

    async def allow_run(self, scope: Scope, version: str) -> Allow | Deny:
        """Say what it was told to."""
        self.asked.append(version)
        return self.run  # type: ignore[return-value]

    async def permitted(self, scope: Scope) -> Collection[str] | None:
        """Say what it was told to."""
        return self.patterns  # type: ignore[return-value]


async def test_app_1_a_run_that_may_not_begin_fails_before_any_model_call(
    store: Store, crew: Crew
) -> None:
    """It is asked with the Run's Version."""
    gate, model = Gate(Deny("not today")), FakeModel().turn(text="Hi.")
    found = await talk(store, crew, model, pay, policy=gate)
    assert found.end == ("failed", "not_allowed")
    assert model.requests == []
    assert [record.type for record in found.records] == [
        "run.admitted",
        "attempt.started",
        "run.settled",
    ]
    header = await store.header(ACME.tenant, found.run_id)
    assert gate.asked == [header.version]


async def test_app_1_a_run_that_has_begun_is_not_asked_about_again(
    store: Store, crew: Crew
) -> None:
    """Not in its second turn."""
    gate = Gate()
    model = FakeModel().turn(tool_calls=[("look", {})]).turn(text="Done.")
    found = await talk(store, crew, model, *Bench().tools(), policy=gate)
    assert found.end == ("completed", None)
    assert len(gate.asked) == 1


@pytest.mark.parametrize(
    ("patterns", "offered"),
    [
        (None, ["erase", "look", "plain", "write"]),
        (["code:*"], ["erase", "look", "plain", "write"]),
        ([], []),
        (["code:look", "code:gone"], ["look"]),
        (("code:p*", "builtin:*"), ["plain"]),
        (frozenset({"look", "code"}), []),
    ],
)
async def test_tool_3_what_is_not_permitted_does_not_exist(
    store: Store, crew: Crew, patterns: object, offered: list[str]
) -> None:
    """Neither in the prompt nor when it is called, and nobody confirms its name (MOD-3)."""
    bench, model = Bench(), _model()
    found = await talk(store, crew, model, *bench.tools(), policy=Gate(permitted=patterns))
    assert [tool.name for tool in model.requests[0].tools] == offered
    for code, message in found.refusals:
        assert code == "unknown"
        names = message.partition("You can call: ")[2]
        assert names == (", ".join(offered) or "none") + "."


async def test_tool_3_what_is_not_permitted_is_not_published(store: Store) -> None:
    """With the place of each tool."""
    made = runtime(store, FakeModel(), *Bench().tools(), policy=Gate(permitted=["code:look"]))
    with pytest.raises(InvalidSpec) as caught:
        await publish(store, agent("look", "plain"), scope=ACME, check=made)
    [issue] = caught.value.issues
    assert (issue.pointer, issue.code) == ("/tools/1/name", "not_permitted")


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        (Gate(run=True), "allow_run returned True"),
        (Gate(run=None), "allow_run returned None"),
        (Gate(permitted="code:look"), "permitted returned 'code:look'"),
        (Gate(permitted=3), "permitted returned 3"),
    ],
)
async def test_app_1_what_is_no_answer_of_a_policy_ends_the_attempt(
    store: Store, crew: Crew, gate: Gate, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With an error that says what it was."""
    made = runtime(store, FakeModel().turn(text="Hi."), *Bench().tools(), policy=gate)
    await crew.start(made, max_attempts=1)
    found = await told(store, await admit(store, agent("look")))
    assert found.end == ("failed", "attempts_exhausted")
    assert words in caplog.text


async def test_app_1_a_spec_may_ask_where_the_policy_does_not(store: Store, crew: Crew) -> None:
    """By risk, and by name; for so long."""
    for rules, asked in (
        (ApprovalRules(risks=["destructive"]), ["code:erase"]),
        (ApprovalRules(tools=["look", "plain"], expires_seconds=50.0), ["code:look", "code:plain"]),
    ):
        bench = Bench()
        worker = await crew.start(runtime(store, _model(), *bench.tools(), policy=AllowAll()))
        spec = agent(*_ALL).model_copy(update={"ask_before": rules})
        run_id = await admit(store, spec)
        view = await wait(store, run_id, scope=ACME, until="suspended", timeout_seconds=20)
        assert [one.identity for one in view.pending_approvals] == asked
        assert {one.expires_at is not None for one in view.pending_approvals} == {
            rules.expires_seconds is not None
        }
        assert sorted(f"code:{name}" for name in bench.ran) == sorted(
            {"code:erase", "code:look", "code:plain", "code:write"} - {*asked}
        )
        await crew.stop(worker)
