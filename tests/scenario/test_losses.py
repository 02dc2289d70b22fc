# SPDX-License-Identifier: Apache-2.0
"""What tasks log is in the series, or it is kept in the spool, or it is counted: nothing goes without a word."""
import json
import os
import re

import pytest
from conftest import compile_logger
from test_bad_days import can_mount, own_mounts
from test_tracking import NAMES, Stage, metrics

LOGGER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "myelin.h"

/* logs N points of "loss"; with a file, half of them, makes the file, waits until it is gone, and logs the rest */
int main(int argc, char **argv) {
    const int n = atoi(argv[1]);
    struct myelin *m = myelin_open();
    const uint32_t loss = myelin_name(m, "loss");

    for (int i = 0; i < n; i++) {
        const double value = i;

        if (argc > 2 && i == n / 2) {
            fclose(fopen(argv[2], "w"));
            while (access(argv[2], F_OK) == 0)
                usleep(10000);
        }
        myelin_log(m, &loss, &value, 1, i, MYELIN_NOW);
    }
    return 0;
}
"""
NOTHING = {"dropped": 0, "refused": 0, "lost_segments": 0, "damaged_segments": 0, "waiting_segments": 0,
           "unread_segments": 0, "unread_version": None}  # fmt: skip
POINTS = 20000


@pytest.fixture(scope="module")
def logger(tmp_path_factory):
    return compile_logger(tmp_path_factory, LOGGER)


@pytest.fixture
def stage(scenario):
    return Stage(scenario)


def not_kept(stage, run="@"):
    return json.loads(stage.myelin("status", run, "--json").out)["not_kept"]


def count_of(stage, name="loss"):
    return sum(entry["count"] for entry in metrics(stage, "@", name))


# ---- a disk that is nearly full


def test_on_a_disk_of_any_size_every_point_is_kept_or_counted(scenario, logger):
    if not can_mount():
        pytest.skip("no mount can be made here")
    job = scenario.job(f"{logger} {POINTS}")
    sizes = [*range(36, 176, 4), 200, 256, 320, 512, 4096]
    script = """
        for size in $3; do
            mount -t tmpfs -o size=${size}k none "$MYELIN_HOME" || exit 99
            said=$("$1" run "$2" 2>&1 >/dev/null | grep -c "points that tasks logged were dropped")
            mount -o remount,size=64m "$MYELIN_HOME" || exit 77
            if "$1" status 1 --json > "$KEPT/$size.status"; then # else it was refused
                "$1" metrics 1 loss --json > "$KEPT/$size.metrics" 2>"$KEPT/$size.note"
                "$1" status 1 --json > "$KEPT/$size.status"
                echo "$size $said"
            fi
            umount -l "$MYELIN_HOME"
        done
        """
    kept = scenario.directory / "kept"
    kept.mkdir()
    scenario.home.mkdir()
    scenario.environment["KEPT"] = str(kept)
    under = [*own_mounts(), "sh", "-c", script, "sh"]
    ended = scenario.finish(scenario.start(job, " ".join(map(str, sizes)), under=under))
    if ended.status == 77 and os.geteuid() != 0:
        pytest.skip("a mount cannot be made larger here")
    assert ended.status == 0, ended
    shortest = POINTS
    for line in ended.out.splitlines():
        size, said = line.split()
        series = json.loads((kept / f"{size}.metrics").read_text())
        told = json.loads((kept / f"{size}.status").read_text())["not_kept"]
        count = sum(entry["count"] for entry in series)
        assert count + told["dropped"] == POINTS, (size, count, told)
        assert (told["dropped"] > 0) == (said == "1") == ("dropped" in (kept / f"{size}.note").read_text()), (size, told)
        assert told == {**NOTHING, "dropped": told["dropped"]}, (size, told)
        shortest = min(shortest, count)
    assert shortest == 0 and count == POINTS, "the sizes go from no room at all to enough"


# ---- a spool that cannot be read


def test_a_spool_of_another_version_is_kept_and_said(stage, scenario):
    stage.gang("new.yml", scenario.python("""
        import os, pathlib
        folder = pathlib.Path(os.environ["MYELIN_SPOOL"])
        folder.mkdir(exist_ok=True)
        (folder / f"{os.getpid()}-1-000000.spool").write_bytes(b"myspool\\0\\x09\\0\\0\\0" + b"x" * 4084)
    """), workers=0)
    ended = stage.run("new.yml")
    assert ended.status == 0 and "has version 9, and this program reads version 2" in ended.err, ended
    assert "not kept: 1 segment of version 9 is kept in the spool, unread" in ended.err, ended
    for _ in range(2):
        assert stage.myelin("ps", "-a").status == 0
    (segment,) = (stage.run_directory("@") / "spool/master.0").iterdir()
    assert segment.stat().st_size == 4096 and segment.suffix == ".spool"
    assert not_kept(stage) == {**NOTHING, "unread_segments": 1, "unread_version": 9}
    assert "look at the run with one that reads version 9" in stage.myelin("status", "@").out
    journal = (stage.run_directory("@") / "events.jsonl").read_text()
    assert journal.count('"event": "losses"') == 1 and journal.count("another version") == 1


def test_what_is_damaged_is_set_aside_and_what_is_sound_is_read(stage, logger):
    run = stage.script(f'{logger} 20000; for f in "$MYELIN_SPOOL"/*; do printf xxxxxxxx | '
                       'dd of="$f" bs=1 seek=4096 conv=notrunc 2>/dev/null; done')
    stage.gang("track.yml", run, workers=0)
    ended = stage.run("track.yml")
    assert ended.status == 0 and "damaged segment" in ended.err, ended
    told = not_kept(stage)
    kept = list((stage.run_directory("@") / "spool/master.0").iterdir())
    assert len(kept) == told["damaged_segments"] > 0 and all(path.name.endswith(".spool.damaged") for path in kept)
    assert 0 < count_of(stage) < 20000
    assert stage.myelin("ps", "-a").status == 0 and not_kept(stage) == told and all(path.exists() for path in kept)


def test_a_spool_that_was_removed_while_it_was_written_is_said(stage, logger):
    wait = stage.home.parent / "half"
    # A log of that size has the points of the first half.
    run = stage.script(f'log=$(dirname "$(dirname "$MYELIN_SPOOL")")/series/wal; {logger} 1000 {wait} & '
                       f'while [ ! -e {wait} ] || [ "$(stat -c %s "$log" || echo 0)" -lt 1000 ]; do sleep 0.05; done; '
                       f'rm -r "$MYELIN_SPOOL"; rm {wait}; wait')
    stage.gang("track.yml", run, workers=0)
    ended = stage.run("track.yml")
    assert ended.status == 0 and "removed before" in ended.err, ended
    assert count_of(stage) == 500 and not_kept(stage) == {**NOTHING, "lost_segments": 1}


# ---- series that somebody removes


@pytest.mark.parametrize("what", ["series", "series/wal", "series/*"])
def test_series_that_are_removed_during_a_run_are_made_anew_with_all_points(stage, logger, what):
    wait = stage.home.parent / "half"
    run = stage.script(f'directory=$(dirname "$(dirname "$MYELIN_SPOOL")"); {logger} 100000 {wait} & '
                       f'while [ ! -e {wait} ] || [ ! -e "$directory/series/wal" ] || [ -e "$MYELIN_SPOOL"/*-000000.spool ]; '
                       f'do sleep 0.05; done; rm -r "$directory"/{what}; rm {wait}; wait')
    stage.gang("track.yml", run, workers=0)
    ended = stage.run("track.yml")
    assert ended.status == 0 and "removed the series" in ended.err, ended
    (entry,) = metrics(stage, "@", "loss")
    assert entry["count"] == 100000 and [point["step"] for point in entry["points"]] == list(range(100000))
    assert not_kept(stage) == NOTHING


# ---- many names


def test_as_many_metrics_as_a_run_keeps_are_listed_and_those_beyond_are_counted(scenario, stage, tmp_path_factory):
    names = compile_logger(tmp_path_factory, NAMES)
    ended = stage.run(scenario.job(f"for word in a b c d e; do {names} $word; done"), seconds=120)
    assert ended.status == 0 and "points of more metrics than a run keeps" in ended.err, ended
    listed = stage.myelin("metrics", "@")
    assert listed.status == 0 and len(listed.out.splitlines()) == 1001, listed.err
    (kept,) = map(int, re.findall(r"1000 of (\d+) metrics; choose with a pattern", listed.err))
    assert 262144 - 100 < kept <= 262144, "what myelin measures itself has its place among them"
    assert len(stage.myelin("metrics", "@", "a/1", "--csv").out.splitlines()) == 2
    drawn = stage.myelin("metrics", "@", "?/1*")
    assert drawn.status == 0 and "100 of" in drawn.err, drawn.err
    assert not_kept(stage) == {**NOTHING, "refused": 5 * 65536 - kept}


# ---- files that are none


SPECIAL = """
    import os, pathlib, socket
    import json
    outputs = pathlib.Path(os.environ["MYELIN_OUTPUTS_PATH"])
    os.mkfifo(outputs / "pipe")
    (outputs / "model").mkdir()
    os.mkfifo(outputs / "model/pipe")
    (outputs / "model/weights").write_text("w")
    os.symlink("loop", outputs / "loop")
    os.mkfifo(outputs / "events.out.tfevents.1.host")
    (outputs / "media").mkdir()
    os.mkfifo(outputs / "media/000000001-0.png")
    socket.socket(socket.AF_UNIX).bind(os.path.relpath(outputs / "socket"))
"""


def test_no_special_file_is_hashed_or_opened(stage, scenario, tmp_path_factory):
    artifacts = compile_logger(tmp_path_factory, r"""
        #include <string.h>
        #include "myelin.h"
        int main(void) {
            struct myelin *m = myelin_open();
            const char *texts[] = { "{\"name\": \"pipe\", \"path\": \"pipe\"}", "{\"name\": \"socket\", \"path\": \"socket\"}",
                                    "{\"name\": \"net\", \"path\": \"model\"}" };
            for (int i = 0; i < 3; i++)
                myelin_record(m, MYELIN_ARTIFACT, texts[i], strlen(texts[i]));
            return 0;
        }
        """)
    stage.gang("special.yml", stage.script(f"{scenario.python(SPECIAL)} && exec {artifacts}"), workers=0)
    ended = stage.run("special.yml")
    assert ended.status == 0 and "is a FIFO: only files, directories and links are kept" in ended.err, ended
    told = {entry["name"]: entry for entry in json.loads(stage.myelin("status", "@", "--json").out)["artifacts"]}
    assert told["pipe"]["sha256"] is None and "FIFO" in told["pipe"]["problem"]
    assert told["socket"]["sha256"] is None and "socket" in told["socket"]["problem"]
    assert told["net"]["sha256"] and told["net"]["files"] == 1 and "'net' has 1 FIFO" in ended.err
    listed = stage.myelin("outputs", "@")
    assert listed.status == 0 and "pipe" not in listed.out and "are left out" in listed.err
    assert stage.myelin("outputs", "@", "pipe").status == 1
    assert stage.myelin("outputs", "@", "--media").status == 0
    copied = stage.myelin("outputs", "@", "--copy", "copy")
    assert copied.status == 0, copied
    assert stage.myelin("export", "@", "-o", "special.tar.zst").status == 0


def test_a_pipe_in_the_place_of_series_makes_nobody_wait(stage, logger):
    stage.gang("track.yml", f"{logger} 10", workers=0)
    assert stage.run("track.yml").status == 0
    log = stage.run_directory("@") / "series/wal"
    log.unlink()
    os.mkfifo(log)
    assert stage.myelin("metrics", "@").status == 1
    assert stage.myelin("status", "@").status == 0 and stage.myelin("ps", "-a").status == 0


def test_a_pipe_as_rules_of_a_snapshot_makes_nobody_wait(scenario):
    os.mkfifo(scenario.directory / ".polyaxonignore")
    ended = scenario.run("--snapshot", scenario.job("true"))
    assert ended.status == 0, ended


# ---- a home that is full


def test_a_run_leaves_a_full_home_for_another_disk(scenario, logger):
    if not can_mount():
        pytest.skip("no mount can be made here")
    job = scenario.job(scenario.script(f'echo x > "$MYELIN_OUTPUTS_PATH/net"; {logger} 100'))
    script = """
        mount -t tmpfs -o size=4m none "$MYELIN_HOME" || exit 99
        "$1" run "$2" && "$1" model ls && "$1" reindex || exit 98
        cat /dev/zero > "$MYELIN_HOME/full" 2>/dev/null
        "$1" export 1 -o away.tar.zst && "$1" export 1 --tensorboard board
        """
    scenario.home.mkdir()
    ended = scenario.finish(scenario.start(job, under=[*own_mounts(), "sh", "-c", script, "sh"]))
    assert ended.status == 0 and (scenario.directory / "away.tar.zst").stat().st_size > 0, ended
