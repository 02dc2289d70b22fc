# SPDX-License-Identifier: Apache-2.0
"""The callback for Keras 2 and 3, also as a part of TensorFlow.

    from myelin.keras import MyelinCallback
    model.fit(x, y, callbacks=[MyelinCallback()])

At the end of an epoch its metrics are logged under their own names (`loss`, `val_loss`), with the
epoch as step; after a batch as `batch/loss` and so on, with the number of the batch since `fit`
began. A model that `fit` continues counts on.
"""
import sys
from typing import Any, Dict, Optional

from . import Run, init


def _base() -> Any:
    """The class of the Keras that is in use: a program can have several installed."""
    if "tensorflow" in sys.modules and "keras" not in sys.modules:
        from tensorflow import keras
    else:
        try:
            import keras
        except ImportError:
            from tensorflow import keras
    return keras.callbacks.Callback


class MyelinCallback(_base()):  # type: ignore
    """Logs at the end of batches (every `every`-th; 0 for none) and epochs."""

    def __init__(self, run: Optional[Run] = None, every: int = 1) -> None:
        super().__init__()
        self.run = run if run is not None else init()
        self.every = every
        self.batches = 0

    def on_train_batch_end(self, batch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        step = self.batches
        self.batches += 1
        if self.every and step % self.every == 0 and logs:
            self.run.log({"batch/" + name: value for name, value in logs.items()}, step=step)

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        if logs:
            self.run.log(dict(logs), step=epoch)
