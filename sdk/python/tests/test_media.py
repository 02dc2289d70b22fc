# SPDX-License-Identifier: Apache-2.0
"""Images and texts with a step: files whose path says all, and nothing that a training could stumble over."""
import struct
import zlib

import pytest


def pixels(data):
    """Width, height, channels and rows of a PNG without filters, with every sum checked."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, head = 8, b"", None
    while at < len(data):
        n, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + n]
        assert struct.unpack_from(">I", data, at + 8 + n)[0] == zlib.crc32(kind + body)
        head = struct.unpack(">IIBB3x", body) if kind == b"IHDR" else head
        packed += body if kind == b"IDAT" else b""
        at += 12 + n
    width, height, depth, colour = head
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[colour]
    raw, stride = zlib.decompress(packed), 1 + width * channels
    assert depth == 8 and len(raw) == height * stride and set(raw[::stride]) == {0}
    return width, height, channels, [list(raw[i * stride + 1:(i + 1) * stride]) for i in range(height)]


def files(stage):
    folder = stage.directory / "outputs" / "media"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def kept(stage, path):
    return (stage.directory / "outputs" / "media" / path).read_bytes()


def test_the_path_of_an_image_says_name_step_rank_and_attempt(stage):
    stage.good("""
        run = myelin.init()
        path = run.log_image("val/samples", [[0, 255], [128, 1]], step=400)
        assert path == os.path.join(run.outputs_path, "media", "val", "samples", "000000400-2-3.png"), path
        assert run.dropped == 0
    """)
    assert files(stage) == ["val/samples/000000400-2-3.png"]
    assert pixels(kept(stage, "val/samples/000000400-2-3.png")) == (2, 2, 1, [[0, 255], [128, 1]])


def test_without_a_step_each_name_counts_its_own(stage):
    stage.good("""
        run = myelin.init()
        for i in range(3): run.log_text("a", "text %d" % i)
        run.log_text("b", "other"); run.log_text("a", "x", step=10); run.log_text("a", "y"); run.log_text("a", "z", step=10)
    """, MYELIN_ATTEMPT="0")
    assert files(stage) == ["a/%09d-2.txt" % step for step in (0, 1, 2, 10, 11)] + ["b/000000000-2.txt"]
    assert kept(stage, "a/000000001-2.txt") == b"text 1" and kept(stage, "a/000000010-2.txt") == b"z"


def test_lists_become_images_of_one_to_four_channels(stage):
    stage.good("""
        run = myelin.init()
        run.log_image("shares", [[0.0, 1.0, 0.5, -3.0, float("nan"), float("inf")]])
        run.log_image("beyond", [[-5, 300, True]])
        run.log_image("colours", [[[1, 2, 3], [4, 5, 6]]])
        run.log_image("alpha", (((1, 2, 3, 4),),))
        run.log_image("first", [[[1, 2, 7, 8, 9]], [[3, 4, 7, 8, 9]], [[5, 6, 7, 8, 9]]])
        assert run.dropped == 0
    """, MYELIN_ATTEMPT="0")
    got = {name.split("/")[0]: pixels(kept(stage, name)) for name in files(stage)}
    assert got == {
        "shares": (6, 1, 1, [[0, 255, 128, 0, 0, 255]]),
        "beyond": (3, 1, 1, [[0, 255, 255]]),
        "colours": (2, 1, 3, [[1, 2, 3, 4, 5, 6]]),
        "alpha": (1, 1, 4, [[1, 2, 3, 4]]),
        "first": (5, 1, 3, [[1, 3, 5, 2, 4, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9]]),
    }


def test_files_and_their_bytes_are_kept_as_they_are(stage):
    stage.good("""
        import pathlib
        run = myelin.init()
        jpeg, svg = b"\\xff\\xd8\\xff\\xe0 and so on", b"<svg></svg>"
        open("photo", "wb").write(jpeg)
        run.log_image("path", "photo", 0); run.log_image("path", pathlib.Path("photo"), 1); run.log_image("bytes", svg)
        run.log_image("webp", bytearray(b"RIFF\\0\\0\\0\\0WEBPVP8 "))
        class Figure:  # as Matplotlib's: the names of the call are the same
            def savefig(self, file, format): file.write(b"\\x89PNG\\r\\n\\x1a\\n" + format.encode())
        run.log_image("figure", Figure())
        assert run.dropped == 0
    """, MYELIN_ATTEMPT="0")
    assert files(stage) == ["bytes/000000000-2.svg", "figure/000000000-2.png", "path/000000000-2.jpg",
                            "path/000000001-2.jpg", "webp/000000000-2.webp"]
    assert kept(stage, "path/000000001-2.jpg") == b"\xff\xd8\xff\xe0 and so on"


def test_arrays_of_numpy_and_images_of_pil_are_kept(stage):
    pytest.importorskip("numpy")
    pytest.importorskip("PIL")
    stage.good("""
        import numpy, PIL.Image
        run = myelin.init()
        run.log_image("bytes", numpy.arange(12, dtype="uint8").reshape(2, 2, 3))
        run.log_image("floats", numpy.array([[0, 1, 0.5, numpy.nan, -numpy.inf, 7]], dtype="float64"))
        run.log_image("bools", numpy.array([[True, False]]))
        run.log_image("beyond", numpy.array([[-5, 300]]))
        run.log_image("first", numpy.arange(15).reshape(3, 1, 5))
        run.log_image("pil", PIL.Image.new("RGB", (3, 2), (9, 8, 7)))
        assert run.dropped == 0
        assert list(PIL.Image.open(run.log_image("again", [[[1, 2, 3]], [[4, 5, 6]]])).getdata()) == [(1, 2, 3), (4, 5, 6)]
    """, MYELIN_ATTEMPT="0")
    got = {name: pixels(kept(stage, name + "/000000000-2.png")) for name in ("bytes", "floats", "bools", "beyond", "first")}
    assert got == {
        "bytes": (2, 2, 3, [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]),
        "floats": (6, 1, 1, [[0, 255, 128, 0, 0, 255]]),
        "bools": (2, 1, 1, [[255, 0]]),
        "beyond": (2, 1, 1, [[0, 255]]),
        "first": (5, 1, 3, [[0, 5, 10, 1, 6, 11, 2, 7, 12, 3, 8, 13, 4, 9, 14]]),
    }


def test_what_is_no_image_costs_one_warning_for_each_name_and_is_counted(stage):
    ended = stage.good("""
        run = myelin.init()
        class Bad:
            def tolist(self): raise ZeroDivisionError("in the user's own code")
        os.mkfifo("pipe")
        bad = [None, 3, "missing", "pipe", b"no image", [], [[]], [[1], [1, 2]], [[[[1]]]], [["x"]], {}, object(), Bad()]
        for image in bad: assert run.log_image("bad", image) is None
        assert run.log_text("long", "x" * (1 << 20 | 1)) is None
        assert run.dropped == len(bad) + 1, run.dropped
        assert run.log_text("text", 7) and run.log_text("\\ud800", "\\ud800")
    """)
    assert ended.err.count("RuntimeWarning") == 2 and "the text 'long' of step 0 is not kept: it has more than 1 MiB" in ended.err
    assert files(stage) == ["?/000000000-2-3.txt", "text/000000000-2-3.txt"]


def test_a_call_that_is_wrong_in_itself_raises(stage):
    stage.good("""
        run = myelin.init()
        for name, step, kind in ((1, 0, TypeError), ("a", 0.5, TypeError), ("a", 1 << 63, OverflowError)):
            for log in (run.log_text, run.log_image):
                try: log(name, "x", step=step)
                except kind: pass
                else: raise AssertionError((name, step))
    """)


HASH = "e1add1d93134d2c5"  # FNV-1a of 1000 times x


def test_no_name_leads_out_of_the_folder(stage):
    stage.good("""
        run = myelin.init()
        for name in ("../../up", "/etc/x", "..", "", ".hidden/./y", "a//b", "new\\nline", "x" * 1000):
            assert run.log_text(name, "x").startswith(run.outputs_path + "/media/"), name
    """, MYELIN_ATTEMPT="0")
    assert files(stage) == sorted(name + "/000000000-2.txt" for name in (
        "_./_./up", "etc/x", "_.", "_", "_hidden/_/y", "a/b", "new?line", "x" * 238 + "~" + HASH))


def test_outputs_that_cannot_be_written_cost_the_image_and_nothing_else(stage):
    ended = stage.good("""
        import resource
        run = myelin.init()
        assert run.log_text("a", "x") is None and run.dropped == 1
        os.remove("file")
        assert run.log_text("a", "x") and run.dropped == 1
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        assert run.log_text("a", "x" * 101) is None and run.log_text("a", "x" * 100)
        run.finish()
        assert run.log_text("a", "x") is None
    """, MYELIN_OUTPUTS_PATH=_file(stage))
    assert "the text 'a' of step 0 is not kept" in ended.err and "2 points of run 7 were not kept" in ended.err
    assert not [path for path in stage.directory.rglob(".part*")]


def _file(stage):
    (stage.directory / "file").write_text("in the way")
    return str(stage.directory / "file")


def test_outside_of_a_run_the_program_lists_what_was_logged(stage):
    stage.good("""
        run = myelin.init()
        run.log_image("val/samples", [[1]], step=7); run.log_text("note", "better", step=9)
    """, inside=False)
    shown = stage.myelin("outputs", "1", "--media")
    rows = [line.split() for line in shown.out.splitlines()[1:]]
    assert [(row[0], row[1], row[2], row[3]) for row in rows] == [
        ("note", "9", "master.0", "text"), ("val/samples", "7", "master.0", "image")], shown
    assert "better" in shown.out and "media/val/samples/000000007-0.png" in shown.out
