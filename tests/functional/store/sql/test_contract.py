"""Every check of the public contract holds on every SQL server."""

import pytest

from psych_runtime.store.contract import CHECKS, Check
from tests.functional.store.sql.harness import ForMany
from tests.stores.tables import SqlTables


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_r_1_contract_holds(check: Check, sql_tables: SqlTables) -> None:
    """The check raises nothing."""
    await check(sql_tables)


@pytest.mark.servers("postgresql")
@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_r_1_contract_holds_in_the_statement_for_many(
    check: Check, sql_tables: SqlTables
) -> None:
    """A unit of its own has a statement of its own, which most checks never leave."""
    await check(ForMany(sql_tables))
