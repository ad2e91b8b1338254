"""What the model is offered: system prompt and tools, stored once by hash (LOG-2, R-25)."""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from psych_runtime.core.canonical import canonical_json
from psych_runtime.core.codec import sha256
from psych_runtime.core.models import trusted
from psych_runtime.core.streaks import WITHHELD
from psych_runtime.runtime.access import is_withheld
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.commit import ask_surely
from psych_runtime.tools.registered import RegisteredTool
from psych_schema.model import ToolDefinition
from psych_schema.record import OfferedTool, ToolsOffered, UnavailableTool

__all__ = ["Offer", "make_offer", "store_offer"]

_tools_offered: Final = trusted(ToolsOffered)


class Offer(NamedTuple):
    """The prompt's prefix."""

    hash: str
    system: str
    system_ref: str
    tools: tuple[OfferedTool, ...]
    definitions: tuple[ToolDefinition, ...]
    documents: tuple[tuple[str, str], ...]  # (hash, text) of each definition
    unavailable: tuple[UnavailableTool, ...]

    def record(self, attempt: Attempt) -> ToolsOffered:
        """Return the record that names it."""
        return _tools_offered(
            run_id=attempt.run_id,
            id=attempt.new_id("rec"),
            at=attempt.now(),
            hash=self.hash,
            system_ref=self.system_ref,
            tools=self.tools,
            unavailable=self.unavailable,
        )


def make_offer(attempt: Attempt, tools: Mapping[str, RegisteredTool]) -> Offer:
    """Return what the Run may use, sorted by name.

    A withheld tool stays defined: the prompt is the same, only its record says so (R-25).
    """
    system = attempt.spec.instructions
    system_ref = sha256(system)
    found = [tools[name] for name in sorted(tools)]
    named = _name(system_ref, tuple((tool.name, tool.identity, tool.hash) for tool in found))
    missing = tuple(
        UnavailableTool(
            identity=f"{grant.kind}:{grant.name}",
            code="not_permitted" if grant.name in attempt.tools else "not_registered",
        )
        for grant in attempt.spec.tools
        if grant.name not in tools
    )
    withheld = tuple(
        UnavailableTool(identity=tool.identity, code=WITHHELD)
        for tool in found
        if is_withheld(attempt, tool)
    )
    return Offer(
        hash=named.hash,
        system=system,
        system_ref=system_ref,
        tools=named.tools,
        definitions=tuple(tool.definition for tool in found),
        documents=tuple((tool.hash, tool.document) for tool in found),
        unavailable=missing + withheld,
    )


class _Named(NamedTuple):
    hash: str
    tools: tuple[OfferedTool, ...]


@lru_cache(maxsize=256)
def _name(system_ref: str, found: tuple[tuple[str, str, str], ...]) -> _Named:
    """Return an offer's hash and its tools as a record lists them; most turns offer the same."""
    tools = tuple(
        OfferedTool(alias=alias, identity=identity, definition=definition)
        for alias, identity, definition in found
    )
    plain: JsonValue = {"system_ref": system_ref, "tools": [one.model_dump() for one in tools]}
    return _Named(sha256(canonical_json(plain)), tools)


async def store_offer(attempt: Attempt, offer: Offer) -> bool:
    """Store the offer's documents before a record names them; once per worker and tenant.

    True: it took time, so that what the caller saw may have changed.
    """
    host, tenant = attempt.host, attempt.tenant
    kinds: dict[str, tuple[Literal["system", "tool"], str]] = {
        offer.system_ref: ("system", offer.system)
    }
    kinds |= {hash: ("tool", text) for hash, text in offer.documents}
    missing = [hash for hash in kinds if (tenant, hash) not in host.documents]
    for hash in missing:
        await ask_surely(partial(host.store.put_document, tenant, hash, *kinds[hash]))
        host.documents.add((tenant, hash))
    return bool(missing)
