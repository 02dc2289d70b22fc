# SPDX-License-Identifier: Apache-2.0
"""A run as the code of a training sees it."""
import atexit
import errno
import os
import shutil
import stat
import sys
import tempfile
import threading
import warnings
from operator import index
from typing import Any, Callable, Dict, Mapping, Optional, Union

from . import _media
from ._plain import plain, to_json
from ._spool import Spool
from ._standalone import Standalone

PARAMS, TAGS, SUMMARY, ARTIFACT = 3, 4, 5, 6
NO_RECORD = 0  # is dropped and counted
FICLONE = 0x40049409  # of Linux: a copy that shares its blocks until one of the two is written

_lock = threading.Lock()
_run = None  # type: Optional[Run]


def _say(sentence: str) -> None:
    try:
        sys.stderr.write("myelin: %s\n" % sentence)
    except Exception:
        pass  # a closed standard error


def _number(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else otherwise


class Run(Spool):
    """What `myelin.init()` gives. Its `log` comes from the spool itself."""

    __slots__ = ("id", "task", "rank", "world_size", "attempt", "_outputs", "_standalone", "_finished", "_own_pid",
                 "_media")

    def __init__(self, spool: Optional[str], outputs: Optional[str], standalone: Optional[Standalone]) -> None:
        self.attempt = _number("MYELIN_ATTEMPT", 0)
        Spool.__init__(self, spool, self.attempt)
        self.id = os.environ.get("MYELIN_RUN_ID")  # type: Optional[str]
        self.task = os.environ.get("MYELIN_TASK", "master.0")
        self.rank = _number("MYELIN_RANK", 0)
        self.world_size = _number("MYELIN_WORLD_SIZE", 1)
        self._outputs = outputs
        self._standalone = standalone
        self._finished = False
        self._own_pid = os.getpid()
        self._media = _media.Media()

    @property
    def outputs_path(self) -> str:
        """A directory for what the run makes, one for all of its tasks."""
        if not self._outputs:
            self._outputs = tempfile.mkdtemp(prefix="myelin-outputs.")
        return self._outputs

    # ---- what is kept beside the metrics

    def _keep(self, kind: int, what: str, members: Mapping[str, Any]) -> None:
        if members and not self._record(kind, to_json(members)) and self.reason is None and not self._finished:
            warnings.warn("the %s are too large to be kept (more than 1 MiB as JSON)" % what, RuntimeWarning,
                          stacklevel=3)

    def params(*args: Any, **members: Any) -> None:
        """What the training was given: run.params(lr=0.1), run.params({...}), run.params(argparse's result).
        Later values of a name replace earlier ones."""
        args[0]._keep(PARAMS, "params", _members("params", args, members))

    def summary(*args: Any, **members: Any) -> None:
        """What came out in the end: run.summary(accuracy=0.97). Later values of a name replace earlier ones."""
        args[0]._keep(SUMMARY, "summary", _members("summary", args, members))

    def tags(*args: Any, **members: Any) -> None:
        """Words to find the run by: run.tags("baseline", team="vision")."""
        named = {}  # type: Dict[str, Any]
        for given in args[1:]:
            if isinstance(given, Mapping):
                named.update(given)
            else:
                named.update((str(tag), True) for tag in ([given] if isinstance(given, str) else given))
        named.update(members)
        args[0]._keep(TAGS, "tags", named)

    def log_artifact(
        self,
        path: Union[str, "os.PathLike[str]"],
        name: Optional[str] = None,
        type: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
    ) -> Optional[str]:
        """Keeps a file or a directory with the run, and gives the place where it is kept.

        What lies in `outputs_path` already stays where it is; anything else is copied to
        `outputs/artifacts/<name>`, where it replaces an earlier one of that name. None, with a
        warning, where that cannot be done."""
        source = os.path.abspath(os.fspath(path))
        label = name or os.path.basename(source)
        if os.path.isabs(label) or ".." in label.split("/") or not label.strip("/"):
            raise ValueError("the name of an artifact is a path below the outputs, not '%s'" % label)
        outputs = os.path.realpath(self.outputs_path)
        try:
            kept = os.path.realpath(source)
            _check_kind(os.stat(kept).st_mode)
            if not kept.startswith(outputs + os.sep):
                kept = os.path.join(outputs, "artifacts", label)
                _copy(source, kept)
            size, files = _measure(kept)
        except OSError as error:
            warnings.warn("the artifact '%s' is not kept: %s" % (label, error), RuntimeWarning, stacklevel=2)
            return None
        self._keep(ARTIFACT, "metadata of the artifact", {
            "name": label,
            "type": type,
            "path": os.path.relpath(kept, outputs),
            "size": size,
            "files": files,
            "metadata": plain(metadata or {}),
        })
        return kept

    # ---- images and texts

    def log_image(self, name: str, image: Any, step: Optional[int] = None) -> Optional[str]:
        """Keeps an image of a step, and gives the place where it is kept.

        It is a path, the bytes of a file (PNG, JPEG, GIF, WebP, BMP, SVG), an image of PIL, a figure of Matplotlib, or
        an array or a list of height, width and up to 4 channels: whole numbers to 255, or floats to 1. None, with one
        warning for each name, where that cannot be done: it is counted in `dropped`, and ends nothing."""

        def make() -> Any:
            data = _media.image_bytes(image)
            return _media.suffix_of(data), data, _media.IMAGE_MOST

        return self._keep_media("image", name, step, make)

    def log_text(self, name: str, text: str, step: Optional[int] = None) -> Optional[str]:
        """Keeps a text of a step, of at most 1 MiB, as `log_image` keeps an image."""
        return self._keep_media("text", name, step,
                                lambda: ("txt", str(text).encode("utf-8", "replace"), _media.TEXT_MOST))

    def _keep_media(self, what: str, name: str, step: Optional[int], make: Callable[[], Any]) -> Optional[str]:
        if not isinstance(name, str):
            raise TypeError("the name of %s is a text, not %s" % ("an " + what if what == "image" else "a " + what,
                                                                 type(name).__name__))
        if step is not None:
            step = index(step)
            if not -_media.STEP_MOST < step < _media.STEP_MOST:
                raise OverflowError("the step has more than 64 bits")
        if self._finished or self.id is None:
            return None
        media = self._media
        step = media.step(name, step)
        try:
            if not self._outputs:
                raise _media.Unkept("the run has no outputs")
            if media.files >= _media.FILES_MOST:
                raise _media.Unkept("a process keeps at most %d images and texts" % _media.FILES_MOST)
            suffix, data, most = make()
            if len(data) > most:
                raise _media.Unkept("it has more than %d MiB" % (most >> 20))
            path = _media.write(self._outputs, name, _media.mark_of(step, self.rank, self.attempt), suffix, data)
        except Exception as error:  # whatever people call an image may raise anything
            self._record(NO_RECORD, b"")
            if name not in media.warned and len(media.warned) < _media.WARNINGS_MOST:
                media.warned.add(name)
                warnings.warn("the %s '%s' of step %d is not kept: %s" % (what, name, step, error), RuntimeWarning,
                              stacklevel=3)
            return None
        media.files += 1
        return path

    # ---- the end

    def finish(self) -> None:
        """Ends the run of this process; what is logged later is not kept. Happens by itself at exit."""
        self._finish(None)

    def _finish(self, error: Optional[BaseException]) -> None:
        global _run

        if self._finished or os.getpid() != self._own_pid:
            return  # a child that was forked has its parent's run, and does not end it
        self._finished = True
        dropped, reason = self.dropped, self.reason
        self._close()
        if dropped and self.id is not None:
            _say("%d points of run %s were not kept%s" % (dropped, self.id, ": " + reason if reason else ""))
        if self._standalone is not None:
            self._standalone.end(error)
        with _lock:
            if _run is self:
                _run = None

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        self._finish(error)

    def __repr__(self) -> str:
        return "<myelin.Run %s, %s>" % (self.id or "that is not kept", self.task)


def _members(what: str, args: Any, members: Dict[str, Any]) -> Dict[str, Any]:
    if len(args) > 2:
        raise TypeError("%s() takes one dictionary, and members as keywords" % what)
    if len(args) == 2:
        given = args[1]
        if not isinstance(given, Mapping):
            if not hasattr(given, "__dict__"):
                raise TypeError("%s() takes a dictionary, not %s" % (what, type(given).__name__))
            given = vars(given)
        return dict(given, **members)
    return members


def _check_kind(mode: int) -> None:
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.EINVAL, "it is a FIFO, a socket or a device, and only files and directories are kept")


def _open_plain(path: str, flags: int) -> int:
    """A pipe would make the training wait for a writer."""
    fd = os.open(path, flags | os.O_NONBLOCK)
    try:
        _check_kind(os.fstat(fd).st_mode)
    except OSError:
        os.close(fd)
        raise
    return fd


def _clone(source: str, target: str) -> None:
    import fcntl

    with open(source, "rb", opener=_open_plain) as from_, open(target, "wb") as to:
        try:
            fcntl.ioctl(to.fileno(), FICLONE, from_.fileno())
        except OSError:
            shutil.copyfileobj(from_, to, 1 << 20)
    shutil.copymode(source, target)


def _copy(source: str, target: str) -> None:
    """Never a link: a training that writes its checkpoint again in place would change what was kept."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    scratch = tempfile.mkdtemp(prefix=".part-", dir=os.path.dirname(target))
    try:
        copy = os.path.join(scratch, "copy")
        if os.path.isdir(source):
            shutil.copytree(source, copy, copy_function=_clone)
        else:
            _clone(source, copy)
        if os.path.isdir(target) and not os.path.islink(target):
            os.rename(target, os.path.join(scratch, "old"))
        os.replace(copy, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _measure(path: str) -> Any:
    if not os.path.isdir(path):
        return os.path.getsize(path), 1
    found = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    return sum(os.lstat(name).st_size for name in found), len(found)


def _nowhere(reason: str) -> Run:
    _say("nothing of this run is kept: %s" % reason)
    return Run(None, None, None)


def _new(name: Optional[str], home: Optional[str]) -> Run:
    if os.environ.get("MYELIN_SPOOL") or os.environ.get("MYELIN_RUN_ID"):
        spool = os.environ.get("MYELIN_SPOOL")
        outputs = os.environ.get("MYELIN_OUTPUTS_PATH") or os.environ.get("POLYAXON_RUN_OUTPUTS_PATH")
        return Run(spool, outputs, None)
    try:
        standalone = Standalone(name, home)
    except OSError as error:
        return _nowhere(str(error))
    if os.environ.get("MYELIN_QUIET", "") in ("", "0"):
        _say("logging to run %s (%s)" % (standalone.id, standalone.directory))
    return Run(standalone.spool, standalone.outputs, standalone)


def init(name: Optional[str] = None, home: Optional[str] = None) -> Run:
    """The run of this process: the same one however often it is asked for.

    In a task of `myelin run`, and in a process that one has started, it is that task's. Elsewhere a
    run is made in `home` ($MYELIN_HOME, or ~/.myelin), with `name`, and a line on standard error says
    which one (MYELIN_QUIET=1 leaves that out). Where that cannot be written, a
    line on standard error says so, and what is logged goes nowhere: it never raises for that."""
    global _run

    with _lock:
        if _run is None:
            _run = _new(name, home)
        return _run


def finish() -> None:
    """Ends the run of this process, if there is one."""
    run = _run
    if run is not None:
        run.finish()


def _at_exit() -> None:
    run = _run
    if run is not None:
        run._finish(run._standalone.error if run._standalone is not None else None)


def _in_child() -> None:
    global _lock

    _lock = threading.Lock()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_in_child)
