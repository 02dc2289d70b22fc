# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a file or a command line is said before anything starts."""
import re

import pytest


def test_a_wrong_file_is_shown_with_a_caret_and_nothing_starts(scenario):
    job = scenario.write(
        "job.yml",
        """
        version: 1
        kind: experiment
        framework: pytorch
        environment:
          replicas:
            n_workers: three
        run:
          cmd: touch started
        """,
    )
    ended = scenario.run(job)
    assert ended.status == 125, ended
    assert re.search(r"job\.yml:6:\d+", ended.err), ended
    assert re.search(r"^\s*(\d+ )?[|│]?\s*\^", ended.err, re.MULTILINE), ended
    assert "n_workers: three" in ended.err
    assert not (scenario.directory / "started").exists()
    assert ended.out == ""


def test_all_mistakes_are_told_at_once(scenario):
    job = scenario.write("job.yml", "version: 1\nkind: experiment\nrnu: {cmd: 'true'}\nbakend: native\n")
    ended = scenario.run(job)
    assert ended.status == 125, ended
    assert "rnu" in ended.err and "bakend" in ended.err, ended


def test_a_file_that_is_not_there_is_named(scenario):
    ended = scenario.run("nowhere.yml")
    assert ended.status == 125, ended
    assert "nowhere.yml" in ended.err


def test_no_file_at_all_is_told_which_names_were_looked_for(scenario):
    ended = scenario.run()
    assert ended.status == 125, ended
    assert "polyaxonfile" in ended.err


def test_without_a_name_the_usual_file_is_taken(scenario):
    scenario.job("echo found", name="polyaxonfile.yml")
    ended = scenario.run()
    assert ended.status == 0 and ended.lines_of("master.0") == ["found"], ended


def test_a_file_can_be_given_with_f(scenario):
    ended = scenario.run("-f", scenario.job("echo found"))
    assert ended.status == 0 and ended.lines_of("master.0") == ["found"], ended


def test_of_two_files_the_later_one_wins(scenario):
    base = scenario.job("echo base", name="base.yml")
    over = scenario.write("over.yml", "run: {cmd: echo over}\n")
    ended = scenario.run("-f", base, "-f", over)
    assert ended.lines_of("master.0") == ["over"], ended


def test_a_file_without_a_command_cannot_be_run(scenario):
    ended = scenario.run(scenario.job(None))
    assert ended.status == 125, ended
    assert "cmd" in ended.err


def test_P_wins_over_the_file(scenario):
    job = scenario.job("echo {{ word }} {{ n }}", head="params: {word: file, n: 1}")
    ended = scenario.run(job, "-P", "word=line", "-P", "n=2")
    assert ended.lines_of("master.0") == ["line 2"], ended


@pytest.mark.parametrize("bad", ["word", "=x"])
def test_a_P_without_name_or_value_is_misuse(scenario, bad):
    ended = scenario.run(scenario.job("true"), "-P", bad)
    assert ended.status == 125, ended
    assert "-P" in ended.err or "name=value" in ended.err


@pytest.mark.parametrize("arguments", [["--no-such-option"], ["--grace", "soon"], ["--grace", "-1"], ["--grace"]])
def test_a_wrong_command_line_is_misuse(scenario, arguments):
    ended = scenario.run(scenario.job("touch started"), *arguments)
    assert ended.status == 125, ended
    assert arguments[0].lstrip("-") in ended.err
    assert not (scenario.directory / "started").exists()


@pytest.mark.parametrize("backend", ["kubeflow", "mpi", "other"])
def test_a_backend_that_cannot_run_here_is_refused(scenario, backend):
    ended = scenario.run(scenario.job("touch started", head=f"backend: {backend}"))
    assert ended.status == 125, ended
    assert "backend" in ended.err
    assert not (scenario.directory / "started").exists()


def test_a_command_with_shell_syntax_is_given_to_a_shell(scenario):
    ended = scenario.run(scenario.job("echo one && echo two | tr t T; echo \"$((1 + 2))\""))
    assert ended.lines_of("master.0") == ["one", "Two", "3"], ended


def test_a_list_of_commands_runs_until_the_first_that_fails(scenario):
    job = scenario.write(
        "job.yml", "version: 1\nkind: experiment\nrun:\n  cmd: [echo one, 'false', echo never]\n"
    )
    ended = scenario.run(job)
    assert ended.status == 1, ended
    assert ended.lines_of("master.0") == ["one"], ended


def test_a_command_that_is_a_shell_builtin_alone_still_runs(scenario):
    ended = scenario.run(scenario.job("exit 3"))
    assert ended.status == 3, ended


def test_what_has_no_effect_here_is_told_by_check_plan_and_run(scenario):
    head = "build: {image: python}\nenvironment:\n  tolerations: [{key: a}]\n"
    job = scenario.job("true", head=head)
    for command in ["check", "plan", "run"]:
        ended = scenario.finish(scenario.start(command, job))
        assert ended.status == 0, ended
        for field in ["build", "tolerations"]:
            assert f"`{field}` ha" in ended.out + ended.err, ended


def test_check_says_that_a_file_has_no_command(scenario):
    scenario.write("empty.yml", "version: 1\nkind: experiment\n")
    ended = scenario.finish(scenario.start("check", "empty.yml"))
    assert ended.status == 0 and "the file has no command" in ended.out, ended


def test_continuation_lines_and_undefined_names_are_as_in_the_original(scenario):
    job = scenario.write("job.yml", """
        version: 1
        kind: experiment
        run:
          cmd: sh -c 'printf "[%s]" "$@"' x \\
               --a=1 \\
               --b={{ nowhere }} \\
        """)
    ended = scenario.run(job)
    assert ended.status == 0 and "[--a=1][--b=]" in ended.out, ended
    assert "`nowhere` is not defined" in ended.err
    assert scenario.finish(scenario.start("check", "--strict", job)).status == 1
