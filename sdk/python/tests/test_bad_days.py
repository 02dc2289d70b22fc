# SPDX-License-Identifier: Apache-2.0
"""Nothing that happens to the spool happens to the training."""
import os
import subprocess

import pytest


def test_a_spool_that_is_gone_costs_points_and_nothing_else(stage):
    ended = stage.good("""
        run = myelin.init()
        for i in range(100): run.log(a=i, b=i)
        run.params(lr=1)
        assert run.dropped == 201 and run.reason == "the spool is gone", (run.dropped, run.reason)
    """, MYELIN_SPOOL=str(stage.directory / "gone" / "spool"))
    assert ended.err == "myelin: 201 points of run 7 were not kept: the spool is gone\n"


def test_a_spool_that_comes_back_is_used_again(stage):
    stage.good("""
        run = myelin.init()
        run.log(a=1)
        os.mkdir("gone")
        time.sleep(0.05)
        run.log(a=2)
        assert run.dropped == 1 and run.reason is None
        os.rmdir("spool"); os.rename("gone/spool", "spool")
    """, MYELIN_SPOOL=str(stage.directory / "gone" / "spool"))
    assert stage.spool().series("a") == [(1, 2)]
    assert stage.spool().segments[0].header.dropped == 1


def test_a_spool_that_is_a_file_or_closed_is_told_as_such(stage):
    stage.good("""
        open("file", "w").close()
        os.environ["MYELIN_SPOOL"] = os.path.abspath("file")
        run = myelin.init()
        run.log(a=1)
        assert run.reason == "the spool is not a directory", run.reason
        run.finish()
        os.mkdir("closed", 0o500)
        os.environ["MYELIN_SPOOL"] = "closed"
        if os.geteuid() != 0:
            run = myelin.init(); run.log(a=1)
            assert run.reason == "the spool cannot be written: permission denied", run.reason
    """)


def test_a_limit_on_file_sizes_kills_nobody(stage):
    ended = stage.good("""
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (70000, 70000))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        run = myelin.init()
        for i in range(20000): run.log(a=i, step=i)
        assert run.dropped == 0
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 70000))
        for i in range(20000): run.log(a=i)
        assert run.dropped > 0 and "ulimit" in run.reason, run.reason
    """)
    assert "were not kept" in ended.err
    assert [v for _, v in stage.spool().series("a")][:20000] == list(range(20000))


def test_beyond_the_bound_of_unfolded_segments_points_are_dropped(stage):
    stage.good("""
        run = myelin.init()
        for i in range(60000): run.log(a=i, step=i)
        assert run.dropped > 0 and "does not keep up" in run.reason, run.reason
        os.unlink(os.path.join(os.environ["MYELIN_SPOOL"], sorted(os.listdir(os.environ["MYELIN_SPOOL"]))[0]))
        time.sleep(1.1)
        run.log(a=-1)
        assert run.reason is None
    """, MYELIN_SPOOL_SEGMENTS="2")
    assert stage.spool().points[-1].value == -1


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_full_disk_costs_points_and_nothing_else(stage):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "none", str(stage.spool_path)]).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        ended = stage.good("""
            run = myelin.init()
            for i in range(60000): run.log(a=i, step=i)
            assert run.dropped > 0 and run.reason == "the disk of the spool is full", run.reason
        """)
        assert "the disk of the spool is full" in ended.err
        steps = [step for step, _ in stage.spool().series("a")]
        assert steps == list(range(len(steps))) and len(steps) > 1000
    finally:
        subprocess.run(["umount", str(stage.spool_path)], check=True)


def test_a_child_writes_a_file_of_its_own(stage):
    stage.good("""
        run = myelin.init()
        run.log(a=0, step=0)
        for child in range(1, 4):
            if os.fork() == 0:
                for i in range(1000): run.log(a=child * 10000 + i, step=i)
                os._exit(0)
        for i in range(1, 1000): run.log(a=i, step=i)
        for _ in range(3): assert os.wait()[1] == 0
        run.log(a=1000, step=1000)
    """)
    of = {}
    for point in stage.spool().points:
        of.setdefault(point.pid, []).append(int(point.value))
    assert sorted(of.values()) == [list(range(1001))] + [[c * 10000 + i for i in range(1000)] for c in (1, 2, 3)]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing_log_into_the_same_run(stage, method):
    stage.good("""
        import multiprocessing
        def work(i):
            myelin.init().log(a=i)
        if __name__ == "__main__":
            run = myelin.init()
            run.log(a=100)
            with multiprocessing.get_context(%r).Pool(2) as pool: pool.map(work, range(20))
            run.log(a=101)
    """ % method)
    assert sorted(p.value for p in stage.spool().points) == list(range(20)) + [100, 101]


def test_threads_share_a_run(stage):
    stage.good("""
        run = myelin.init()
        def work(k):
            for i in range(3000): run.log({"t%d" % k: i}, step=i); run.log(all=i)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert run.dropped == 0, run.dropped
    """)
    spool = stage.spool()
    assert all(spool.series("t%d" % k) == [(i, i) for i in range(3000)] for k in range(4))
    assert [step for step, _ in spool.series("all")] == list(range(12000))


def test_a_fork_while_other_threads_log_leaves_a_child_that_can_log(stage):
    stage.good("""
        run = myelin.init()
        stop = threading.Event()
        def work():
            while not stop.is_set():
                for _ in range(50): run.log(a=1)
                time.sleep(0.0005)  # what is logged is read again below, by Python
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads: thread.start()
        for _ in range(30):
            child = os.fork()
            if child == 0:
                run.log(b=1)
                os._exit(run.dropped)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for thread in threads: thread.join()
    """)
    assert len(stage.spool().series("b")) == 30


def test_a_signal_handler_may_log_in_the_middle_of_a_call(stage):
    stage.good("""
        run = myelin.init()
        seen = 0
        def handler(*_):
            global seen
            seen += 1
            run.log(handled=seen)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        n = 0
        while seen < 200: run.log(a=1); n += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(n + seen - run.dropped)
    """)
    assert len(stage.spool().points) > 0


def test_a_run_that_is_finished_keeps_nothing_more(stage):
    stage.good("""
        run = myelin.init()
        run.log(a=1)
        run.finish(); run.finish()
        run.log(a=2); run.params(b=1)
        assert run.dropped == 0 and run.reason is None
    """)
    assert len(stage.spool().points) == 1 and stage.spool().records == []


def test_descriptors_that_a_program_closes_are_nobody_elses_loss(stage):
    stage.good("""
        run = myelin.init()
        run.log(a=1)
        os.closerange(3, 256)
        mine = [os.open("/dev/null", os.O_RDONLY) for _ in range(16)]
        for i in range(20000): run.log(a=i)
        run.finish()
        for fd in mine: os.fstat(fd)
    """)
    assert len(stage.spool().points) == 20001
