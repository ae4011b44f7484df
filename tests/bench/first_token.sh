#!/bin/sh
# first_token.sh MODEL [PAIRS] [PEER COMMAND…]: measures the time from the start of a process to the first byte of its
# answer, and its peak resident memory, with the file in the page cache.
#
# Runs `confab run -m MODEL -n 1 --temp 0 Hello` and the command, if given, in turn, PAIRS times (default 5), and prints
# the medians. A command that prints nothing is timed to its end. DEVICE: passed to confab as --device.
set -eu
model=$1 pairs=${2:-5}
shift $(($# < 2 ? $# : 2))
confab=${CONFAB:-./confab}
cat "$model" > /dev/null

exec python3 - "$pairs" "$confab run${DEVICE:+ --device $DEVICE} -m $model -n 1 --temp 0 Hello" "$*" <<'END'
import os, statistics, subprocess, sys, time

def first_byte(command):
    start = time.perf_counter()
    null = subprocess.DEVNULL
    child = subprocess.Popen(command.split(), stdin=null, stdout=subprocess.PIPE, stderr=null)
    os.read(child.stdout.fileno(), 1)
    seconds = time.perf_counter() - start
    while os.read(child.stdout.fileno(), 1 << 16):
        pass
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"first_token.sh: {command}: exit status {os.waitstatus_to_exitcode(status)}")
    return seconds, usage.ru_maxrss / 1024

names = ("confab", "peer")
commands = [(name, command) for name, command in zip(names, sys.argv[2:]) if command]
runs = {name: [] for name, _ in commands}
for _ in range(int(sys.argv[1])):
    for name, command in commands:
        runs[name].append(first_byte(command))
print(f"{'':8}{'seconds':>10}{'fastest':>10}{'MiB':>8}")
for name, list in runs.items():
    seconds = [run[0] for run in list]
    memory = statistics.median(run[1] for run in list)
    print(f"{name:8}{statistics.median(seconds):10.3f}{min(seconds):10.3f}{memory:8.0f}")
if len(runs) == 2:
    ratios = [peer[0] / own[0] for own, peer in zip(*runs.values())]
    print(f"peer / confab: {statistics.median(ratios):.2f} (median of pairs)")
END
