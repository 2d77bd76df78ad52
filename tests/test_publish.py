"""The workflows that test and publish the book, read as files; and what `make links` needs."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import environments
import links

FOLDER = ROOT / ".github"
FILES = sorted([*FOLDER.glob("workflows/*.yml"), *FOLDER.glob("actions/*/action.yml")])
WORKFLOWS = [path for path in FILES if path.parent.name == "workflows"]
# What may be asked for: reading the code, and in one job each what it is for.
PERMISSIONS = [
    {"contents": "read"},
    {"pages": "write", "id-token": "write"},
    {"issues": "write"},
]
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name + path.stem)
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def read(path):
    # YAML 1.1 reads the key `on` as true.
    content = yaml.safe_load(path.read_text("utf-8"))
    return {"on" if key is True else key: value for key, value in content.items()}


def jobs(path):
    return read(path)["jobs"]


def steps(path):
    """Give every step of a workflow, or of an action of the repository's own."""
    content = read(path)
    if "runs" in content:
        return content["runs"]["steps"]
    return [step for job in content["jobs"].values() for step in job["steps"]]


def test_there_are_workflows_for_each_occasion():
    occasions = {occasion for path in WORKFLOWS for occasion in read(path)["on"]}
    assert {"push", "pull_request", "schedule"} <= occasions


@each_file
def test_every_action_is_pinned_to_a_commit_with_its_version_beside_it(path):
    lines = re.findall(r"uses: (.+)", path.read_text("utf-8"))
    assert lines
    elsewhere = [line for line in lines if not line.startswith("./")]
    pinned = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [line for line in elsewhere if not pinned.fullmatch(line)] == []
    for line in set(lines) - set(elsewhere):
        assert (ROOT / line / "action.yml").is_file()


def test_an_action_has_one_pin_everywhere():
    pins = {}
    for path in FILES:
        for action, pin in re.findall(r"uses: ([\w./-]+)@(.+)", path.read_text("utf-8")):
            pins.setdefault(action, set()).add(pin)
    assert {action: found for action, found in pins.items() if len(found) > 1} == {}


@each_workflow
def test_nothing_is_permitted_that_its_job_does_not_need(path):
    assert read(path)["permissions"] == {}
    for name, job in jobs(path).items():
        assert job["permissions"] in PERMISSIONS, name
        # Code of a pull request runs nowhere that may write.
        if any(step.get("run", "").startswith("make") for step in job["steps"]):
            assert job["permissions"] == {"contents": "read"}, name


@each_workflow
def test_every_job_ends_by_itself_and_no_two_runs_meet(path):
    assert read(path)["concurrency"]["group"]
    for name, job in jobs(path).items():
        assert 0 < job["timeout-minutes"] <= 60, name
        assert re.fullmatch(r"ubuntu-\d\d\.\d\d", job["runs-on"]), name


@each_file
def test_no_secret_is_needed_and_none_is_left_behind(path):
    text = path.read_text("utf-8")
    assert "secrets." not in text
    assert "pull_request_target" not in text
    for step in steps(path):
        if "actions/checkout@" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


@each_file
def test_what_others_write_never_becomes_a_command(path):
    # ${{ }} is filled in before the shell sees a line: a title could hold a command.
    assert [step["run"] for step in steps(path) if "${{" in step.get("run", "")] == []


def test_every_command_of_make_exists():
    targets = re.findall(r"(?m)^\.PHONY: (.*)$", (ROOT / "Makefile").read_text())[0].split()
    called = [
        word
        for path in FILES
        for step in steps(path)
        for word in re.findall(r"(?m)^make (\w+)", step.get("run", ""))
    ]
    assert {"lint", "pdf", "test", "newest", "colab", "links"} <= set(called)
    assert [word for word in called if word not in targets] == []


def test_the_site_is_published_only_after_the_tests_and_only_from_the_main_branch():
    found = jobs(FOLDER / "workflows/book.yml")
    runs = [step.get("run") for step in found["test"]["steps"]]
    uses = [step.get("uses", "").partition("@")[0] for step in found["test"]["steps"]]
    assert runs.index("make pdf") < runs.index("make test")
    assert runs.index("make test") < uses.index("actions/upload-pages-artifact")
    publish = found["publish"]
    assert publish["needs"] == "test"
    handing = found["test"]["steps"][uses.index("actions/upload-pages-artifact")]
    for condition in (publish["if"], handing["if"]):
        assert "github.event_name != 'pull_request'" in condition
        assert "github.ref_name == github.event.repository.default_branch" in condition
    kept = found["test"]["steps"][uses.index("actions/upload-artifact")]
    assert kept["if"] == "github.event_name == 'pull_request'"
    assert handing["with"]["path"] == kept["with"]["path"] == "_build/html"


def test_an_issue_is_opened_whichever_weekly_job_fails():
    found = jobs(FOLDER / "workflows/weekly.yml")
    report = found["report"]
    assert report["if"] == "failure()"
    assert set(report["needs"]) == set(found) - {"report"}
    assert [name for name, job in found.items() if "issues" in job["permissions"]] == ["report"]
    assert all(f"needs.{name}.result" in report["steps"][0]["env"]["FAILED"] for name in found
               if name != "report")  # fmt: skip


def test_the_pythons_of_the_weekly_run_are_those_that_the_package_allows():
    versions = jobs(FOLDER / "workflows/weekly.yml")["pinned"]["strategy"]["matrix"]["python"]
    assert versions == ["3.11", "3.12", "3.13"]
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text()


# --- the environments --------------------------------------------------------------------------


def test_colabs_list_has_what_the_chapters_import():
    held = environments.pins(environments.COLAB.read_text("utf-8"))
    assert {"numpy", "pandas", "matplotlib", "ipywidgets", "ipython", "ipykernel"} <= set(held)
    assert held["ipywidgets"] == "7.7.1"


def test_a_list_that_lacks_something_is_named(tmp_path, capsys):
    short = tmp_path / "list.txt"
    short.write_text("numpy==2.0.2\n")
    assert environments.colab(tmp_path, [], str(short)) == 1
    assert "list.txt lacks debugpy, ipykernel" in capsys.readouterr().out


def test_a_list_that_cannot_be_fetched_is_replaced_by_ours(capsys):
    text = environments.fetch("http://127.0.0.1:9/pip-freeze.txt")
    assert text == environments.COLAB.read_text("utf-8")
    assert "tools/colab.txt serves in its place" in capsys.readouterr().out


def test_what_drives_colabs_stand_in_knows_every_setting_of_the_tests():
    """With --strict-config, a setting of a plug-in that is not there stops pytest at once."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert "--strict-config" in settings["addopts"]
    plugins = {"timeout": "pytest-timeout", "timeout_method": "pytest-timeout"}
    known = {"minversion", "pythonpath", "testpaths", "addopts", "doctest_optionflags"}
    known |= {"filterwarnings", "xfail_strict", "faulthandler_timeout"}
    assert {plugins[name] for name in set(settings) - known} <= set(environments.DRIVERS)


def test_the_tests_that_newest_leaves_out_exist():
    assert [n for n in environments.NOT_NEWEST if not (ROOT / f"tests/{n}.py").is_file()] == []


def test_the_copy_that_is_tried_is_a_checkout(tmp_path):
    """The tests of Colab ask git for the book's files."""
    environments.copy_book(tmp_path)
    command = ["git", "ls-files", "--others", "--exclude-standard"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert {"README.md", "tests/test_colab.py", "book/01_bottleneck.ipynb"} <= set(
        ran.stdout.splitlines()
    )


# --- links to other sites ----------------------------------------------------------------------


def link(uri, status, info):
    entry = {"uri": uri, "status": status, "info": info, "filename": "index.md", "lineno": 3}
    return json.dumps(entry | {"code": 0}) + "\n"


def test_a_dead_link_fails_and_one_that_answers_no_program_does_not(tmp_path, capsys):
    file = tmp_path / "output.json"
    alive = link("https://a.org", "working", "")
    file.write_text(alive + link("https://b.org", "broken", "403 Client Error: Forbidden"))
    assert links.main(file) == 0
    assert "answers no program: https://b.org (index.md:3)" in capsys.readouterr().out
    file.write_text(alive + link("https://c.org", "broken", "404 Client Error: Not Found"))
    assert links.main(file) == 1
    assert "DEAD: https://c.org (index.md:3): 404" in capsys.readouterr().out
    file.write_text(link("https://d.org", "timeout", "timed out"))
    assert links.main(file) == 1


def test_a_check_that_did_not_run_is_no_success(tmp_path):
    (tmp_path / "output.json").write_text("")
    with pytest.raises(SystemExit, match="the check did not run"):
        links.main(tmp_path / "output.json")
    with pytest.raises(SystemExit, match="the check did not run"):
        links.main(tmp_path / "none.json")


def test_without_a_network_there_is_one_sentence_and_no_list(tmp_path):
    lost = "(Caused by NameResolutionError(\"X: Failed to resolve 'a.org'\"))"
    file = tmp_path / "output.json"
    file.write_text(link("https://a.org", "broken", lost) + link("#here", "unchecked", ""))
    with pytest.raises(SystemExit, match="None of 1 links could be tried: this machine reaches"):
        links.main(file)
    file.write_text(link("https://a.org", "broken", lost) + link("https://b.org", "working", ""))
    assert links.main(file) == 1


def test_the_check_writes_where_its_reader_looks():
    """Jupyter Book's own linkcheck writes into the site, whatever its name says."""
    recipe = re.search(r"(?ms)^links: .*?\n\n", (ROOT / "Makefile").read_text())[0]
    (builder,) = re.findall(r"--builder custom --custom-builder (\w+)", recipe)
    assert ROOT / "_build" / builder / "output.json" == links.FOUND


# --- Binder ------------------------------------------------------------------------------------


def test_binder_installs_what_the_chapters_import_in_the_books_ranges():
    """Its builder looks into .binder/ first, and then there only."""
    assert {path.name for path in (ROOT / ".binder").iterdir()} == {"environment.yml", "postBuild"}
    assert os.access(ROOT / ".binder/postBuild", os.X_OK)
    found = yaml.safe_load((ROOT / ".binder/environment.yml").read_text())["dependencies"]
    wanted = dict(line.split(" ") for line in found)
    assert wanted.pop("python") == "=3.12"
    names = {"matplotlib-base": "matplotlib", "pytorch-cpu": "torch"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    ranges = {*project["dependencies"], *extras["book"], *extras["fast"], *extras["torch"]}
    assert {names.get(name, name) + version for name, version in wanted.items()} <= ranges
    assert set(imported()) <= {names.get(name, name) for name in wanted}


def imported():
    """Give the packages, beside the standard library's and the book's, that the chapters import."""
    sources = [path.read_text("utf-8") for path in (ROOT / "code").rglob("*.py")]
    for path in (ROOT / "book").glob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        sources += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    # IPython and its kernel come with every notebook server, google.colab with Colab.
    beside = {"worked_examples", "google", "IPython", "ipykernel", "matplotlib_inline"}
    for node in (node for source in sources for node in ast.walk(ast.parse(source))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        found = {name.partition(".")[0] for name in names}
        yield from found - beside - sys.stdlib_module_names
