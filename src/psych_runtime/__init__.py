"""Psych Runtime: durable AI agents inside your own product.

The shortest working program:

    import asyncio
    from psych_runtime import AgentSpec, ModelRef, session
    from psych_runtime.testing import FakeModel

    async def main() -> None:
        model = FakeModel().turn(text="Hello.")
        agent = AgentSpec(name="greeter", instructions="Be brief.", model=ModelRef(model="any"))
        async with session(model) as s:
            print((await s.ask(agent, "Hi")).text)

    asyncio.run(main())

Names are loaded on first use: importing the package loads no HTTP client, SQL library or driver.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from psych_runtime._version import __version__

if TYPE_CHECKING:
    from psych_runtime._administrator import Administrator, Cap, administrator
    from psych_runtime._decisions import Edit, decide
    from psych_runtime._deliveries import deliver
    from psych_runtime._erase import Erasure, RemainingCopy, erase
    from psych_runtime._messages import cancel, send
    from psych_runtime._purge import purge
    from psych_runtime._reads import (
        TextChunk,
        answer,
        list_runs,
        records,
        report,
        state,
        status,
        stream,
        stream_text,
        thread,
        wait,
    )
    from psych_runtime._session import Session, session
    from psych_runtime._sweep import sweep
    from psych_runtime._verify import verify
    from psych_runtime.api import Dispatched, Version, dispatch, interrupt, publish
    from psych_runtime.core.codec import parse_record
    from psych_runtime.core.fold import RunState
    from psych_runtime.core.issues import Issue
    from psych_runtime.core.spec_file import load_spec
    from psych_runtime.egress.proxy import Proxy
    from psych_runtime.egress.rules import EgressRules, Permit
    from psych_runtime.errors import (
        ApprovalConflict,
        ApprovalError,
        ApprovalNotFound,
        ApprovalOver,
        ApprovalSuperseded,
        ContentErased,
        ContextOverflow,
        CorruptLog,
        CorruptRow,
        EgressDenied,
        EgressFailed,
        EntryNotFound,
        EntryOver,
        IdempotencyConflict,
        InputError,
        InvalidArgument,
        InvalidPayload,
        InvalidSpec,
        LogError,
        MissingExtra,
        ModelError,
        ModelPermanent,
        ModelTransient,
        NewerRecord,
        NotThreadTail,
        PayloadTooLarge,
        PsychError,
        QueueFull,
        RegistrationError,
        RunError,
        RunFailed,
        RunNotFound,
        RunNotSettled,
        RunSettled,
        RunStopping,
        SchemaMissing,
        SecretError,
        SecretNotFound,
        SecretUnavailable,
        SecretUnusable,
        StoreClosed,
        StoreError,
        StoreFull,
        StoreReadOnly,
        StoreUnavailable,
        UnsendableRequest,
        UnsupportedStore,
        VersionNotFound,
        WaitNotFound,
        WaitOver,
        WaitTimeout,
    )
    from psych_runtime.model.anthropic import AnthropicClient
    from psych_runtime.model.openai import OpenAIClient
    from psych_runtime.ports.blob import BlobStore
    from psych_runtime.ports.egress import Destination, EgressPolicy
    from psych_runtime.ports.model import DeclaringClient, ModelClient, Takes
    from psych_runtime.ports.policy import Allow, Ask, Deny, Policy, ToolFacts
    from psych_runtime.ports.secrets import SecretResolver
    from psych_runtime.ports.store import Page, Store
    from psych_runtime.runtime.runtime import Runtime
    from psych_runtime.runtime.worker import Worker
    from psych_runtime.secrets.environment import EnvironmentSecrets
    from psych_runtime.secrets.files import FileSecrets
    from psych_runtime.secrets.mapping import MappingSecrets
    from psych_runtime.store.open import open_store
    from psych_runtime.tools.attachment import Attachment
    from psych_runtime.tools.context import StartedCall, ToolContext
    from psych_runtime.tools.decorator import tool
    from psych_runtime.tools.policy import AllowAll
    from psych_runtime.tools.reconciled import Reconciled
    from psych_runtime.tools.registry import ToolRegistry
    from psych_schema.common import Cost, Scope, Usage
    from psych_schema.model import (
        CallDelta,
        Finish,
        ModelEvent,
        ModelRequest,
        ReasoningDelta,
        TextDelta,
        UsageReport,
    )
    from psych_schema.receipt import Receipt
    from psych_schema.record import Record
    from psych_schema.spec import (
        AgentSpec,
        ApprovalRules,
        BasicCredential,
        BearerCredential,
        BuiltinTool,
        CodeTool,
        Event,
        FallbackModel,
        HeaderCredential,
        HttpLookup,
        HttpTool,
        Limits,
        ModelRef,
        OutputRules,
        QuestionRules,
        ResultRules,
        Skill,
        Spec,
        ToolChoice,
    )
    from psych_schema.view import (
        AnswerView,
        ReportView,
        StatusView,
        ThreadView,
        VerificationView,
    )

__all__ = [
    "Administrator",
    "AgentSpec",
    "Allow",
    "AllowAll",
    "AnswerView",
    "AnthropicClient",
    "ApprovalConflict",
    "ApprovalError",
    "ApprovalNotFound",
    "ApprovalOver",
    "ApprovalRules",
    "ApprovalSuperseded",
    "Ask",
    "Attachment",
    "BasicCredential",
    "BearerCredential",
    "BlobStore",
    "BuiltinTool",
    "CallDelta",
    "Cap",
    "CodeTool",
    "ContentErased",
    "ContextOverflow",
    "CorruptLog",
    "CorruptRow",
    "Cost",
    "DeclaringClient",
    "Deny",
    "Destination",
    "Dispatched",
    "Edit",
    "EgressDenied",
    "EgressFailed",
    "EgressPolicy",
    "EgressRules",
    "EntryNotFound",
    "EntryOver",
    "EnvironmentSecrets",
    "Erasure",
    "Event",
    "FallbackModel",
    "FileSecrets",
    "Finish",
    "HeaderCredential",
    "HttpLookup",
    "HttpTool",
    "IdempotencyConflict",
    "InputError",
    "InvalidArgument",
    "InvalidPayload",
    "InvalidSpec",
    "Issue",
    "Limits",
    "LogError",
    "MappingSecrets",
    "MissingExtra",
    "ModelClient",
    "ModelError",
    "ModelEvent",
    "ModelPermanent",
    "ModelRef",
    "ModelRequest",
    "ModelTransient",
    "NewerRecord",
    "NotThreadTail",
    "OpenAIClient",
    "OutputRules",
    "Page",
    "PayloadTooLarge",
    "Permit",
    "Policy",
    "Proxy",
    "PsychError",
    "QuestionRules",
    "QueueFull",
    "ReasoningDelta",
    "Receipt",
    "Reconciled",
    "Record",
    "RegistrationError",
    "RemainingCopy",
    "ReportView",
    "ResultRules",
    "RunError",
    "RunFailed",
    "RunNotFound",
    "RunNotSettled",
    "RunSettled",
    "RunState",
    "RunStopping",
    "Runtime",
    "SchemaMissing",
    "Scope",
    "SecretError",
    "SecretNotFound",
    "SecretResolver",
    "SecretUnavailable",
    "SecretUnusable",
    "Session",
    "Skill",
    "Spec",
    "StartedCall",
    "StatusView",
    "Store",
    "StoreClosed",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreUnavailable",
    "Takes",
    "TextChunk",
    "TextDelta",
    "ThreadView",
    "ToolChoice",
    "ToolContext",
    "ToolFacts",
    "ToolRegistry",
    "UnsendableRequest",
    "UnsupportedStore",
    "Usage",
    "UsageReport",
    "VerificationView",
    "Version",
    "VersionNotFound",
    "WaitNotFound",
    "WaitOver",
    "WaitTimeout",
    "Worker",
    "__version__",
    "administrator",
    "answer",
    "cancel",
    "decide",
    "deliver",
    "dispatch",
    "erase",
    "interrupt",
    "list_runs",
    "load_spec",
    "open_store",
    "parse_record",
    "publish",
    "purge",
    "records",
    "report",
    "send",
    "session",
    "state",
    "status",
    "stream",
    "stream_text",
    "sweep",
    "thread",
    "tool",
    "verify",
    "wait",
]

_HOMES: Final = {
    "psych_runtime._administrator": "Administrator Cap administrator",
    "psych_runtime._decisions": "Edit decide",
    "psych_runtime._deliveries": "deliver",
    "psych_runtime._erase": "Erasure RemainingCopy erase",
    "psych_runtime._messages": "cancel send",
    "psych_runtime._purge": "purge",
    "psych_runtime._reads": (
        "TextChunk answer list_runs records report state status stream stream_text thread wait"
    ),
    "psych_runtime.api": "Dispatched Version dispatch interrupt publish",
    "psych_runtime.core.codec": "parse_record",
    "psych_runtime.core.fold": "RunState",
    "psych_runtime.core.issues": "Issue",
    "psych_runtime.core.spec_file": "load_spec",
    "psych_runtime.errors": (
        "ApprovalConflict ApprovalError ApprovalNotFound ApprovalOver ApprovalSuperseded "
        "ContentErased ContextOverflow CorruptLog CorruptRow EgressDenied EgressFailed "
        "EntryNotFound EntryOver "
        "IdempotencyConflict InputError InvalidArgument InvalidPayload InvalidSpec "
        "LogError MissingExtra ModelError ModelPermanent ModelTransient NewerRecord "
        "NotThreadTail PayloadTooLarge PsychError QueueFull RegistrationError RunError RunFailed "
        "RunNotFound RunNotSettled RunSettled RunStopping SchemaMissing "
        "SecretError SecretNotFound SecretUnavailable SecretUnusable StoreClosed StoreError "
        "StoreFull StoreReadOnly StoreUnavailable UnsendableRequest UnsupportedStore "
        "VersionNotFound WaitNotFound WaitOver WaitTimeout"
    ),
    "psych_runtime.model.anthropic": "AnthropicClient",
    "psych_runtime.egress.proxy": "Proxy",
    "psych_runtime.egress.rules": "EgressRules Permit",
    "psych_runtime.model.openai": "OpenAIClient",
    "psych_runtime.ports.blob": "BlobStore",
    "psych_runtime.ports.egress": "Destination EgressPolicy",
    "psych_runtime.ports.model": "DeclaringClient ModelClient Takes",
    "psych_runtime.ports.policy": "Allow Ask Deny Policy ToolFacts",
    "psych_runtime.ports.secrets": "SecretResolver",
    "psych_runtime.ports.store": "Page Store",
    "psych_runtime.runtime.runtime": "Runtime",
    "psych_runtime.runtime.worker": "Worker",
    "psych_runtime.secrets.environment": "EnvironmentSecrets",
    "psych_runtime.secrets.files": "FileSecrets",
    "psych_runtime.secrets.mapping": "MappingSecrets",
    "psych_runtime._session": "Session session",
    "psych_runtime._sweep": "sweep",
    "psych_runtime._verify": "verify",
    "psych_runtime.store.open": "open_store",
    "psych_runtime.tools.attachment": "Attachment",
    "psych_runtime.tools.context": "StartedCall ToolContext",
    "psych_runtime.tools.decorator": "tool",
    "psych_runtime.tools.policy": "AllowAll",
    "psych_runtime.tools.reconciled": "Reconciled",
    "psych_runtime.tools.registry": "ToolRegistry",
    "psych_schema.common": "Cost Scope Usage",
    "psych_schema.model": (
        "CallDelta Finish ModelEvent ModelRequest ReasoningDelta TextDelta UsageReport"
    ),
    "psych_schema.receipt": "Receipt",
    "psych_schema.record": "Record",
    "psych_schema.spec": (
        "AgentSpec ApprovalRules BasicCredential BearerCredential BuiltinTool CodeTool Event "
        "FallbackModel HeaderCredential HttpLookup HttpTool Limits ModelRef OutputRules "
        "QuestionRules ResultRules Skill "
        "Spec ToolChoice"
    ),
    "psych_schema.view": "AnswerView ReportView StatusView ThreadView VerificationView",
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'psych_runtime' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
