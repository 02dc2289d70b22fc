# SPDX-License-Identifier: Apache-2.0
"""The faults that are injected, one row each. A row to add: SIGSTOP and SIGCONT at random moments, together with `stop` and
`kill`, once those commands continue a supervisor that stands still; FIFOs among the kinds of files.KINDS, once every
file of a home is opened without waiting; and limits of 7 and 8 open files, with which `run` goes on waiting for a supervisor that
could not make its event loop; and SIGKILL of `run` between the first line of the journal and the start of the keeper, after which
`status` shows the run as created."""
import dataclasses
import typing

import disk
import files
import kills


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    what: str
    inject: typing.Callable
    lost: str = "nothing"
    left: str = "nothing"
    is_possible: typing.Callable = lambda: True


FAULTS = (
    Fault("kill-supervisor", "SIGKILL of the supervisor at any moment", kills.supervisor, lost="what tasks wrote but the supervisor had not read"),
    Fault("kill-keeper", "SIGKILL of the keeper at any moment", kills.keeper),
    Fault("kill-both", "SIGKILL of supervisor and keeper together", kills.both, lost="what tasks wrote but the supervisor had not read"),
    Fault("kill-task", "SIGKILL of one task of a gang", kills.task),
    Fault("kill-command", "SIGKILL of the `run` command", kills.command),
    Fault("kill-everything", "SIGKILL of every process of the run at once", kills.everything, lost="what tasks wrote but the supervisor had not read"),
    Fault("full-disk", "a home on a disk of 4 KiB to 2 MiB", disk.full_disk, lost="output that has no room", is_possible=disk.can_mount),
    Fault("descriptors", "a limit of 9 to 47 open files", disk.descriptors),
    Fault("memory", "a limit of 6 to 10 MiB of address space", disk.memory),
    Fault("replaced-run-file", "a file of a finished run removed, emptied, or replaced by garbage, a directory or a link",
          files.replaced, lost="what was in the file"),
    Fault("replaced-home-file", "the same with the ledger, the counter or the settings of the home", files.replaced_home,
          lost="what was in the file"),
    Fault("truncated-file", "journal, series, log, request or database cut off at any byte", files.truncated, lost="what was cut off"),
)

HEAD = """# Faults that were injected

What happens to runs when something breaks: each fault below was injected into real runs of the program, at random
moments and places. `./test faults` injects them again and writes this page.

After each injection these laws were checked:

- The state of the run is final and true: a run that is shown as succeeded has every line and every point.
- No process and no control group of the run is left.
- Lines and points have no gap: what a task said that it logged is there.
- The next command works, and so does the next run in the same home.

"""


def page(count, seen):
    lines = ["| fault | injected | what the user saw | lost | left |", "|---|---|---|---|---|"]
    for fault in FAULTS:
        words = "; or ".join(sorted(seen[fault.name]))
        lines.append(f"| {fault.what} | {count} times | {words} | {fault.lost} | {fault.left} |")
    return HEAD + "\n".join(lines) + "\n"


def rows_of(text):
    """The faults that a page has."""
    return [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")][1:]
