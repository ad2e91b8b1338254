"""What the usual AWS chain finds in tests: credentials for the emulator, nothing of the owner's."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

__all__ = ["EMULATOR", "emulator_alone"]

EMULATOR: Final = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "BOTO_CONFIG": os.devnull,
}
"""All that an environment says of AWS; each file that the chain would look into is empty."""


@contextmanager
def emulator_alone() -> Iterator[None]:
    """Let the chain find EMULATOR and nothing else, here and in processes that are started.

    A profile, a role, an endpoint or a region of whoever runs the tests would lead elsewhere.
    """
    with patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith(("AWS_", "BOTO_"))]:
            del os.environ[name]
        os.environ.update(EMULATOR)
        yield
