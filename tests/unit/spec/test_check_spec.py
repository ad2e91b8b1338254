"""What publishing finds in a valid Spec, given what is registered (PUB-1, PUB-2)."""

from psych_runtime import AgentSpec, CodeTool, ModelRef
from psych_runtime.core.issues import Issue
from psych_runtime.core.validation import Checked, check_spec

MODELS = frozenset({"gpt-4o-mini", "gpt-4o"})
TOOLS = frozenset({"add", "charge_card", "refund"})


def agent(*tools: str, model: str = "gpt-4o-mini") -> AgentSpec:
    return AgentSpec(
        name="x",
        instructions="hi",
        model=ModelRef(model=model),
        tools=tuple(CodeTool(name=name) for name in tools),
    )


def test_pub_1_what_is_registered_passes() -> None:
    """Nothing to say, nothing unchecked."""
    checked = check_spec(agent("add", "refund"), tools=TOOLS, models=MODELS, reserved={"recall"})
    assert checked == Checked((), ())


def test_pub_1_an_unregistered_tool_is_refused() -> None:
    """Each of them, with the name that was probably meant."""
    checked = check_spec(agent("add", "chargecard", "zzz"), tools=TOOLS, models=MODELS)
    message = "no tool of this name is registered"
    assert checked.issues == (
        Issue("/tools/1/name", message, "unregistered_tool", '"chargecard"', "charge_card"),
        Issue("/tools/2/name", message, "unregistered_tool", '"zzz"', None),
    )


def test_pub_1_no_tools_are_registered_at_all() -> None:
    """An empty registry is known to be empty."""
    assert [i.code for i in check_spec(agent("add"), tools=(), models=MODELS).issues] == [
        "unregistered_tool"
    ]
    assert check_spec(agent(), tools=(), models=MODELS).issues == ()


def test_pub_1_an_unknown_model_is_refused() -> None:
    """When the client knows its models."""
    checked = check_spec(agent(model="gpt4o-mini"), tools=TOOLS, models=MODELS)
    assert checked.issues == (
        Issue(
            "/model/model",
            "no client has this model",
            "unknown_model",
            '"gpt4o-mini"',
            "gpt-4o-mini",
        ),
    )


def test_pub_1_reserved_names_are_refused() -> None:
    """Also when somebody managed to register one."""
    checked = check_spec(agent("recall"), tools={"recall"}, models=None, reserved={"recall"})
    assert [(i.code, i.pointer) for i in checked.issues] == [("reserved_name", "/tools/0/name")]


def test_pub_1_two_tools_of_one_name_are_refused() -> None:
    """The model could not tell them apart; case does."""
    checked = check_spec(agent("add", "refund", "add"), tools=TOOLS, models=MODELS)
    assert [(i.code, i.pointer) for i in checked.issues] == [("doubled_name", "/tools/2/name")]
    upper = check_spec(agent("add", "Add"), tools=TOOLS | {"Add"}, models=MODELS)
    assert upper.issues == ()


def test_pub_1_everything_wrong_is_told_at_once() -> None:
    """Tools and model together."""
    checked = check_spec(agent("recall", "ad", model="x"), tools=TOOLS, models=MODELS)
    assert [i.code for i in checked.issues] == [
        "unregistered_tool",
        "unregistered_tool",
        "unknown_model",
    ]


def test_pub_2_what_could_not_be_checked_is_said() -> None:
    """In words, and only what there was to check."""
    tools = "whether these tools are registered: add, zip (no registry was given)"
    model = "whether the model 'gpt-4o-mini' exists (no client knows its models)"
    assert check_spec(agent("zip", "add"), tools=None, models=None) == Checked((), (tools, model))
    assert check_spec(agent(), tools=None, models=None) == Checked((), (model,))
    assert check_spec(agent("zip"), tools=None, models=MODELS).unchecked == (
        "whether these tools are registered: zip (no registry was given)",
    )
    assert check_spec(agent("add"), tools=TOOLS, models=None).unchecked == (model,)


def test_pub_2_names_are_checked_without_a_registry() -> None:
    """What needs no context is refused without one."""
    checked = check_spec(
        agent("add", "add", "recall"), tools=None, models=None, reserved={"recall"}
    )
    assert [i.code for i in checked.issues] == ["doubled_name", "reserved_name"]


def test_log_5_instructions_with_a_nul_are_refused() -> None:
    """They become a document as they are, which not every database keeps."""
    told = agent().model_copy(update={"instructions": "Be\0 brief."})
    checked = check_spec(told, tools=TOOLS, models=MODELS)
    assert [(i.code, i.pointer) for i in checked.issues] == [("nul_character", "/instructions")]
    assert "U+0000" in checked.issues[0].message
    other = agent().model_copy(update={"instructions": "Be \x01 brief."})
    assert check_spec(other, tools=TOOLS, models=MODELS).issues == ()
