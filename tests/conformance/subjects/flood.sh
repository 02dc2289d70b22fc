# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# A task that writes without end, at its full size; the scenarios have it with a tenth of that.
once=ten_gigabytes_are_kept_or_counted_to_the_byte_in_little_memory
limit=200
FLOOD=10000000000 KEPT=$((100 << 20))

supervisor() { tr -d ' ' <"/proc/$1/task/$1/children"; }
peak_kb() { sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\) kB$/\1/p' "/proc/$1/status"; }
wait_for() { # seconds what command...
    local until=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        [ "$SECONDS" -lt "$until" ] || fail "$what did not come"
        sleep 0.05
    done
}
is_over() { myelin status 1 --json && grep -q '^  "status": "succeeded",$' out; }

test_ten_gigabytes_are_kept_or_counted_to_the_byte_in_little_memory() {
    local pid before grown began
    cat >pour.sh <<EOF
touch up; while [ ! -e go ]; do sleep 0.02; done
yes $(printf '%099d' 0) | head -c $FLOOD
touch poured; while [ ! -e end ]; do sleep 0.02; done
EOF
    printf 'version: 1\nkind: experiment\nrun: {cmd: sh pour.sh}\n' >job.yml
    myelin run -d --log-limit ${KEPT}B job.yml
    expect_status 0
    wait_for 20 "the task" test -e up
    pid=$(supervisor "$(cat "$SCRATCH/home/.myelin/runs/1/lock")")
    before=$(peak_kb "$pid") began=$SECONDS
    touch go
    wait_for 150 "the end of the flood" test -e poured
    grown=$(($(peak_kb "$pid") - before))
    echo "$FLOOD bytes in $((SECONDS - began)) s; the supervisor: $before kB before, $grown kB more at its peak"
    [ "$grown" -lt 32768 ] || fail "the supervisor has grown by $grown kB"
    touch end
    wait_for 20 "the end of the run" is_over
    expect_out "\"log_bytes_lost\": $((FLOOD - KEPT))\$"
    [ "$(stat -c %s "$SCRATCH/home/.myelin/runs/1/logs/master.0.log")" = $KEPT ] || fail "another size of the log"
    expect_nobody_left
}
