"""The Makefile, the workflow, the locks and what is shipped say the same."""

import re
import subprocess
import tomllib
from typing import cast

import pytest
import yaml

from tests.unit.repository.files import ROOT, make_targets, text

TARGETS = {
    "help",
    "setup",
    "demo",
    "generate",
    "check-generated",
    "check-published",
    "lint",
    "test",
    "test-fast",
    "test-unit",
    "test-functional",
    "test-e2e",
    "test-sim",
    "services",
    "services-stop",
    "sim",
    "chaos",
    "bench",
    "lock",
    "clean",
}


def pyproject() -> dict[str, dict[str, object]]:
    """Read pyproject.toml."""
    return cast("dict[str, dict[str, object]]", tomllib.loads(text("pyproject.toml")))


def test_repository_make_alone_says_what_each_target_is_for() -> None:
    """Each target has a line, and none is left out."""
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    said = dict(re.findall(r"^  make ([a-z0-9-]+) +(\S.*)$", done.stdout, re.MULTILINE))
    assert said == make_targets(text("Makefile"))
    assert said.keys() == TARGETS


def test_repository_ci_runs_the_linters_then_the_readme_test_command() -> None:
    """Nothing else: what a reader runs is what is checked."""
    lines = [line for line in text(".ci/run").splitlines() if line and not line.startswith("#")]
    assert lines == [
        "set -euo pipefail",
        'cd "$(dirname "$0")/.."',
        "make lint",
        "make test",
    ]
    section = text("README.md").partition("## Tests")[2]
    block = re.search(r"```(?:sh|bash|console)\n(.*?)\n```", section, re.DOTALL)
    assert block is not None, "README.md needs a section '## Tests' with the command in a block"
    assert block[1].splitlines()[0] == lines[-1]


def test_repository_workflow_has_five_blocking_jobs_with_real_targets() -> None:
    """lint, the three layers and the simulation: own jobs, none allowed to fail or to wait."""
    workflow = yaml.safe_load(text(".github/workflows/ci.yml"))
    commands = {
        name: [step["run"] for step in job["steps"] if "run" in step]
        for name, job in workflow["jobs"].items()
    }
    assert commands == {
        "lint": ["make lint"],
        "unit": ["make test-unit"],
        "functional": ["make test-functional"],
        "e2e": ["make test-e2e"],
        "sim": ["make test-sim"],
    }
    targets = make_targets(text("Makefile"))
    assert all(run.removeprefix("make ") in targets for [run] in commands.values())
    for job in workflow["jobs"].values():
        steps = [job, *job["steps"]]
        assert not any(
            key in part for part in steps for key in ("continue-on-error", "if", "needs")
        )


def test_repository_the_layers_and_the_simulation_are_all_that_make_test_runs() -> None:
    """No folder of tests is in `make test` and in no job of the workflow, nor the other way."""
    makefile = text("Makefile")
    commands = dict(re.findall(r"^(test[a-z0-9-]*):.*\n\t(.+)$", makefile, re.MULTILINE))
    functional, e2e = "tests/functional tests/services", "tests/e2e tests/chaos"
    assert commands["test"] == f"$(PYTEST) tests/sim {e2e} $(UNIT) {functional}"
    assert commands["test-unit"] == "$(PYTEST) $(UNIT)"
    assert commands["test-functional"] == f"$(PYTEST) {functional}"
    assert commands["test-e2e"] == f"$(PYTEST) {e2e}"
    assert commands["test-sim"] == "$(PYTEST) tests/sim"
    run = set(re.findall(r"tests/(\w+)", makefile))
    folders = {
        path.relative_to(ROOT / "tests").parts[0] for path in ROOT.glob("tests/*/**/test_*.py")
    }
    assert folders <= run, "name these folders of tests in the Makefile"


@pytest.mark.parametrize(
    "path",
    [
        "requirements/dev.txt",
        "package-lock.json",
        "pyproject.toml",
        "tests/services/requirements.txt",
        "tests/services/package-lock.json",
    ],
)
def test_repository_names_no_host(path: str) -> None:
    """Any registry that serves the same bytes will do."""
    assert re.findall(r"[a-z+]+://\S*|--(?:extra-)?index-url|--find-links", text(path)) == []


def test_repository_every_locked_package_has_a_hash() -> None:
    """What is installed is what was locked, byte by byte."""
    packages = re.split(r"\n(?=[a-z0-9])", text("requirements/dev.txt").strip())
    assert len(packages) > 20
    assert [entry for entry in packages if "--hash=sha256:" not in entry] == []
    assert '"integrity": "sha512-' in text("package-lock.json")
    assert re.findall(r'"resolved"', text("package-lock.json")) == []


def test_repository_the_lock_has_every_dependency() -> None:
    """An installation takes nothing that is not locked."""
    locked = set(re.findall(r"^([a-z0-9.-]+)==", text("requirements/dev.txt"), re.MULTILINE))
    document = pyproject()
    extras = cast("dict[str, list[str]]", document["project"]["optional-dependencies"])
    wanted = [
        *cast("list[str]", document["project"]["dependencies"]),
        *cast("list[str]", document["dependency-groups"]["dev"]),
        *cast("list[str]", document["build-system"]["requires"]),
        *(line for lines in extras.values() for line in lines),
    ]
    missing = {_name(requirement) for requirement in wanted} - locked - {"psych-runtime"}
    assert missing == set(), "run `make lock`"


REFUSED = {
    "a web framework or server": {
        "aiohttp",
        "django",
        "fastapi",
        "flask",
        "gunicorn",
        "hypercorn",
        "litestar",
        "quart",
        "sanic",
        "starlette",
        "tornado",
        "uvicorn",
    },
    "an exporter": {
        "logfire",
        "opentelemetry-distro",
        "prometheus-client",
        "sentry-sdk",
    },
    "a vector store": {
        "chromadb",
        "faiss-cpu",
        "lancedb",
        "pgvector",
        "pinecone",
        "qdrant-client",
        "weaviate-client",
    },
    "an evaluation package": {
        "deepeval",
        "inspect-ai",
        "langsmith",
        "promptfoo",
        "pydantic-evals",
        "ragas",
    },
}


def refused(requirements: list[str]) -> list[str]:
    """Return those requirements that would make a platform of the library."""
    names = {name: kind for kind, group in REFUSED.items() for name in group}
    return [
        f"{_name(line)} is {names.get(_name(line), 'an exporter')}"
        for line in requirements
        if _name(line) in names or _name(line).startswith("opentelemetry-exporter")
    ]


def test_ref_1_no_dependency_makes_a_platform_of_it() -> None:
    """Neither the dependencies nor any extra."""
    project = pyproject()["project"]
    extras = cast("dict[str, list[str]]", project["optional-dependencies"])
    assert refused(cast("list[str]", project["dependencies"])) == []
    for extra, requirements in extras.items():
        assert refused(requirements) == [], extra


def test_ref_1_a_planted_dependency_is_found() -> None:
    """Whatever its case, extras and version; its neighbours pass."""
    planted = [
        "FastAPI[standard]>=0.100",
        "opentelemetry-exporter-otlp-proto-http~=1.0",
        "chromadb; python_version > '3.12'",
        "opentelemetry-sdk>=1.30",
        "pydantic>=2",
    ]
    assert refused(planted) == [
        "fastapi is a web framework or server",
        "opentelemetry-exporter-otlp-proto-http is an exporter",
        "chromadb is a vector store",
    ]


def test_repository_the_license_is_apache_2() -> None:
    """The whole text, and the metadata says so."""
    license_text = text("LICENSE")
    assert "Apache License" in license_text
    assert "END OF TERMS AND CONDITIONS" in license_text
    assert pyproject()["project"]["license"] == "Apache-2.0"


def test_repository_no_file_names_a_path_of_a_machine() -> None:
    """What is committed works anywhere."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = [
        path
        for path in listed.stdout.splitlines()
        if (ROOT / path).is_file()
        and re.search(rb"/(?:root|home/\w+|work/(?:main|shared))/", (ROOT / path).read_bytes())
    ]
    assert found == []


def _name(requirement: str) -> str:
    """Return the normalized name at the head of a requirement."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return re.sub(r"[-_.]+", "-", match[0]).lower()
