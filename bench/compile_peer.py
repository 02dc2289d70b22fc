# SPDX-License-Identifier: Apache-2.0
"""Times polyaxon-schemas 0.6.1 on one file, for bench/compile; runs on Python 3.7."""
import json
import resource
import sys
import time

from polyaxon_schemas.specs import ExperimentSpecification

start, cpu_start = time.perf_counter(), time.process_time()
spec = ExperimentSpecification.read(sys.argv[1])
spec.apply_context()
tasks, _ = spec.cluster_def
wall, cpu = time.perf_counter() - start, time.process_time() - cpu_start
assert tasks["worker"] > 0, tasks
json.dump({"wall": wall, "cpu": cpu,
           "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}, sys.stdout)
