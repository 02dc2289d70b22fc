# SPDX-License-Identifier: Apache-2.0
"""What has been found so far, and how it is shown: progress while the tests run, every failure by name at the end."""

import collections
import dataclasses
import threading
import time

SHOWN_BYTES = 16000
SHOWN_FAILURES = 25
# Nobody waits longer than this for a sign of life.
SILENCE_S = 15
NAMED_RUNNING = 4


@dataclasses.dataclass
class Result:
    name: str
    outcome: str  # passed, failed or skipped
    output: str = ""


class Report:
    """Collects results from many threads. `running` is what is under way: {key: (name, since)}."""

    def __init__(self, pace, slowest=0, skips=False, show=print):
        self.pace, self.slowest, self.skips, self.show = pace, slowest, skips, show
        self.results, self.running, self.durations = [], {}, []
        self.lock = threading.RLock()
        self.began = self.said = time.monotonic()

    def say(self, line):
        with self.lock:
            self.said = time.monotonic()
            self.show(line, flush=True)

    # -- as tests run

    def start(self, key, name):
        with self.lock:
            self.running[key] = (name, time.monotonic())

    def end(self, key):
        with self.lock:
            self.running.pop(key, None)

    def took(self, name, seconds):
        with self.lock:
            self.durations.append((seconds, name))

    def add(self, group, result):
        """A failure is named at once: who watches need not wait for the end."""
        with self.lock:
            self.results.append(dataclasses.replace(result, name=f"{group}: {result.name}"))
        if result.outcome == "failed":
            self.say(f"    failed: {group}: {result.name}")

    def fail(self, name, output):
        with self.lock:
            self.results.append(Result(name, "failed", output))
        self.say(f"    failed: {name}")

    def tick(self):
        """A line of progress where nothing was said for a while."""
        with self.lock:
            now = time.monotonic()
            if now - self.said < SILENCE_S:
                return
            oldest = sorted(self.running.values(), key=lambda entry: entry[1])
            named = "; ".join(f"{name} ({now - since:.0f} s)" for name, since in oldest[:NAMED_RUNNING])
            more = f"; and {len(oldest) - NAMED_RUNNING} more" if len(oldest) > NAMED_RUNNING else ""
            slow = f", the machine is {self.pace.factor:.1f} times slower than a quiet one" if self.pace.factor >= 1.5 else ""
            self.say(f"{now - self.began:5.0f} s: {counts(self.results)}{slow}; running: {named or 'nothing'}{more}")

    # -- at the end

    def close(self):
        """Shows all that there is to know, and gives the status of the program."""
        with self.lock:
            self.show_slowest()
            self.show_skips()
            failures = [r for r in self.results if r.outcome == "failed"]
            for result in failures[:SHOWN_FAILURES]:
                self.show(f"\nFAILED   {result.name}\n{indented(result.output)}")
            for result in failures[SHOWN_FAILURES:]:
                self.show(f"FAILED   {result.name} (not shown: there are too many)")
            self.show(f"\n{counts(self.results)}", flush=True)
            passed = any(r.outcome == "passed" for r in self.results)
            return 0 if passed and not failures else 1

    def show_slowest(self):
        ordered = sorted(self.durations, reverse=True)[:self.slowest]
        if ordered:
            self.show("\nslowest:")
        for seconds, name in ordered:
            self.show(f"{seconds:7.1f} s  {name}")

    def show_skips(self):
        skipped = [r for r in self.results if r.outcome == "skipped"]
        if not skipped:
            return
        if not self.skips:
            self.show(f"\n{len(skipped)} skipped: ./test --skips says why")
            return
        by_reason = collections.defaultdict(list)
        for result in skipped:
            by_reason[reason_of(result)].append(result.name)
        for reason, names in sorted(by_reason.items()):
            self.show(f"\nskipped, {len(names)}: {reason}")
            for name in names:
                self.show(f"    {name}")


def reason_of(result):
    return (result.output.strip().splitlines() or ["no reason is given"])[0].removeprefix("Skipped: ")


def counts(results):
    n = {outcome: sum(r.outcome == outcome for r in results) for outcome in ("passed", "failed", "skipped")}
    return f"{n['passed']} passed, {n['failed']} failed" + (f", {n['skipped']} skipped" if n["skipped"] else "")


def indented(text):
    if len(text) > SHOWN_BYTES:
        half = SHOWN_BYTES // 2
        text = text[:half] + "\n[…]\n" + text[-half:]
    return "\n".join("    " + line for line in text.rstrip().splitlines())
