# SPDX-License-Identifier: Apache-2.0
"""What tasks write comes out whole, in order, and with the name of who wrote it."""
import os


def test_every_line_carries_the_name_of_its_task(scenario):
    cmd = scenario.script('echo "out of $RANK"; echo "err of $RANK" >&2')
    ended = scenario.run(scenario.job(cmd, "pytorch", workers=2))
    assert ended.status == 0, ended
    for rank, task in enumerate(["master.0", "worker.0", "worker.1"]):
        assert sorted(ended.lines_of(task)) == [f"err of {rank}", f"out of {rank}"], ended
    assert len(ended.out.splitlines()) == 6


def test_plain_output_is_what_a_pipe_gets(scenario):
    job = scenario.job(scenario.script('echo "I am $RANK"'), "pytorch", workers=1)
    piped, plain = scenario.run(job), scenario.run(job, "--plain")
    assert sorted(plain.out.splitlines()) == sorted(piped.out.splitlines()), plain


def test_lines_of_one_task_keep_their_order(scenario):
    cmd = scenario.script("seq 1 20000")
    ended = scenario.run(scenario.job(cmd, "pytorch", workers=1))
    assert ended.status == 0
    for task in ["master.0", "worker.0"]:
        assert ended.lines_of(task) == [str(i) for i in range(1, 20001)]


def test_a_last_line_without_newline_is_shown(scenario):
    ended = scenario.run(scenario.job(scenario.script("printf 'no newline'")))
    assert ended.lines_of("master.0") == ["no newline"], ended


def test_an_empty_line_stays_an_empty_line(scenario):
    ended = scenario.run(scenario.job(scenario.script("printf 'a\\n\\nb\\n'")))
    assert ended.lines_of("master.0") == ["a", "", "b"], ended


def test_a_task_that_writes_nothing_adds_no_line(scenario):
    ended = scenario.run(scenario.job("true"))
    assert ended.status == 0 and ended.out == "", ended


def test_bytes_that_are_no_text_neither_stop_nor_change_the_output(scenario):
    cmd = scenario.script("printf 'before\\n\\377\\376\\001\\302 raw\\nafter\\n'")
    ended = scenario.run(scenario.job(cmd))
    assert ended.status == 0, ended
    assert b"\xff\xfe\x01\xc2 raw" in ended.out_bytes, ended
    lines = ended.lines_of("master.0")
    assert lines[0] == "before" and lines[-1] == "after"


def test_of_a_line_of_a_megabyte_no_byte_is_lost(scenario):
    cmd = scenario.script("head -c 1048576 /dev/zero | tr '\\0' x; echo; echo end")
    ended = scenario.run(scenario.job(cmd))
    assert ended.status == 0
    assert ended.out_bytes.count(b"x") == 1048576
    assert ended.lines_of("master.0")[-1] == "end"


def test_of_a_megabyte_that_never_ends_its_line_no_byte_is_lost(scenario):
    cmd = scenario.script("head -c 1048576 /dev/zero | tr '\\0' x")
    ended = scenario.run(scenario.job(cmd))
    assert ended.status == 0
    assert ended.out_bytes.count(b"x") == 1048576


def test_a_reader_that_goes_away_does_not_stop_the_training(scenario):
    cmd = scenario.script("yes | head -c 3000000; touch done.$RANK")
    process = scenario.start("run", scenario.job(cmd, "pytorch", workers=1))
    process.stdout.read(1000)
    process.stdout.close()
    process.stdout = None
    assert scenario.finish(process).status == 0
    assert len(list(scenario.directory.glob("done.*"))) == 2


def test_a_reader_that_stands_still_does_not_hold_up_the_training(scenario):
    cmd = scenario.script("yes | head -c 3000000; touch done.$RANK")
    process = scenario.start("run", scenario.job(cmd, "pytorch", workers=1))
    scenario.wait_for("done.*", 2)
    assert scenario.finish(process).status == 0


def test_a_closed_standard_output_does_not_stop_the_training(scenario):
    cmd = scenario.script("echo lost; touch done")
    scenario.run(scenario.job(cmd), under=["sh", "-c", 'exec "$@" >&-', "sh"])
    assert (scenario.directory / "done").exists()


def test_a_task_that_closes_its_output_goes_on_to_its_own_end(scenario):
    cmd = scenario.script("echo before; exec >&- 2>&-; sleep 0.3; touch done; exit 7")
    ended = scenario.run(scenario.job(cmd))
    assert ended.status == 7 and ended.lines_of("master.0") == ["before"], ended
    assert (scenario.directory / "done").exists()


def test_tasks_read_nothing_from_the_terminal(scenario):
    read, write = os.pipe()
    os.write(write, b"typed by the user\n")
    ended = scenario.run(scenario.job("cat"), stdin=read)
    os.close(read)
    os.close(write)
    assert ended.status == 0 and "typed" not in ended.out, ended
