# SPDX-License-Identifier: Apache-2.0
"""The faults that are injected, one row each. A jump of the wall clock is missing: a time namespace moves only the other
clocks, and setting the clock would harm the rest of the machine."""
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
    lost: str = None  # what is lost by the fault itself and cannot be counted; else it is measured
    is_possible: typing.Callable = lambda: True


FAULTS = (
    Fault("kill-supervisor", "SIGKILL of the supervisor at any moment", kills.supervisor),
    Fault("kill-keeper", "SIGKILL of the keeper at any moment", kills.keeper),
    Fault("kill-both", "SIGKILL of supervisor and keeper together", kills.both),
    Fault("kill-task", "SIGKILL of one task of a gang", kills.task),
    Fault("kill-command", "SIGKILL of the `run` command at any moment", kills.command),
    Fault("kill-everything", "SIGKILL of every process of the run at once", kills.everything),
    Fault("suspend", "SIGSTOP and SIGCONT of supervisor and keeper, many times", kills.suspend),
    Fault("full-disk", "a home on a disk of 4 KiB to 2 MiB", disk.full_disk, lost="output that has no room", is_possible=disk.can_mount),
    Fault("descriptors", "a limit of 6 to 47 open files", disk.descriptors),
    Fault("memory", "a limit of 6 to 10 MiB of address space", disk.memory),
    Fault("replaced-run-file", "a file of a finished run removed, emptied, or replaced by garbage, a FIFO, a directory or a link",
          files.replaced, lost="what was in the file"),
    Fault("replaced-home-file", "the same with the ledger, the counter or the settings of the home", files.replaced_home,
          lost="what was in the file"),
    Fault("truncated-file", "journal, series, log, request or database cut off at any byte", files.truncated, lost="what was cut off"),
    Fault("living-file", "lock, journal, log or index of a log of a living run replaced by a FIFO, a directory or a link", files.living),
    Fault("removed-run", "the directory of a living run removed", files.removed, lost="the run, as its directory was the record"),
)

HEAD = """# Faults that were injected

What happens to runs when something breaks: each fault below was injected into real runs of the program, at random
moments and places. `./test faults` injects them again and writes this page.

After each injection these laws were checked:

- The state of the run is final and true: a run that is shown as succeeded has every line and every point.
- No process and no control group of the run is left.
- Lines and points have no gap: what a task said that it logged is there.
- The next command works, and so does the next run in the same home.

What was lost and left is counted over all injections of a row. A task counts its points and lines itself, one line for each
point, and they are compared with what `myelin metrics` and the log have afterwards. Where the fault itself takes data away, the
column says what.

"""


def lost_of(fault, measured):
    if fault.lost:
        return fault.lost
    parts = [f"{measured[f'lost {what}']} {what}" for what in ("points", "lines") if measured[f"lost {what}"]]
    return (" and ".join(parts) or "nothing") + f" of {measured['logged']} logged"


def left_of(measured):
    """Each look is at all processes and control groups of the run."""
    parts = [f"{measured[f'left {what}']} {what}" for what in ("processes", "groups") if measured[f"left {what}"]]
    return (" and ".join(parts) or "nothing") + f", by {measured['looks']} looks"


def page(count, seen):
    """`seen`: what run's play() gives."""
    lines = ["| fault | injected | what the user saw | lost | left |", "|---|---|---|---|---|"]
    for fault in FAULTS:
        words, _, measured = seen[fault.name]
        lines.append(f"| {fault.what} | {count} times | {'; or '.join(sorted(words))} | {lost_of(fault, measured)} | {left_of(measured)} |")
    return HEAD + "\n".join(lines) + "\n"


def rows_of(text):
    """The faults that a page has."""
    return [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")][1:]
