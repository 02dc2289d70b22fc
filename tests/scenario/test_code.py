# SPDX-License-Identifier: Apache-2.0
"""A run knows which code it ran, can keep it, and can be run again with exactly that."""
import hashlib
import json
import os
import pwd
import random
import shutil
import subprocess

import pytest

SHOW = "pwd >$MYELIN_OUTPUTS_PATH/where; cat main.txt"


class Project:
    """A repository of its own, with `myelin` started in it."""

    def __init__(self, scenario, name="project"):
        self.scenario, self.path = scenario, scenario.directory / name
        self.path.mkdir()
        scenario.environment.update({"HOME": str(scenario.directory), "GIT_CONFIG_NOSYSTEM": "1"})
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "somebody")
        self.git("config", "user.email", "somebody@example.org")
        (self.path / "main.txt").write_text("one\n")
        (self.path / "job.yml").write_text(f'version: 1\nkind: experiment\nrun: {{cmd: "{SHOW}"}}\n')

    def git(self, *words, cwd=None):
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.path, env=self.scenario.environment, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def commit(self, message="a commit"):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def myelin(self, *words, expect=0, cwd=None):
        ended = self.scenario.finish(self.scenario.start(*words, cwd=cwd or self.path))
        assert ended.status == expect, ended
        return ended

    def run(self, *words, **options):
        return self.myelin("run", "job.yml", *words, **options)

    def code(self, run="@"):
        return json.loads(self.myelin("status", run, "--json").out)["code"]

    def directory(self, run):
        return self.scenario.home / "runs" / str(run)


@pytest.fixture
def project(scenario):
    return Project(scenario)


def contents(top):
    """Every file below a directory with its bytes and whether it can be run, and every link."""
    found = {}
    for folder, folders, files in os.walk(top):
        if ".git" in folders:
            folders.remove(".git")
        for name in files + [f for f in folders if os.path.islink(os.path.join(folder, f))]:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                found[os.path.relpath(path, top)] = os.readlink(path)
            else:
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = (file.read(), bool(os.stat(path).st_mode & 0o100))
    return found


# -- facts


def test_a_run_records_commit_branch_remote_and_changes(project):
    commit = project.commit()
    project.git("remote", "add", "origin", "https://me:secret@example.org/p.git")
    (project.path / "main.txt").write_text("two\n")
    (project.path / "staged.txt").write_text("staged\n")
    project.git("add", "staged.txt")
    (project.path / "note.txt").write_text("unknown to git\n")
    (project.path / "folder").mkdir()
    (project.path / "folder" / "x").write_text("x")
    project.run()
    code = project.code()
    assert (code["commit"], code["branch"], code["dirty"]) == (commit, "main", True)
    assert code["remote"] == "https://example.org/p.git"
    assert code["untracked"] == {"count": 2, "names": ["folder/", "note.txt"]}
    assert code["place"] == "." and code["trouble"] is None
    diff = (project.directory(1) / "code.diff").read_bytes()
    assert code["diff"] == {"bytes": len(diff), "cut": False, "sha256": hashlib.sha256(diff).hexdigest()}
    assert b"-one\n+two\n" in diff and b"+staged\n" in diff and b"unknown" not in diff
    text = project.myelin("status", "@").out
    assert f"{commit[:12]} on main, with changes" in text and "2 untracked" in text
    for path in project.directory(1).rglob("*"):
        assert not path.is_file() or b"secret" not in path.read_bytes(), path


def test_names_of_untracked_files_that_are_too_long_for_a_line_are_left_out_and_counted(project):
    deep = project.path.joinpath(*["d" * 250] * 11)
    deep.mkdir(parents=True)
    (deep / "known").write_text("")
    commit = project.commit()
    for i in range(100):
        (deep / f"{i:0100}").write_text("")
    ended = project.run()
    code = project.code()
    assert (code["commit"], code["dirty"], code["untracked"]) == (commit, False, {"count": 100, "names": []}), code
    assert "could not be recorded" not in ended.err, ended


def test_a_clean_tree_has_no_changes(project):
    project.commit()
    project.run()
    code = project.code()
    assert code["dirty"] is False and code["diff"] is None and code["untracked"]["count"] == 0
    assert not (project.directory(1) / "code.diff").exists()


def test_a_run_outside_of_a_repository_has_no_facts(scenario):
    job = scenario.job("true")
    assert scenario.run(job).status == 0
    shown = scenario.finish(scenario.start("status", "@", "--json"))
    assert json.loads(shown.out)["code"] is None
    journal = (scenario.home / "runs" / "1" / "events.jsonl").read_text()
    assert '"event": "code"' not in journal


def test_a_repository_without_a_commit_has_a_branch(project):
    project.git("add", "main.txt")
    project.run()
    code = project.code()
    assert (code["commit"], code["branch"], code["dirty"]) == (None, "main", True)
    project.myelin("rerun", "1")
    assert project.myelin("logs", "2").out == "one\n"


def test_a_detached_head_has_a_commit_and_no_branch(project):
    commit = project.commit()
    project.git("checkout", "-q", "--detach")
    project.run()
    code = project.code()
    assert (code["commit"], code["branch"]) == (commit, None)


def test_a_worktree_is_a_repository_of_its_own(project):
    project.commit()
    other = project.scenario.directory / "other"
    project.git("worktree", "add", "-q", "-b", "side", str(other))
    (other / "main.txt").write_text("of the side\n")
    project.myelin("run", "job.yml", cwd=other)
    code = project.code()
    assert (code["branch"], code["repository"], code["dirty"]) == ("side", str(other), True)
    project.myelin("rerun", "@")
    assert project.myelin("logs", "@").out == "of the side\n"


def test_a_submodule_is_told_by_its_commit(project):
    inner = Project(project.scenario, "inner")
    inner.commit()
    project.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.path), "sub")
    project.commit()
    project.run()
    code = project.code()
    assert code["submodules"] is True and code["dirty"] is False
    ended = project.myelin("rerun", "@")
    assert "the folders of submodules are empty" in ended.err
    inner.myelin("run", "job.yml", cwd=project.path / "sub")
    assert project.code()["repository"] == str(project.path / "sub")


def test_a_bare_repository_has_a_commit_and_no_tree(project):
    commit = project.commit()
    project.git("config", "core.bare", "true")
    project.run()
    code = project.code()
    assert code["commit"] == commit and code["dirty"] is None and "bare" in code["trouble"]
    ended = project.myelin("rerun", "@", expect=125)
    assert "are not known as a whole" in ended.err


def test_a_broken_repository_costs_the_facts_and_not_the_run(project):
    project.commit()
    (project.path / ".git" / "HEAD").write_bytes(b"\0nonsense\xff")
    project.run()
    code = project.code()
    assert code["commit"] is None and code["trouble"]
    shutil.rmtree(project.path / ".git")
    (project.path / ".git").write_text("gitdir: /nowhere\n")
    project.run()
    assert project.code()["trouble"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository away")
def test_the_repository_of_another_user_is_refused_as_git_does(project):
    project.commit()
    nobody = pwd.getpwnam("nobody")
    for folder, folders, files in os.walk(project.path):
        for name in [folder, *(os.path.join(folder, f) for f in files)]:
            os.chown(name, nobody.pw_uid, nobody.pw_gid)
    project.run()
    assert "safe.directory" in project.code()["trouble"]
    assert "safe.directory" in project.myelin("status", "@").out


def test_changes_that_are_too_large_are_left_out_and_said(project):
    project.commit()
    (project.path / "main.txt").write_text("two\n")
    big = project.path / "job.txt"
    big.write_text("small\n")
    project.commit()
    os.truncate(big, 64 << 20)
    (project.path / "main.txt").write_text("three\n")
    project.run()
    code = project.code()
    assert code["dirty"] and code["diff"]["cut"] and code["diff"]["bytes"] < 1000
    assert "not all" in project.myelin("status", "@").out
    ended = project.myelin("rerun", "@", expect=125)
    assert "myelin restart 1" in ended.err and "--snapshot" in ended.err
    assert not project.directory(2).exists()


def test_a_large_tree_delays_no_start(project):
    """The task ends when the facts are told: so they came while it ran, and say so."""
    for i in range(8):
        (project.path / f"blob{i}").write_bytes(b"small")
    journal = project.directory(1) / "events.jsonl"
    task = project.path / "task.sh"
    task.write_text(f"until grep -q '\"dirty\": true' {journal}; do sleep 0.05; done\n")
    (project.path / "job.yml").write_text("version: 1\nkind: experiment\nrun: {cmd: sh task.sh}\n")
    project.commit()
    for i in range(8):
        with open(project.path / f"blob{i}", "wb") as file:
            file.write(os.urandom(1 << 12) * (1 << 11))
    project.run()
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    kinds = [event["event"] for event in events]
    code = events[kinds.index("code")]
    assert code["late"] is True and kinds.index("code") > kinds.index("task")
    assert "read after the start" in project.myelin("status", "@").out


# -- again


def fill(project):
    """A tree of all that git can keep."""
    top = project.path
    (top / "binary").write_bytes(bytes(range(256)) * 8)
    (top / "gone").write_text("removed later\n")
    (top / 'odd "näme"\\ .txt').write_text("odd\n")
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "link").symlink_to("main.txt")
    (top / "sub").mkdir()
    (top / "sub" / "main.txt").write_text("below\n")
    project.commit()


def change(project):
    top = project.path
    (top / "main.txt").write_text("changed, without a newline")
    (top / "binary").write_bytes(bytes(range(255, -1, -1)) * 8)
    (top / "gone").unlink()
    (top / 'odd "näme"\\ .txt').write_text("odd, changed\n")
    (top / "run.sh").chmod(0o755)
    (top / "link").unlink()
    (top / "link").symlink_to("binary")
    (top / "staged").write_text("staged\n")
    project.git("add", "staged")


def test_rerun_makes_the_commit_and_its_changes_again_and_leaves_the_repository_alone(project):
    fill(project)
    change(project)
    project.run()
    was = contents(project.path)
    by_git = project.scenario.directory / "by_git"
    project.git("worktree", "add", "-q", "--detach", str(by_git))
    project.git("apply", str(project.directory(1) / "code.diff"), cwd=by_git)
    assert contents(by_git) == {**was, ".git": contents(by_git)[".git"]}
    project.commit("go on")
    (project.path / "main.txt").write_text("later\n")
    before = contents(project.path / ".git"), project.git("status", "--porcelain")
    ended = project.myelin("rerun", "1")
    assert "from commit" in ended.err and "not kept" not in ended.err
    assert contents(project.directory(2) / "code") == was
    assert project.myelin("logs", "2").out == "changed, without a newline"
    assert (contents(project.path / ".git"), project.git("status", "--porcelain")) == before
    status = json.loads(project.myelin("status", "2", "--json").out)
    assert status["origin"]["manner"] == "rerun" and status["origin"]["id"] == 1
    assert status["code"] == project.code("1")
    assert (project.directory(2) / "outputs" / "where").read_text() == f"{project.directory(2)}/code\n"
    project.myelin("rerun", "2")
    assert contents(project.directory(3) / "code") == was


def test_rerun_runs_in_the_place_of_the_directory_and_names_what_is_missing(project):
    fill(project)
    (project.path / "sub" / "unknown.txt").write_text("x")
    project.myelin("run", "../job.yml", cwd=project.path / "sub")
    ended = project.myelin("rerun", "1")
    assert "untracked files were not kept: sub/unknown.txt" in ended.err
    assert project.myelin("logs", "2").out == "below\n"


def test_rerun_takes_options_and_params_of_the_original(project):
    (project.path / "job.yml").write_text(
        'version: 1\nkind: experiment\nparams: {a: 1, b: 1}\nrun: {cmd: "echo {{ a }} {{ b }}; cat main.txt"}\n'
    )
    project.commit()
    project.run("-P", "a=2")
    (project.path / "main.txt").write_text("later\n")
    project.myelin("rerun", "1", "-P", "b=3")
    assert project.myelin("logs", "2").out == "2 3\none\n"


def test_rerun_is_refused_where_the_code_is_gone(project):
    project.commit()
    project.run()
    shutil.rmtree(project.path / ".git")
    ended = project.myelin("rerun", "1", expect=125)
    assert "cannot be opened" in ended.err
    project.git("init", "-q", "-b", "main")
    ended = project.myelin("rerun", "1", expect=125)
    assert "is not in the repository" in ended.err and "fetch" in ended.err
    assert not project.directory(2).exists()


def test_rerun_of_a_run_without_facts_says_the_way_out(scenario):
    assert scenario.run(scenario.job("true")).status == 0
    ended = scenario.finish(scenario.start("rerun", "1"))
    assert ended.status == 125 and "myelin restart 1" in ended.err and "--snapshot" in ended.err


def test_a_changed_record_is_not_applied(project):
    project.commit()
    (project.path / "main.txt").write_text("two\n")
    project.run()
    diff = project.directory(1) / "code.diff"
    diff.write_text(diff.read_text().replace("+two", "+evil"))
    ended = project.myelin("rerun", "1", expect=125)
    assert "was changed since" in ended.err


# -- snapshots


def names_in(archive):
    done = subprocess.run(["tar", "--zstd", "-tf", archive], capture_output=True, check=True)
    names = done.stdout.decode().splitlines()
    return {name[len("tree/"):] for name in names if name.startswith("tree/") and not name.endswith("/")}


def test_a_snapshot_is_run_again_without_anything_else(project):
    fill(project)
    change(project)
    (project.path / "unknown.txt").write_text("not in git\n")
    (project.path / "out").symlink_to("/usr")
    (project.path / "sub" / "up").symlink_to("../../beside")
    project.myelin("run", "../job.yml", "--snapshot", cwd=project.path / "sub")
    was = contents(project.path)
    was["sub/up"] = f"{project.path}/sub/../../beside"
    code = project.code()
    assert code["snapshot"]["root"] == str(project.path) and code["place"] == "sub"
    assert ".git/HEAD" not in names_in(project.directory(1) / "code.tar.zst")
    shutil.rmtree(project.path)
    ended = project.myelin("rerun", "1", cwd=project.scenario.directory)
    assert "from its snapshot" in ended.err
    assert contents(project.directory(2) / "code" / "tree") == was
    assert (project.directory(2) / "outputs" / "where").read_text().endswith("/runs/2/code/tree/sub\n")
    project.myelin("rerun", "2", cwd=project.scenario.directory)
    assert contents(project.directory(3) / "code" / "tree") == was


def test_a_snapshot_outside_of_a_repository_is_of_the_working_directory_without_the_home(scenario):
    scenario.job("true")
    scenario.write(".polyaxonignore", "*.bin\n")
    scenario.write("data.bin", "x")
    os.mkfifo(scenario.directory / "pipe")
    assert scenario.run("job.yml", "--snapshot").status == 0
    archive = scenario.home / "runs" / "1" / "code.tar.zst"
    assert names_in(archive) == {"job.yml", ".polyaxonignore"}


def test_polyaxonignore_has_the_last_word(project):
    (project.path / ".gitignore").write_text("*.so\nbuild/\n")
    (project.path / ".polyaxonignore").write_text("!needed.so\ndata\n")
    for name in ["needed.so", "other.so"]:
        (project.path / name).write_text("x")
    for name in ["build", "data"]:
        (project.path / name).mkdir()
        (project.path / name / "x").write_text("x")
    project.run("--snapshot")
    assert names_in(project.directory(1) / "code.tar.zst") == {
        ".gitignore", ".polyaxonignore", "needed.so", "main.txt", "job.yml",
    }


def test_a_snapshot_of_data_is_refused_with_the_way_out(project):
    with open(project.path / "data.bin", "wb") as file:
        file.truncate(3 << 30)
    ended = project.run("--snapshot", expect=125)
    assert "data.bin" in ended.err and ".polyaxonignore" in ended.err
    assert not project.directory(1).exists()
    (project.path / ".polyaxonignore").write_text("*.bin\n")
    project.run("--snapshot")


PARTS = ["a", "b", "ab", "ba", "*", "**", "a*", "*b", "?", "[ab]", "[!a]", "a?", "**b", "a**", "\\a", "[a-b]*"]


def pattern(chance):
    text = "/".join(chance.choice(PARTS) for _ in range(chance.choice([1, 1, 1, 2, 2, 3])))
    text = chance.choice(["", "", "", "/"]) + text + chance.choice(["", "", "", "/", " "])
    return chance.choice(["", "", "", "!"]) + text


def names_by_git(project):
    listed = project.git("ls-files", "-z", "--others", "--cached", "--exclude-standard")
    return {name for name in listed.split("\0") if name}


@pytest.mark.parametrize("seed", range(12))
def test_a_snapshot_has_the_files_that_git_does_not_ignore(project, seed):
    chance = random.Random(seed)
    for _ in range(60):
        folder = project.path.joinpath(*chance.choices(["a", "b", "ab", "ba"], k=chance.randrange(4)))
        if not folder.exists() and not any(p.is_file() for p in folder.parents):
            folder.mkdir(parents=True)
        name = folder / chance.choice(["a", "b", "ab", "ba", "x", "aa"])
        if folder.is_dir() and not name.exists():
            name.write_text("x")
    for folder in [project.path, *(p for p in sorted(project.path.rglob("*")) if p.is_dir() and ".git" not in p.parts)]:
        if folder == project.path or chance.random() < 0.2:
            (folder / ".gitignore").write_text("".join(pattern(chance) + "\n" for _ in range(chance.randrange(1, 5))))
    project.run("--snapshot")
    assert names_in(project.directory(1) / "code.tar.zst") == names_by_git(project)


# -- side by side


def test_compare_shows_how_the_code_differs(project):
    first = project.commit()
    project.run()
    (project.path / "main.txt").write_text("two\n")
    second = project.commit()
    (project.path / "main.txt").write_text("three\n")
    project.run()
    text = project.myelin("compare", "1", "2").out
    assert first in text and second in text and "1 file changed" in text
    text = project.myelin("compare", "1", "2", "--code", "--files").out
    assert "-one\n+three\n" in text and "0 only in run 1" in text
    fields = {row["field"]: row["values"] for row in json.loads(project.myelin("compare", "1", "2", "--json").out)["fields"]}
    assert fields["code.commit"] == [first, second] and fields["code.changes"][0] == "none"
    shutil.rmtree(project.path / ".git")
    ended = project.myelin("compare", "1", "2", "--code")
    assert "-two\n+three\n" in ended.out and "run 1: no changes were kept" in ended.out
    assert "the code cannot be compared" in project.myelin("compare", "1", "2").out
    project.myelin("compare", "1", "2", "2", "--code", expect=2)


def test_compare_shows_how_the_environment_differs(project):
    project.run()
    project.scenario.environment["PATH"] += ":/elsewhere"
    project.run()
    fields = {row["field"]: row["values"] for row in json.loads(project.myelin("compare", "1", "2", "--json").out)["fields"]}
    assert fields["environment.PATH"][1].endswith(":/elsewhere")
    assert "environment.kernel" not in fields
    machine = json.loads(project.myelin("status", "1", "--json").out)["machine"]
    assert machine["kernel"] == os.uname().release and machine["cpus"] == len(os.sched_getaffinity(0))


def test_runs_are_found_by_commit(project):
    commit = project.commit()
    project.run()
    (project.path / "main.txt").write_text("two\n")
    project.run()
    project.commit()
    project.run()

    def found(query):
        return [run["id"] for run in json.loads(project.myelin("runs", "--query", query, "--json").out)["runs"]]

    assert sorted(found(f"commit:{commit}")) == sorted(found(f"commit:{commit[:7]}%")) == [1, 2]
    assert found(f"commit:{commit}, dirty:true") == [2]
    assert sorted(found("branch:main")) == [1, 2, 3]
