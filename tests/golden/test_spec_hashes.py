"""Hashes of released Specs never change: they name Versions in databases (SPEC-2)."""

import json
from pathlib import Path
from typing import Final

import pytest
from pydantic import JsonValue, TypeAdapter

from psych_runtime.core.canonical import canonical_text, spec_hash
from psych_runtime.core.validation import read_spec

TABLE: Final = TypeAdapter(list[dict[str, JsonValue]]).validate_json(
    Path(__file__).with_name("spec_hashes.json").read_bytes()
)


@pytest.mark.parametrize("row", TABLE, ids=[str(row["about"]) for row in TABLE])
def test_spec_2_a_released_hash_stays(row: dict[str, JsonValue]) -> None:
    """If this fails, change the code or the schema back; never the table."""
    spec = read_spec(row["spec"])
    assert canonical_text(spec) == row["canonical"]
    assert spec_hash(spec) == row["hash"]


def test_spec_2_the_table_has_one_row_for_each_hash() -> None:
    """Specs that are equal by meaning are listed as `same_as`, not as rows of their own."""
    hashes = [row["hash"] for row in TABLE]
    assert len(set(map(str, hashes))) == len(TABLE) >= 12


@pytest.mark.parametrize("row", TABLE, ids=[str(row["about"]) for row in TABLE])
def test_spec_2_other_ways_to_write_it_have_the_same_hash(row: dict[str, JsonValue]) -> None:
    """Defaults written out, another order, CRLF, floats for whole numbers."""
    others = row["same_as"]
    assert isinstance(others, list)
    for other in others:
        assert spec_hash(read_spec(other)) == row["hash"]
        assert spec_hash(read_spec(json.dumps(other))) == row["hash"]
