# SPDX-License-Identifier: Apache-2.0
"""Images and texts that belong to a step: one file each below outputs/media, whose path says all that is known of it.

    outputs/media/<name>/<step>-<rank>[-<attempt>].<png, jpg, gif, webp, bmp, svg or txt>

So what was logged is kept the moment the file has its name, needs nobody to fold it, and can be written by any
program. docs/tracking.md has the rules; src/store/media.c reads them.
"""
import io
import itertools
import os
import struct
import zlib
from typing import Any, List, Optional, Tuple

from ._fallback import clean_name

FOLDER = "media"
IMAGE_MOST = 64 << 20  # bytes of a file
TEXT_MOST = 1 << 20
PIXELS_MOST = 64 << 20  # of an array: bytes before it is packed
FILES_MOST = 100000  # of one process
WARNINGS_MOST = 100
STEP_MOST = 1 << 63

_parts = itertools.count()

# How files of each kind begin.
_SIGNS = (
    (b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpg"), (b"GIF8", "gif"), (b"BM", "bmp"), (b"<svg", "svg"),
    (b"<?xml", "svg"),
)  # fmt: skip


class Unkept(Exception):
    """Why something is not kept. No error of the training."""


def suffix_of(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    for sign, suffix in _SIGNS:
        if data.startswith(sign):
            return suffix
    raise Unkept("it is no PNG, JPEG, GIF, WebP, BMP or SVG")


# ---- arrays

def png(width: int, height: int, channels: int, pixels: bytes) -> bytes:
    """Eight bits a channel; 1: grey, 2: grey and alpha, 3: colours, 4: colours and alpha."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    stride = width * channels
    rows = b"".join(b"\0" + pixels[at:at + stride] for at in range(0, height * stride, stride))
    head = struct.pack(">IIBBBBB", width, height, 8, (0, 4, 2, 6)[channels - 1], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _layout(shape: Tuple[int, ...]) -> Tuple[int, int, int, bool]:
    """Height, width, channels, and whether channels come first, as in PyTorch."""
    if len(shape) == 2:
        height, width, channels, is_first = shape[0], shape[1], 1, False
    elif len(shape) == 3 and shape[2] in (1, 2, 3, 4):
        height, width, channels, is_first = shape[0], shape[1], shape[2], False
    elif len(shape) == 3 and shape[0] in (1, 3, 4):
        height, width, channels, is_first = shape[1], shape[2], shape[0], True
    else:
        raise Unkept("an array of shape %s is no image: it has height, width and up to 4 channels" % (tuple(shape),))
    if height < 1 or width < 1 or height * width * channels > PIXELS_MOST:
        raise Unkept("an array of shape %s is empty or too large" % (tuple(shape),))
    return height, width, channels, is_first


def _png_of_numpy(array: Any) -> bytes:
    import numpy

    height, width, channels, is_first = _layout(array.shape)
    if is_first:
        array = array.transpose(1, 2, 0)
    if array.dtype.kind == "b":
        array = array.astype("uint8") * numpy.uint8(255)
    elif array.dtype.kind in "iu":
        array = array.clip(0, 255)
    elif array.dtype.kind == "f":
        array = numpy.nan_to_num(array.astype("float32"), nan=0.0, posinf=1.0, neginf=0.0).clip(0, 1) * 255 + 0.5
    else:
        raise Unkept("an array of %s is no image" % array.dtype)
    return png(width, height, channels, array.astype("uint8").tobytes())


def _shape(value: Any) -> Tuple[int, ...]:
    shape = []  # type: List[int]
    while isinstance(value, (list, tuple)) and len(shape) < 4:
        shape.append(len(value))
        value = value[0] if len(value) else 0
    return tuple(shape)


def _flat(value: Any, shape: Tuple[int, ...]) -> List[Any]:
    if not shape:
        return [value]
    if not isinstance(value, (list, tuple)) or len(value) != shape[0]:
        raise Unkept("its rows have different lengths")
    return list(itertools.chain.from_iterable(_flat(member, shape[1:]) for member in value))


def _level(value: Any, is_share: bool) -> int:
    if isinstance(value, bool):
        return 255 * value
    if is_share:
        value = float(value)
        return int(min(max(value, 0.0), 1.0) * 255 + 0.5) if value == value else 0
    return min(max(int(value), 0), 255)


def _png_of_lists(rows: Any) -> bytes:
    shape = _shape(rows)
    height, width, channels, is_first = _layout(shape)
    values = _flat(rows, shape)
    is_share = any(isinstance(value, float) for value in values)
    levels = bytes(_level(value, is_share) for value in values)
    if is_first:
        plane = height * width
        levels = b"".join(levels[at::plane] for at in range(plane))
    return png(width, height, channels, levels)


def image_bytes(image: Any) -> bytes:
    """A file's worth of bytes, from whatever people call an image."""
    if isinstance(image, (bytes, bytearray)):
        return bytes(image)
    if isinstance(image, (str, os.PathLike)):
        if not os.path.isfile(image):  # a pipe would be waited for
            raise Unkept("'%s' is not a file" % os.fspath(image))
        with open(image, "rb") as file:
            return file.read(IMAGE_MOST + 1)
    for save in ("savefig", "save"):  # a figure of Matplotlib, an image of PIL
        if hasattr(image, save):
            buffer = io.BytesIO()
            getattr(image, save)(buffer, format="png")
            return buffer.getvalue()
    if hasattr(image, "detach"):  # a tensor of PyTorch
        image = image.detach().cpu()
    if hasattr(image, "numpy"):
        image = image.numpy()
    if hasattr(image, "astype") and hasattr(image, "shape"):
        return _png_of_numpy(image)
    return _png_of_lists(image.tolist() if hasattr(image, "tolist") else image)


# ---- files

def folder_of(name: str) -> str:
    """A path below outputs/media, whatever the name is: parts that begin with a dot get another first letter."""
    parts = [part for part in clean_name(name).decode("utf-8", "replace").split("/") if part]
    return "/".join("_" + part[1:] if part.startswith(".") else part for part in parts) or "_"


def _check_limit(size: int) -> None:
    """SIGXFSZ kills a process that writes more than it may."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if most != resource.RLIM_INFINITY and size > most:
        raise Unkept("it is larger than a file may be (ulimit -f)")


def write(outputs: str, name: str, mark: str, suffix: str, data: bytes) -> str:
    """The path of the new file, which has its name only when it is whole."""
    folder = os.path.join(outputs, FOLDER, *folder_of(name).split("/"))
    path = os.path.join(folder, "%s.%s" % (mark, suffix))
    part = os.path.join(folder, ".part-%d-%d" % (os.getpid(), next(_parts)))
    _check_limit(len(data))
    os.makedirs(folder, exist_ok=True)
    try:
        with open(part, "xb") as file:
            file.write(data)
        os.replace(part, path)
    except BaseException:
        try:
            os.unlink(part)
        except OSError:
            pass
        raise
    return path


def mark_of(step: int, rank: int, attempt: int) -> str:
    return "%09d-%d%s" % (step, rank, "-%d" % attempt if attempt else "")


class Media:
    """What one process has logged of it: how many files, the next step of each name, and which names were told of."""

    __slots__ = ("files", "steps", "warned")

    def __init__(self) -> None:
        self.files, self.steps, self.warned = 0, {}, set()  # type: ignore

    def step(self, name: str, given: Optional[int]) -> int:
        step = self.steps.get(name, -1) + 1 if given is None else given
        self.steps[name] = step
        return step
