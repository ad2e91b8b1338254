"""Ids and salts: nobody else's, whatever threads and processes there are."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from psych_runtime._system import System

FORKS = r"""
import os
from psych_runtime._system import System
system = System()
system.salt()
child = os.fork()
os.write(1, f"{system.salt()} {system.new_id('x')[-16:]}\n".encode())  # at once
if child:
    os.waitpid(child, 0)
"""


def test_ids_rise_and_salts_differ() -> None:
    """More of them than are drawn at once."""
    system = System()
    ids = [system.new_id("rec") for _ in range(2000)]
    assert ids == sorted(set(ids))
    assert {len(one) for one in ids} == {30}
    salts = {system.salt() for _ in range(2000)}
    assert len(salts) == 2000
    assert {len(one) for one in salts} == {32}


def test_threads_share_no_chance() -> None:
    """Each byte is given to one of them."""
    system = System()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: (system.salt(), system.new_id("run")), range(4000)))
    assert len({salt for salt, _ in found}) == 4000
    assert len({run for _, run in found}) == 4000


def test_a_forked_process_has_chance_of_its_own() -> None:
    """What its parent has drawn and not used yet is not its own."""
    told = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, check=True, timeout=60
    )
    parent, child = told.stdout.split("\n")[:2]
    assert parent.split()[0] != child.split()[0]
    assert parent.split()[1] != child.split()[1]
