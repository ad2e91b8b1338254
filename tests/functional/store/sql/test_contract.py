"""Every check of the public contract holds on every SQL server."""

import pytest

from psych_runtime.store.contract import CHECKS, Check
from tests.stores.tables import SqlTables


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_r_1_contract_holds(check: Check, sql_tables: SqlTables) -> None:
    """The check raises nothing."""
    await check(sql_tables)
