#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is said of wrong polyaxonfiles: tests/golden/wrong and docs/diagnostics.md.

    diagnostics.py check MYELIN    compares what myelin says with what is committed, in TAP
    diagnostics.py renew MYELIN    writes NAME.expected and the page anew
    diagnostics.py original FILE   prints what polyaxon-schemas says of one file; needs a Python
                                   that has it (bench/README.md tells how to get one)

NAME.yml is the wrong file; its first line, a comment, is the heading. NAME.expected is what
`myelin check` prints, NAME.original what polyaxon-schemas 0.6.1 says. The page is made from these.
"""
import difflib
import glob
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "tests", "golden", "wrong")
PAGE = os.path.join(ROOT, "docs", "diagnostics.md")
INTRODUCTION = """\
<!-- Made by 'tools/diagnostics.py renew build/myelin' from tests/golden/wrong. -->
# What myelin says of a wrong file

A mistake is told with its place, the reason and, where it can be known, what would be right. All mistakes of a file are
told at once, but for one that keeps it from being YAML at all: it is told alone. Below are a dozen that are easily made: the file, what `myelin check` prints, and what polyaxon-schemas
0.6.1, the library that read these files for Polyaxon, says of the same file. Where it says "valid", the mistake shows
only when the experiment runs, or never.
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def names():
    return [os.path.splitext(os.path.basename(path))[0]
            for path in sorted(glob.glob(os.path.join(FOLDER, "*.yml")))]


def of(name, ending):
    return os.path.join(FOLDER, f"{name}.{ending}")


def said(myelin, name):
    done = subprocess.run([myelin, "check", "--color", "never", f"{name}.yml"], cwd=FOLDER, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=20)
    return done.stdout + ("" if done.returncode == 1 else f"exit status {done.returncode}\n")


def section(name):
    heading, file = read(of(name, "yml")).split("\n", 1)
    return (f"\n## {heading.lstrip('# ').rstrip('.')}\n\n```yaml\n{heading}\n{file}```\n\n"
            f"myelin:\n\n```\n{read(of(name, 'expected'))}```\n\n"
            f"polyaxon-schemas 0.6.1:\n\n```\n{read(of(name, 'original'))}```\n")


def page():
    return INTRODUCTION + "".join(section(name) for name in names())


def check(myelin):
    cases = [(f"tests/golden/wrong/{name}.expected", read(of(name, "expected")), said(myelin, name))
             for name in names()]
    cases.append(("docs/diagnostics.md", read(PAGE), page()))
    failed = 0
    for number, (name, committed, actual) in enumerate(cases, 1):
        print(f"{'ok' if committed == actual else 'not ok'} {number} - {name}")
        if committed != actual:
            failed += 1
            print("# if the change is meant: tools/diagnostics.py renew MYELIN")
            for line in difflib.unified_diff(committed.splitlines(), actual.splitlines(), lineterm=""):
                print(f"# {line}")
    print(f"1..{len(cases)}")
    return 1 if failed or len(cases) < 13 else 0


def renew(myelin):
    for name in names():
        with open(of(name, "expected"), "w", encoding="utf-8") as file:
            file.write(said(myelin, name))
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page())
    return 0


def original(path):
    from polyaxon_schemas.polyaxonfile import PolyaxonFile  # of another Python than the rest

    os.chdir(os.path.dirname(os.path.abspath(path)))
    try:
        spec = PolyaxonFile(os.path.basename(path)).specification
        spec.apply_context()
    except Exception as error:  # whatever it is, it is what the user would see
        print(f"{type(error).__name__}: {error}")
        return 0
    print("valid")
    print(f"tasks: {spec.cluster_def[0]}")
    if spec.total_resources:
        given = {kind: dict(amount) for kind, amount in spec.total_resources.items() if amount}
        print(f"resources of all: {given}")
    print(f"command: {spec.run.cmd}")
    return 0


VERBS = {"check": check, "renew": renew, "original": original}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in VERBS:
        sys.exit(__doc__)
    target = os.path.realpath(sys.argv[2])
    sys.exit(VERBS[sys.argv[1]](target))
