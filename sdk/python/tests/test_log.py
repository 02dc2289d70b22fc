# SPDX-License-Identifier: Apache-2.0
"""What is logged is what is read."""
import math
import os
import time

import pytest
from spools import CLOSED, OPEN, SEALED


def test_a_metric_is_kept_with_its_step_and_its_time(stage):
    before = time.time_ns() // 1000
    stage.good("run = myelin.init(); run.log(loss=0.5, step=7)")
    (point,) = stage.spool().points
    assert (point.name, point.step, point.value) == ("loss", 7, 0.5)
    assert before <= point.time_us <= time.time_ns() // 1000


def test_metrics_of_one_call_share_step_and_time(stage):
    stage.good("run = myelin.init(); run.log(a=1.0, b=2.0, c=3.0, step=5)")
    points = stage.spool().points
    assert [(p.name, p.step, p.value) for p in points] == [("a", 5, 1.0), ("b", 5, 2.0), ("c", 5, 3.0)]
    assert len({p.time_us for p in points}) == 1


def test_names_that_are_no_identifiers_come_in_a_dictionary(stage):
    stage.good("""
        import collections, types
        run = myelin.init()
        run.log({"val/loss": 1, "step": 2, "größe": 3}, step=9, acc=4)
        run.log(collections.OrderedDict(a=5), step=9)
        run.log(types.MappingProxyType({"b": 6}), step=9)
        run.log({}); run.log()
    """)
    assert [(p.name, p.step, p.value) for p in stage.spool().points] == [
        ("val/loss", 9, 1), ("step", 9, 2), ("größe", 9, 3), ("acc", 9, 4), ("a", 9, 5), ("b", 9, 6)]


def test_without_a_step_each_name_counts_its_own(stage):
    stage.good("""
        run = myelin.init()
        run.log(a=1); run.log(a=1); run.log(b=1); run.log(a=1, b=1); run.log(b=1)
        run.log(a=1, step=100); run.log(a=1); run.log(a=1, step=None)
    """)
    assert [step for step, _ in stage.spool().series("a")] == [0, 1, 2, 100, 101, 102]
    assert [step for step, _ in stage.spool().series("b")] == [0, 2, 3]


def test_steps_may_go_back_and_repeat(stage):
    stage.good("""
        run = myelin.init()
        for step in (5, 6, 6, 3, -4, 2**63 - 1, 4): run.log(a=1, step=step)
        for step in (-2**63 + 1, 0): run.log(b=1, step=step)
    """)
    assert [step for step, _ in stage.spool().series("a")] == [5, 6, 6, 3, -4, 2**63 - 1, 4]
    assert [step for step, _ in stage.spool().series("b")] == [-(2**63) + 1, 0]


def test_keywords_that_a_program_puts_together_are_the_same_names(stage):
    stage.good("""
        run = myelin.init()
        for i in range(3): run.log(**{"lo" + "s" * 2: i, "".join(["st", "ep"]): 10 + i})
        run.log(loss=9, step=20)
    """)
    assert stage.spool().series("loss") == [(10, 0), (11, 1), (12, 2), (20, 9)]


def test_whatever_is_a_number_is_a_value(stage):
    stage.good("""
        import decimal, fractions
        run = myelin.init()
        class Tensor:
            def __float__(self): return 2.5
        for value in (1, True, 2**60, Tensor(), decimal.Decimal("0.25"), fractions.Fraction(1, 2)): run.log(v=value)
        for value in (float("nan"), float("inf"), float("-inf"), -0.0, 5e-324): run.log(w=value)
    """)
    assert [v for _, v in stage.spool().series("v")] == [1, 1, float(2**60), 2.5, 0.25, 0.5]
    special = [v for _, v in stage.spool().series("w")]
    assert math.isnan(special[0]) and special[1:] == [math.inf, -math.inf, 0, 5e-324]
    assert math.copysign(1, special[3]) == -1


def test_scalars_of_numpy_are_values_and_steps(stage):
    pytest.importorskip("numpy")
    stage.good("""
        import numpy as np
        run = myelin.init()
        run.log(v=np.float32(0.5), step=np.int64(3)); run.log(v=np.array(1.5), step=np.array(4)); run.log(v=np.bool_(True))
    """)
    assert stage.spool().series("v") == [(3, 0.5), (4, 1.5), (5, 1.0)]


def test_what_is_no_number_is_counted_and_told_once_and_ends_nothing(stage):
    ended = stage.good("""
        run = myelin.init()
        class Broken:
            def __float__(self): raise RuntimeError("two elements")
        for _ in range(2): run.log(good=1, none=None, text="3", broken=Broken(), large=10**400)
        assert run.dropped == 8, run.dropped
    """)
    assert len(stage.spool().series("good")) == 2 and len(stage.spool().points) == 2
    for name in ("none", "text", "broken", "large"):
        assert ended.err.count("the value of '%s' is not a number" % name) == 1
    assert "two elements" in ended.err and "script.py" in ended.err
    assert stage.spool().segments[-1].header.dropped == 8


def test_a_name_that_is_no_text_of_utf_8_is_told_like_any_other(stage):
    ended = stage.good("""
        run = myelin.init()
        for _ in range(2): run.log({"half \\ud800": "x"}, **{"\\udcff": None})
        assert run.dropped == 4, run.dropped
        run.log({"half \\ud800": 1.0})
    """)
    for name in ("half \\ud800", "\\udcff"):
        assert ended.err.count("the value of '%s' is not a number" % name) == 1
    assert stage.spool().series("half ?") == [(0, 1.0)]


def test_an_interrupt_while_a_value_is_asked_for_is_not_swallowed(stage):
    stage.good("""
        run = myelin.init()
        class Slow:
            def __float__(self): raise KeyboardInterrupt
        try: run.log(a=Slow())
        except KeyboardInterrupt: sys.exit(0)
        sys.exit(1)
    """)


def test_a_call_that_is_wrong_in_itself_raises(stage):
    stage.good("""
        run = myelin.init()
        def refused(kind, *args, **metrics):
            try: run.log(*args, **metrics)
            except kind: return
            raise AssertionError((args, metrics))
        refused(TypeError, 1.0); refused(TypeError, "loss"); refused(TypeError, {}, {}); refused(TypeError, {1: 2.0})
        refused(TypeError, a=1, step="3"); refused(TypeError, a=1, step=0.5)
        refused(OverflowError, a=1, step=2**63); refused(OverflowError, a=1, step=-2**63)
    """)
    assert stage.spool().points == []


def test_both_implementations_write_the_same(both):
    script = """
        run = myelin.init()
        long = "x" * 250
        names = ["a", "ä" * 127, "ä" * 128, "ä" * 129, long, long + "123456", long + "123457", "tab\\there", "nul\\0",
                 "half \\ud800", "", "\\x7f", "日本語" * 40, "🎉" * 64]
        for i in range(3000):
            run.log({name: i for name in names}, step=i // 2)
            run.log(a=i, b=i); run.log(a=i); run.log(b=i, step=i)
        run.params({"a": float("nan"), "b": [1, (2, {"c": None})], "d": 2**70, "e": "half \\ud800"})
        run.summary(x="y" * 100000)
        print(run.dropped)
    """
    said = [stage.good(script).out for stage in both]
    native, python = (stage.spool() for stage in both)
    assert said[0] == said[1] == "3000\n"
    assert [p[:3] for p in native.points] == [p[:3] for p in python.points]
    assert native.records == python.records
    assert [s.header.size for s in native.segments] == [s.header.size for s in python.segments]
    assert [len(list(s.payloads())) for s in native.segments] == [len(list(s.payloads())) for s in python.segments]


def test_segments_follow_each_other_and_none_needs_another(stage):
    stage.good("""
        run = myelin.init()
        for i in range(40000): run.log(a=i, step=i)
        for i in range(4000): run.log({"m%d" % k: i for k in range(20)})
    """)
    spool = stage.spool()
    assert [v for _, v in spool.series("a")] == list(range(40000))
    assert all(spool.series("m%d" % k) == [(i, i) for i in range(4000)] for k in range(20))
    assert [s.header.number for s in spool.segments] == list(range(len(spool.segments))) and len(spool.segments) > 3
    assert [s.header.state for s in spool.segments] == [SEALED] * (len(spool.segments) - 1) + [CLOSED]
    assert spool.segments[0].header.size == 64 << 10 and spool.segments[-1].header.size == 1 << 20
    assert {s.header.attempt for s in spool.segments} == {3}


def test_more_metrics_than_fit_in_one_record_are_all_kept(stage):
    stage.good("run = myelin.init(); run.log({'m%d' % k: k for k in range(1000)}, step=1)")
    assert [(p.name, p.value) for p in stage.spool().points] == [("m%d" % k, k) for k in range(1000)]


def test_what_a_call_returned_from_survives_a_kill(stage):
    process = stage.start("""
        run = myelin.init()
        i = 0
        while True:
            run.log(loss=i, step=i)
            os.write(1, b"%d\\n" % i)
            i += 1
    """)
    for line in process.stdout:
        if int(line) >= 5000:
            break
    process.kill()
    returned = int((line + process.stdout.read()).split(b"\n")[-2])
    process.communicate()
    spool = stage.spool(was_killed=True)
    steps = [step for step, _ in spool.series("loss")]
    assert steps[:returned + 1] == list(range(returned + 1)) and len(steps) <= returned + 2
    assert OPEN in [segment.header.state for segment in spool.segments]
