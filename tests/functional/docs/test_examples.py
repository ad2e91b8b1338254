"""Every Python block of the README and the guides runs as it stands (DOC-1)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    pytest.param(code, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, code in enumerate(BLOCK.findall(page.read_text()), 1)
]


@pytest.mark.parametrize("code", BLOCKS)
def test_doc_1_example_runs(code: str, tmp_path: Path) -> None:
    """Pasted into a file, the block runs to its end and prints something."""
    program = tmp_path / "example.py"
    program.write_text(code)
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_doc_1_pages_have_examples() -> None:
    """The README and each guide show code."""
    assert len(BLOCKS) >= len(PAGES)
