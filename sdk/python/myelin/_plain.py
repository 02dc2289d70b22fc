# SPDX-License-Identifier: Apache-2.0
"""Values of Python as JSON that every reader takes: params, tags and summaries come as people have them."""
import json
import math
from typing import Any, Mapping

DEPTH_MOST = 32
INT_MOST = 1 << 63


def plain(value: Any, depth: int = 0) -> Any:
    """What JSON has no word for becomes text: NaN, infinities, whole numbers beyond 64 bits, objects."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, int):
        return int(value) if -INT_MOST <= value < INT_MOST else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else json.dumps(value)
    if depth < DEPTH_MOST:
        if isinstance(value, Mapping):
            return {plain(str(key)): plain(member, depth + 1) for key, member in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [plain(member, depth + 1) for member in value]
        for convert in ("item", "tolist"):  # scalars and arrays of numpy, tensors
            try:
                return plain(getattr(value, convert)(), depth + 1)
            except Exception:
                continue
    return plain(str(value))


def to_json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")).encode("utf-8")
