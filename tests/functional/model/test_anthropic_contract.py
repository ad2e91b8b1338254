"""Every check of the model contract holds on the client for the Messages format, too."""

from collections.abc import Iterator
from typing import Final, NoReturn

import pytest

from psych_runtime.errors import ModelTransient
from psych_runtime.model._anthropic_reader import MessageReader
from psych_runtime.model.anthropic import AnthropicClient
from psych_runtime.testing.model_contract import CHECKS, Check, checks_for
from psych_schema.common import Usage
from psych_schema.model import CallDelta, Finish, ModelEvent, UsageReport
from tests.functional.model.anthropic_dialect import AnthropicDialect
from tests.functional.model.contract_harness import ClientHarness

_DIALECT: Final = AnthropicDialect()


class _Client(AnthropicClient):
    """The client, with a reader of another make."""

    reader: type[MessageReader] = MessageReader

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        super().__init__(f"{base_url}/v1", api_key=api_key, max_connections=max_connections)

    def _reader(self) -> MessageReader:
        return self.reader(host=self._endpoint.host, redact=self._endpoint.redact)


def _plain(base_url: str, api_key: str, max_connections: int) -> AnthropicClient:
    return AnthropicClient(f"{base_url}/v1", api_key=api_key, max_connections=max_connections)


@pytest.mark.parametrize("check", checks_for(_DIALECT), ids=str)
async def test_mod_9_the_contract_holds_on_the_anthropic_client(check: Check) -> None:
    """The same checks, in the words of another provider."""
    await check(ClientHarness(_plain, _DIALECT))


def test_mod_9_only_what_the_format_cannot_say_is_left_out() -> None:
    """Its blocks follow one another."""
    left = {check.name for check in CHECKS} - {check.name for check in checks_for(_DIALECT)}
    assert left == {"a_gap_between_calls_is_no_call", "pieces_of_two_calls_do_not_mix"}


class _Deaf(MessageReader):
    """Hears no error in the stream."""

    def raise_error(self, error: object) -> NoReturn:
        raise ModelTransient("something")


class _Trusting(MessageReader):
    """Takes every end for an end of the turn."""

    def end(self) -> Iterator[ModelEvent]:
        try:
            yield from super().end()
        except ModelTransient:
            yield Finish(reason="stop")


class _Adding(MessageReader):
    """Adds up totals."""

    output = 0

    def read(self, value: object) -> Iterator[ModelEvent]:
        for event in super().read(value):
            if isinstance(event, UsageReport):
                self.output += event.usage.output_tokens or 0
                usage = event.usage.model_copy(update={"output_tokens": self.output})
                yield UsageReport(usage=usage)
            else:
                yield event


class _Inclusive(MessageReader):
    """Takes the input for an inclusive total, as another provider counts."""

    def read(self, value: object) -> Iterator[ModelEvent]:
        for event in super().read(value):
            if isinstance(event, UsageReport):
                counted = event.usage
                left = (counted.input_tokens or 0) - (counted.cache_read_tokens or 0)
                usage = counted.model_copy(update={"input_tokens": max(0, left)})
                yield UsageReport(usage=Usage(**vars(usage)))
            else:
                yield event


class _Merging(MessageReader):
    """Knows one call only."""

    def read(self, value: object) -> Iterator[ModelEvent]:
        for event in super().read(value):
            one = isinstance(event, CallDelta)
            yield event.model_copy(update={"index": 0}) if one else event


class _Eager(MessageReader):
    """Ends with the reason to stop, although more may follow."""

    told = False

    def read(self, value: object) -> Iterator[ModelEvent]:
        yield from super().read(value)
        if self._finish is not None and not self.told:
            self.told = True
            yield from super().end()

    def end(self) -> Iterator[ModelEvent]:
        return iter(()) if self.told else super().end()


@pytest.mark.parametrize(
    ("reader", "name"),
    [
        (_Deaf, "an_error_in_the_stream_that_stays_is_permanent"),
        (_Deaf, "a_request_that_is_too_long_is_an_overflow"),
        (_Trusting, "an_end_without_a_finish_is_worth_another_try"),
        (_Trusting, "the_end_alone_is_no_finish"),
        (_Adding, "of_cumulative_usage_the_last_counts"),
        (_Inclusive, "totals_become_disjoint_counters"),
        (_Merging, "equal_ids_are_calls_of_their_own"),
        (_Eager, "usage_with_the_last_message_is_told"),
    ],
)
async def test_mod_5_a_broken_reader_is_noticed(reader: type[MessageReader], name: str) -> None:
    """The dialect says enough: the check that is named fails, and holds on the whole reader."""
    [check] = [check for check in CHECKS if check.name == name]
    broken = type("_Broken", (_Client,), {"reader": reader})
    with pytest.raises(AssertionError):
        await check(ClientHarness(broken, _DIALECT))
    await check(ClientHarness(_Client, _DIALECT))
