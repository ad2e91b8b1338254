"""A tool's definition has the same bytes in each process and on each Python (TOOL-1)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = '''
import dataclasses, enum
from typing import Annotated, Literal
from psych_runtime.tools.registry import ToolRegistry
from pydantic import BaseModel

class Unit(enum.Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"

@dataclasses.dataclass
class Tags:
    names: frozenset[str] = frozenset({"red", "green", "blue", "black"})

class Query(BaseModel):
    words: set[str] = {"one", "two", "three", "four"}
    tags: Tags = Tags()

registry = ToolRegistry()

@registry.register
def search(
    query: Annotated[Query, "What."],
    unit: Annotated[Unit, "In what."] = Unit.CELSIUS,
    names: Annotated[set[str], "Which."] = {"alpha", "beta", "gamma", "delta"},
    mode: Annotated[Literal["b", "a"], "How."] = "a",
    tags: Annotated[Tags, "Marks."] = Tags(),
) -> None:
    """Search."""

print(registry.get("search").document)
'''


def document(tmp_path: Path, seed: str) -> str:
    """Return what the program prints under that hash seed."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, "-X", "utf8", str(program)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    return ran.stdout


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_tool_1_the_document_does_not_depend_on_the_process(tmp_path: Path, seed: str) -> None:
    """Sets are sorted wherever they are; keys too; choices keep their order."""
    assert document(tmp_path, seed) == (
        '{"description":"Search.","name":"search","parameters":{"$defs":{'
        '"Query":{"additionalProperties":false,"properties":{"tags":{"$ref":"#/$defs/Tags",'
        '"default":{"names":["black","blue","green","red"]}},'
        '"words":{"default":["four","one","three","two"],"items":{"type":"string"},'
        '"type":"array","uniqueItems":true}},"type":"object"},'
        '"Tags":{"additionalProperties":false,"properties":{"names":{"default":["black","blue","green","red"],'
        '"items":{"type":"string"},"type":"array","uniqueItems":true}},"type":"object"},'
        '"Unit":{"enum":["c","f"],"type":"string"}},"additionalProperties":false,"properties":{'
        '"mode":{"default":"a","description":"How.","enum":["b","a"],"type":"string"},'
        '"names":{"default":["alpha","beta","delta","gamma"],"description":"Which.",'
        '"items":{"type":"string"},"type":"array","uniqueItems":true},'
        '"query":{"$ref":"#/$defs/Query","description":"What."},'
        '"tags":{"$ref":"#/$defs/Tags","default":{"names":["black","blue","green","red"]},'
        '"description":"Marks."},'
        '"unit":{"$ref":"#/$defs/Unit","default":"c","description":"In what."}},'
        '"required":["query"],"type":"object"}}\n'
    )
