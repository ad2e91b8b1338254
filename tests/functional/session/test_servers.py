"""session() on a server: its tables are the operator's to make (ST-4)."""

import pytest

from psych_runtime import session
from psych_runtime.errors import SchemaMissing
from psych_runtime.testing import FakeModel
from tests.stores.kinds import tables_of


@pytest.mark.parametrize("kind", ["postgresql", "mysql", "mariadb"])
async def test_st_4_session_says_which_command_makes_the_tables(kind: str) -> None:
    """It makes none, and no worker is started."""
    tables = tables_of(kind)
    await tables.empty()  # its tables have a prefix, which the URL does not know
    with pytest.raises(SchemaMissing, match="psych migrate"):
        async with session(FakeModel(), store=tables.url):
            raise AssertionError("it went on")
