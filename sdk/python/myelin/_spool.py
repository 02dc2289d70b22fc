# SPDX-License-Identifier: Apache-2.0
"""Which of the two spools is used: the compiled one where it is there.

    MYELIN_PURE_PYTHON=1   the one in Python, in any case
"""
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._fallback import Spool

    implementation = "native"
elif os.environ.get("MYELIN_PURE_PYTHON"):
    from ._fallback import Spool

    implementation = "python"
else:
    try:
        from ._native import Spool

        implementation = "native"
    except ImportError:
        from ._fallback import Spool

        implementation = "python"

__all__ = ["Spool", "implementation"]
