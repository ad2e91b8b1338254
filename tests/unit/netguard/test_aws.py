"""No test reaches the AWS account of whoever runs it."""

import os

import pytest

from tests.stores.aws import EMULATOR, emulator_alone


def _said_of_aws() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name.startswith(("AWS", "BOTO"))}


def test_ref_1_the_environment_of_every_test_names_the_emulator_alone() -> None:
    """What a started program inherits, too."""
    assert _said_of_aws() == EMULATOR


def test_ref_1_what_leads_to_an_account_is_out_of_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile, a role, an endpoint; afterwards all is as it was."""
    mine = {
        "AWS_ACCESS_KEY_ID": "mine",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1/role",
        "AWS_ENDPOINT_URL_DYNAMODB": "https://dynamodb.eu-west-1.amazonaws.com",
        "AWS_PROFILE": "mine",
        "AWS_REGION": "eu-west-1",
        "AWS_SESSION_TOKEN": "mine",
        "AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/token",
    }
    for name, text in mine.items():
        monkeypatch.setenv(name, text)
    before = dict(os.environ)
    with emulator_alone():
        assert _said_of_aws() == EMULATOR
        assert before.keys() - os.environ.keys() == mine.keys() - EMULATOR.keys()
    assert dict(os.environ) == before
