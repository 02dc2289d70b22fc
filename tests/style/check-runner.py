#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the runner of the tests to what it promises: nothing hangs it, nothing that failed stays unnamed, and a change
selects the subjects of conformance that it concerns. Prints TAP. Usage: check-runner.py SOURCE_ROOT"""
import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import traceback

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/conformance"), str(ROOT / "tests/faults")]

import changed  # noqa: E402
import table as faults  # noqa: E402
from testing import pace, programs, scenarios  # noqa: E402
from testing.report import Report, Result  # noqa: E402


class QuietPace:
    """A machine on which a test has 2 seconds, by the file, and 4 where the plugin cannot end it."""

    factor = 1.0

    def seconds(self, quiet_s):
        return 4 if quiet_s == 2 * scenarios.TEST_LIMIT_S else quiet_s


class Somebody:
    """Stands in for a Person: without a copy of the checkout."""

    def __init__(self, directory):
        self.home = self.temporary = self.checkout = str(directory)
        self.identity = {}
        (directory / "tools").mkdir()
        (directory / "tools/testing").symlink_to(ROOT / "tools/testing")

    def environment(self):
        return {"PATH": os.environ["PATH"], "TMPDIR": self.temporary, "PYTHONDONTWRITEBYTECODE": "1"}


def report(lines=None, **options):
    lines = [] if lines is None else lines
    return Report(QuietPace(), show=lambda line, **_: lines.append(line), **options)


def play(text, **more):
    """Runs one file of tests as the runner does; gives {name: outcomes} and the report."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        (directory / "limit").write_text("2")
        (directory / "test_it.py").write_text(textwrap.dedent(text))
        found = report()
        scenarios.Session(found, QuietPace(), "it", Somebody(directory), str(directory / "limit")).run(
            ["test_it.py"], {}, False, more)
    outcomes = {}
    for result in found.results:
        outcomes.setdefault(result.name.removeprefix("it: it: "), []).append(result.outcome)
    return outcomes, found


def test_a_test_that_hangs_is_named_and_the_others_run():
    outcomes, found = play("""
        import os, signal, time
        def test_before(): pass
        def test_wrong(): assert 1 == 2
        def test_hangs():
            print("words of it", flush=True)
            while True:
                try:
                    time.sleep(60)
                except Exception:
                    pass
        def test_hangs_and_cannot_be_interrupted():
            os.write(1, b"deaf")
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
            while True: time.sleep(60)
        def test_ends_pytest(): os._exit(7)
        def test_after(): pass
    """)
    assert outcomes == {"test_before": ["passed"], "test_wrong": ["failed"], "test_hangs": ["failed"], "test_after": ["passed"],
                        "test_hangs_and_cannot_be_interrupted": ["failed"], "test_ends_pytest": ["failed"]}, outcomes
    texts = {result.name: result.output for result in found.results}
    assert "longer than 2 s" in texts["it: it: test_hangs"] and "words of it" in texts["it: it: test_hangs"]
    assert "it hung" in texts["it: it: test_hangs_and_cannot_be_interrupted"]
    assert "ended pytest with 7" in texts["it: it: test_ends_pytest"]
    assert len(found.durations) >= 4 and not found.running


def test_a_report_of_a_sanitizer_is_a_failure_with_the_name_of_its_test():
    outcomes, _ = play("""
        import os
        def test_quiet(): open(os.environ["TMPDIR"] + "/report.1", "w").write("leak")
        def test_after(): pass
    """)
    assert outcomes == {"test_quiet": ["passed"], "test_quiet: report of a sanitizer": ["failed"], "test_after": ["passed"]}


def test_shares_of_a_file_are_all_of_it_and_share_nothing():
    text = "import pytest\n@pytest.mark.parametrize('n', range(7))\ndef test_it(n): pass\n"
    shares = [play(text, MYELIN_TEST_SHARE=f"{share}/3")[0] for share in range(3)]
    assert sorted(name for share in shares for name in share) == [f"test_it[{n}]" for n in range(7)]


def test_a_file_that_cannot_be_read_is_a_failure():
    outcomes, _ = play("import no_such_module\n")
    assert [outcome for all_of_one in outcomes.values() for outcome in all_of_one] == ["failed"], outcomes


def test_a_program_that_is_ended_or_runs_less_than_its_plan_fails():
    outcomes = lambda *given: [result.outcome for result in programs.results_of("p", *given)]
    assert outcomes(0, "1..2\nok 1 - a\nok 2 - b\n") == ["passed", "passed"]
    assert outcomes(None, "1..2\nok 1 - a\n") == ["passed", "failed"]
    assert outcomes(0, "1..1\nnot ok 1 # SKIP for a reason\n") == ["skipped"]
    assert outcomes(1, "1..1\nok 1 - a\n") == ["passed", "failed"]
    assert outcomes(0, "") == ["passed"] and outcomes(77, "") == ["skipped"] and outcomes(None, "") == ["failed"]


def test_a_slow_machine_gets_longer_limits():
    assert pace.factor_of([pace.QUIET_S] * 5) == 1 and pace.factor_of([pace.QUIET_S / 9] * 5) == 1
    assert pace.factor_of([pace.QUIET_S * 5] * 5) == 5 and pace.factor_of([pace.QUIET_S * 999] * 5) == pace.MOST
    took = iter([pace.QUIET_S] * pace.ROUNDS + [pace.QUIET_S * 8, pace.QUIET_S])
    measured = pace.Pace(lambda: next(took))
    assert measured.seconds(10) == 10
    measured.renew()
    assert round(measured.seconds(10)) == 80, "it rises at once"
    measured.renew()
    assert 10 < measured.seconds(10) < 80, "and sinks slowly"


def test_progress_is_shown_where_nothing_else_is():
    lines = []
    found = report(lines)
    found.start("k", "unit: some test")
    found.tick()
    assert not lines, "not as long as something was said a moment ago"
    found.said -= 16
    found.tick()
    assert len(lines) == 1 and "unit: some test" in lines[0], lines


def test_every_failure_is_named_and_skips_are_a_count_unless_asked_for():
    for skips in (False, True):
        lines = []
        found = report(lines, skips=skips)
        for n in range(40):
            found.add("g", Result(f"case {n}", "failed", "why"))
            found.add("g", Result(f"left out {n}", "skipped", "Skipped: no room"))
        assert found.close() == 1
        text = "\n".join(lines)
        assert all(f"FAILED   g: case {n}" in text for n in range(40))
        assert ("left out 7" in text) == skips and text.count("no room") == skips
        assert lines[-1].endswith("0 passed, 40 failed, 40 skipped")


def test_the_slowest_are_shown():
    lines = []
    found = report(lines, slowest=2)
    for n in (1, 30, 20):
        found.took(f"test {n}", n)
    found.close()
    assert [line.split()[-1] for line in lines if "test " in line] == ["30", "20"]


STAND_IN = """#!/bin/bash
trap 'printf "FAILED   some test\\n    its words\\n\\n3 passed, 2 failed\\n"; exit 143' TERM
[ "${1:-}" = conformance ] && { echo "5 passed, 0 failed, 1 skipped"; exit 0; }
echo begun
while :; do sleep 0.1; done
"""


def test_a_part_of_ci_that_falls_silent_is_ended_and_what_failed_in_it_is_named():
    with tempfile.TemporaryDirectory() as scratch:
        stand_in = pathlib.Path(scratch) / "test"
        stand_in.write_text(STAND_IN)
        stand_in.chmod(0o755)
        ended = subprocess.run([ROOT / ".ci/run"], env=dict(os.environ, CI_TEST=str(stand_in), CI_SILENCE_MINUTES="0.1"),
                               capture_output=True, text=True, check=False)
    closing = ended.stdout.partition("== what failed")[2]
    assert "FAILED   some test" in closing and closing.endswith("8 passed, 3 failed, 1 skipped\n"), ended
    assert "said nothing for 0.1 minutes" in ended.stdout and ended.returncode == 1


# -- tests/faults


def test_the_page_of_faults_has_a_row_for_each_fault_that_is_injected():
    rows = faults.rows_of((ROOT / "docs/faults.md").read_text(encoding="utf-8"))
    assert rows == [fault.what for fault in faults.FAULTS], "run ./test faults, which writes docs/faults.md"
    assert len({fault.name for fault in faults.FAULTS}) == len(rows)


# -- tests/conformance/paths

CORE, ROWS = changed.read_table((ROOT / "tests/conformance/paths").read_text(encoding="utf-8"))
SUBJECTS = changed.subjects(ROOT)


def test_every_subject_is_in_the_table_of_paths_and_every_word_of_it_is_a_subject():
    words = CORE.union(*(row for _, row in ROWS))
    assert words - {"all", "none"} == set(SUBJECTS), words ^ set(SUBJECTS)
    assert CORE and all(row for _, row in ROWS)


def test_every_source_file_matches_a_row():
    for top in ("src", "sdk"):
        for path in (ROOT / top).rglob("*.[chp]*"):
            name = str(path.relative_to(ROOT))
            assert "__pycache__" in name or any(fnmatch.fnmatchcase(name, pattern) for pattern, _ in ROWS), (
                f"no row of tests/conformance/paths matches {name}")


def test_every_row_matches_a_file():
    files = [str(path.relative_to(ROOT)) for top in ROOT.iterdir() if top.name != ".git" and not top.name.startswith("build")
             for path in ([top] if top.is_file() else top.rglob("*"))]
    for pattern, _ in ROWS:
        assert fnmatch.filter(files, pattern), f"{pattern} of tests/conformance/paths matches no file"


def test_a_change_selects_its_subjects_and_an_unknown_path_all():
    select = lambda *paths: changed.selected(paths, {"core"}, [("src/a/*", ["one"]), ("docs/*", ["none"]), ("b", ["all"])],
                                             ["core", "one", "two"])[0]
    assert select() == ["core"] and select("docs/x.md") == ["core"]
    assert select("src/a/deep/x.c") == ["core", "one"]
    assert select("src/new/x.c") == select("b") == ["core", "one", "two"]
    assert select("tests/conformance/subjects/two.sh", "docs/x") == ["core", "two"]


def main():
    laws = [(name, law) for name, law in globals().items() if name.startswith("test_")]
    failures = 0
    for number, (name, law) in enumerate(laws, 1):
        try:
            law()
            outcome = "ok"
        except Exception:
            print("".join(f"# {line}\n" for line in traceback.format_exc().splitlines()), end="")
            outcome, failures = "not ok", failures + 1
        print(f"{outcome} {number} - {name.removeprefix('test_').replace('_', ' ')}", flush=True)
    print(f"1..{len(laws)}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
