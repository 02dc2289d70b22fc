#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which subjects of conformance are to run after a change, by the table `paths` beside this file.

    tests/conformance/changed.py REV       prints the subjects, one a line, and the reason on stderr

The change is everything between REV and the files of this checkout, committed or not. A subject whose own file has
changed runs, too.

REV may be the word `recent`, for a fresh clone that does not know what was tested last: then the base is the newest
commit that is a day older than HEAD. What one person submits at once is younger than that, and a commit that is
rewritten only gets younger. If there is no such commit (a shallow clone, a young project, no git), all subjects run: too
many cost time, too few hide a fault.
"""
import fnmatch
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RECENT_S = 24 * 3600


class Unknown(Exception):
    """Nobody can say what has changed."""


def subjects(root=ROOT):
    return sorted(path.stem for path in (root / "tests/conformance/subjects").glob("*.sh"))


def read_table(text):
    """(core, rows): the subjects that always run, and (pattern, words) of each row."""
    core, rows = set(), []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words and words[0] == "core":
            core.update(words[1:])
        elif words:
            rows.append((words[0], words[1:]))
    return core, rows


def selected(paths, core, rows, known):
    """The subjects for these changed paths, and the paths that asked for all of them."""
    chosen, for_all = set(core), []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder == "tests/conformance/subjects":
            chosen.add(name.removesuffix(".sh"))
            continue
        words = [word for pattern, row in rows if fnmatch.fnmatchcase(path, pattern) for word in row]
        if not words or "all" in words:
            for_all.append(path)
        chosen.update(words)
    return sorted(set(known) if for_all else chosen & set(known)), for_all


def git(*arguments):
    try:
        return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as problem:
        raise Unknown(f"git {arguments[0]} fails: {getattr(problem, 'stderr', '') or problem}".strip()) from problem


def base_of(word):
    if word != "recent":
        return git("merge-base", word, "HEAD").strip()
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        raise Unknown("the clone is shallow")
    newest = int(git("log", "-1", "--format=%ct"))
    base = git("log", "-1", "--first-parent", "--format=%H", f"--before={newest - RECENT_S}").strip()
    if not base:
        raise Unknown("no commit is a day older than HEAD")
    return base


def changed_paths(base):
    tracked = git("diff", "--name-only", "--no-renames", "-z", base)
    new = git("ls-files", "--others", "--exclude-standard", "-z")
    return sorted({path for path in (tracked + new).split("\0") if path})


def main(arguments):
    if len(arguments) != 1:
        sys.exit("usage: changed.py REV")
    core, rows = read_table((HERE / "paths").read_text(encoding="utf-8"))
    try:
        base = base_of(arguments[0])
        chosen, for_all = selected(changed_paths(base), core, rows, subjects())
        why = f"since {base[:12]}" + (f"; {for_all[0]} concerns all of them" if for_all else "")
    except Unknown as problem:
        chosen, why = subjects(), str(problem)
    print(f"conformance: {len(chosen)} of {len(subjects())} subjects: {why}", file=sys.stderr)
    print("\n".join(chosen))


if __name__ == "__main__":
    os.environ["GIT_OPTIONAL_LOCKS"] = "0"
    main(sys.argv[1:])
