"""Names that the runtime's own tools have, now or later: no tool of a consumer may take one."""

from typing import Final

__all__ = ["RESERVED_TOOL_NAMES"]

RESERVED_TOOL_NAMES: Final = frozenset(
    {
        "ask_question",
        "call_tool",
        "cancel_agent",
        "describe_tool",
        "forget",
        "list_agents",
        "list_tools",
        "load_skill",
        "message_agent",
        "read_result",
        "read_skill_file",
        "recall",
        "remember",
        "run_code",
        "search_result",
        "spawn_agent",
        "submit_answer",
        "update_tasks",
        "wait_for_agents",
        "wait_for_event",
        "wait_for_time",
    }
)
