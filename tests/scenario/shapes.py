# SPDX-License-Identifier: Apache-2.0
"""Holds what the program prints to the tables of docs/: they are the golden files."""
import pathlib
import re

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
KINDS = {"integer": int, "text": str, "number": (int, float), "boolean": bool, "object": dict, "null": type(None),
         "list": list, "list of text": list}  # fmt: skip


def documented(page, heading):
    """The table below a heading: member -> (types, whether it is there only sometimes)."""
    (section,) = re.findall(rf"^#+ {heading}.*?\n(.*?)(?=^#|\Z)", (DOCS / page).read_text(), re.M | re.S)
    rows = re.findall(r"^\| `(\w+)` \| ([a-z ]+) \| (.*) \|$", section, re.M)
    assert rows, f"no table below '{heading}' of {page}"
    return {
        name: ([KINDS[kind] for kind in kinds.split(" or ")], meaning.startswith("only"))
        for name, kinds, meaning in rows
    }


def flat(kinds):
    return tuple(kind for entry in kinds for kind in (entry if isinstance(entry, tuple) else (entry,)))


def assert_shape(value, heading, page="json.md", besides=()):
    """The value has exactly the members that the page lists, each of its type."""
    table = documented(page, heading)
    assert set(value) - set(besides) <= set(table), "a member is not documented"
    for name, (kinds, is_optional) in table.items():
        assert name in value or is_optional, f"{name} is missing"
        if name in value:
            assert isinstance(value[name], flat(kinds)), f"{name}: {value[name]!r}"
            assert bool in kinds or not isinstance(value[name], bool), f"{name}: {value[name]!r}"


def assert_run(value):
    assert_shape(value, "A run")
    assert set(value["paths"]) == {"run", "outputs", "logs"}
    for task in value["tasks"]:
        assert_shape(task, "tasks")
    for attempt in value["attempts"]:
        assert_shape(attempt, "attempts")
    if value["first_failed"]:
        assert_shape(value["first_failed"], "first_failed")
