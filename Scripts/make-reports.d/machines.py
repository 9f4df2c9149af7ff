#!/usr/bin/env python3
"""Writes the page on loads from more machines than one has: merges made-up results of 10 to 10,000 machines with the
given apnscope, measures that, and computes the rest from limits of this host.

usage: machines.py BINARY FOLDER     run by Scripts/make-reports; results are made in the current folder
"""

import datetime
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import subprocess
import sys
import textwrap
import time

MACHINES = (1, 10, 100, 1_000, 10_000)
MIB = 1 << 20
# What one segment of the made-up loads does.
RATE, SECONDS, CONNECTIONS = 50, 5, 8


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)


def measured(*words):
    """Seconds by the clock, seconds of processor time, and bytes of memory at most, of a command."""
    began = time.monotonic()
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{words}: status {process.returncode}: {errors}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10


class Gateway:
    """A simulated gateway without TLS, while it is entered."""

    def __init__(self, binary):
        self.binary = binary

    def __enter__(self):
        self.out = open("gateway.out", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [self.binary, "simulate", "--plain", "--gateway", "127.0.0.1:0", "--no-feedback"],
            stdout=self.out, stderr=subprocess.STDOUT)
        for _ in range(600):
            found = re.search(r"^gateway (\S+)", pathlib.Path("gateway.out").read_text(), re.MULTILINE)
            if found:
                self.address = found.group(1)
                return self
            time.sleep(0.1)
        sys.exit("the gateway does not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.out.close()


def load(binary, gateway, output, *options):
    run(binary, "load", "--plain", "--gateway", gateway, "--quiet", "--output", output, *options)
    return json.loads(pathlib.Path(output).read_text())


def make_up(result, machines, folder, skew_s=0.0):
    """The results of a load by so many machines, made of that of one: other parts, hosts and starts, all counts the same.

    The starts are spread evenly over skew_s seconds.
    """
    folder.mkdir()
    began = datetime.datetime.fromisoformat(result["started"].replace("Z", "+00:00"))
    size = 0
    for number in range(1, machines + 1):
        shift = skew_s * (number - 1) / max(1, machines - 1)
        result["plan"] |= {"segment": f"{number}/{machines}", "of_whole": True, "connections": CONNECTIONS * machines}
        result["plan"]["rate"] = f"{float(RATE * machines)}/s"
        result["environment"]["host"] = f"node-{number:05}"
        result["labels"] = {"node": f"node-{number:05}"}
        result["started"] = (began + datetime.timedelta(seconds=shift)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        text = json.dumps(result)
        size += len(text)
        (folder / f"{number:05}.json").write_text(text)
    return size


def expect_whole(result, merged, machines):
    """The merged result has to be so many times the one that it is of."""
    for group, names in (("notifications", ("generated", "accepted")), ("sendings", ("written", "markers")), ("connections", ("opened",))):
        for name in names:
            if merged[group][name] != machines * result[group][name]:
                sys.exit(f"{machines} machines: {group} {name} is {merged[group][name]}, and {result[group][name]} of each")
    if len(merged["parts"]) != machines or not merged["merged"]["together"]:
        sys.exit(f"{machines} machines: {len(merged['parts'])} parts, {merged['merged']}")


def merges(binary, result):
    """For each number of machines: bytes of the results, seconds, processor seconds, memory, bytes of the merged one."""
    rows = {}
    for machines in MACHINES[1:]:
        folder = pathlib.Path(f"results-{machines}")
        size = make_up(result, machines, folder)
        output = pathlib.Path(f"whole-{machines}.json")
        best = None
        for _ in range(3 if machines < 10_000 else 1):
            found = measured(binary, "merge", folder, "--output", output)
            best = found if best is None or found[1] < best[1] else best
        expect_whole(result, json.loads(output.read_text()), machines)
        rows[machines] = (size, *best, output.stat().st_size)
    return rows


def merge_in_two_steps(binary, machines, groups):
    """The seconds of the longest first merge and of the second one, and whether the result has the same counts."""
    folder = pathlib.Path(f"results-{machines}")
    files = sorted(folder.iterdir())
    halves = pathlib.Path("halves")
    halves.mkdir()
    longest = 0.0
    for group in range(groups):
        part = pathlib.Path(f"group-{group}")
        part.mkdir()
        for path in files[group * len(files) // groups : (group + 1) * len(files) // groups]:
            os.link(path, part / path.name)
        longest = max(longest, measured(binary, "merge", part, "--allow-missing", "--output", halves / f"{group}.json")[0])
    second = measured(binary, "merge", halves, "--output", "stepwise.json")
    flat, stepwise = (json.loads(pathlib.Path(name).read_text()) for name in (f"whole-{machines}.json", "stepwise.json"))
    for name in ("notifications", "sendings", "latency", "parts"):
        if flat[name] != stepwise[name]:
            sys.exit(f"merged in two steps, {name} differs")
    return longest, second


def largest_skew(binary, result):
    """Between which two skews of starts the rates of a merged result end, in seconds."""
    low, high = 0.0, float(SECONDS)
    while high - low > 0.05:
        middle = (low + high) / 2
        folder = pathlib.Path("skewed")
        shutil.rmtree(folder, ignore_errors=True)
        make_up(result, 10, folder, middle)
        run(binary, "merge", folder, "--output", "skewed.json")
        together = json.loads(pathlib.Path("skewed.json").read_text())["merged"]["together"]
        low, high = (middle, high) if together else (low, middle)
    return low, high


def ports():
    first, last = map(int, pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    return first, last, last - first + 1


def grouped(number):
    return f"{number:,.0f}"


def seconds(value):
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s" if value < 600 else f"{value / 60:.0f} min"


def mib(size):
    return f"{size / MIB:.1f} MiB" if size < 100 * MIB else f"{size / MIB:,.0f} MiB"


def wrapped(line):
    """Text in lines of 120 letters; tables stay."""
    return line if line.startswith("|") else "\n".join(textwrap.wrap(
        line, 120, subsequent_indent="  " if line.startswith("- ") else "", break_long_words=False, break_on_hyphens=False))


def page(binary):
    with Gateway(binary) as gateway:
        result = load(binary, gateway.address, "one.json", "--rate", f"{RATE}/s", "--for", f"{SECONDS}s", "--connections", CONNECTIONS)
        few, many = 100, 4_000
        memory = {}
        for connections in (few, many):
            busy = load(
                binary, gateway.address, f"open-{connections}.json", "--rate", f"{connections}/s", "--for", "3s",
                "--connections", connections, "--stagger", "1ms")
            if busy["connections"]["opened"] < connections:
                sys.exit(f"{busy['connections']['opened']} of {connections} connections were opened")
            memory[connections] = busy["resources"]["max_rss_bytes"]
    rows = merges(binary, result)
    longest, second = merge_in_two_steps(binary, 10_000, 10)
    low, high = largest_skew(binary, result)
    per_connection = (memory[many] - memory[few]) / (many - few)
    first, last, count = ports()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    one = rows[10_000][0] / 10_000
    cpu = rows[10_000][2] / 10_000
    growth = (rows[10_000][3] - rows[1_000][3]) / 9_000
    environment = result["environment"]
    system = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    yield "# Past this machine"
    yield ""
    yield (
        f"Measurements and estimates for a load from 1, 10, 100, 1,000 and 10,000 machines. The machines are made up: a load of "
        f"{RATE}/s on {CONNECTIONS} connections was run once, for {SECONDS} s, and its result was written again for each "
        "machine, with its part of the stream, its host and its start. They were really merged, and what is in the merged "
        "result was held against the sum. What cannot be run on one host is computed, and says so. Made by "
        "`Scripts/make-reports machines`.")
    yield ""
    yield "```"
    load_average = " ".join(f"{value:.2f}" for value in os.getloadavg())
    commit = f", commit {environment['commit']}" if "commit" in environment else ""
    yield f"apnscope {environment['apnscope']}{commit}, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC"
    yield f"{environment['cores']} x {environment['cpu']}, Linux {platform.release()}, load average {load_average}"
    yield "```"
    yield ""
    yield "## Merging, measured"
    yield ""
    yield "| machines | results | merged in | processor time | memory | merged result |"
    yield "|---:|---:|---:|---:|---:|---:|"
    for machines, (size, wall, processor, memory_used, merged) in rows.items():
        yield f"| {grouped(machines)} | {mib(size)} | {seconds(wall)} | {seconds(processor)} | {mib(memory_used)} | {mib(merged)} |"
    yield ""
    yield (
        f"A result has {one / 1024:.0f} KiB here and takes {cpu * 1e3:.1f} ms of processor time. Most of that is reading "
        "the document, so that a result of more different latencies takes longer. "
        f"Between 1,000 and 10,000 results memory grows by {growth / 1024:.1f} KiB for each.")
    yield ""
    yield (
        f"10,000 results in two steps: ten merges of 1,000, of which the longest took {seconds(longest)}, and a merge of their "
        f"results, {seconds(second[0])} and {mib(second[2])}. Counts, latencies and parts are those of one step. The first ten can run "
        "on ten machines.")
    yield ""
    yield "## What each number of machines gives, computed"
    yield ""
    yield (
        f"Of this host: ports {first} to {last} for connections to one address of a gateway, {grouped(files)} files for a process (its "
        f"hard limit), {mib(system)} of memory. A load without TLS on {grouped(few)} and on {grouped(many)} connections took "
        f"{mib(memory[few])} and {mib(memory[many])}: {per_connection / 1024:.1f} KiB for each connection; "
        "[idle](../bench/idle.txt) has what TLS adds at the gateway's side.")
    yield ""
    at_most = min(count, files - 100)
    yield "| machines | connections to one address | memory of a machine for them | notifications of a day at 1,000/s each |"
    yield "|---:|---:|---:|---:|"
    for machines in MACHINES:
        yield (
            f"| {grouped(machines)} | {grouped(machines * at_most)} | {mib(memory[few] + (at_most - few) * per_connection)} "
            f"| {grouped(machines * 1_000 * 86_400)} |")
    yield ""
    yield (
        "A machine has as many connections for each further address of the gateway, or of its own, until its files or its "
        "memory end. The gateway has all of them: its limit comes first, and is the one that a load is to find.")
    yield ""
    yield "## Clocks, measured"
    yield ""
    yield (
        f"With starts that are spread evenly, rates of the whole are given up to a spread of {low:.2f} s, and no longer at "
        f"{high:.2f} s, of {SECONDS} s: all have to measure together for nine tenths of the shortest. For a minute "
        f"that is 6 s. Clocks that are wrong are such a spread as well, and spread the times of series, whatever the length is: "
        "`merge --ledger` tells how far they differ, and warns from half a second on.")
    yield ""
    yield "## The next limit, computed"
    yield ""
    for machines in (100_000, 1_000_000):
        yield (
            f"- {grouped(machines)} machines: {mib(machines * one)} of results, {seconds(machines * cpu)} to merge them in one process, "
            f"{mib(rows[10_000][3] + (machines - 10_000) * growth)} of memory. "
            + ("`--max-results` has to be raised from 10,000, and all segments are listed." if machines == 100_000
               else "A stream has at most 1,000,000 segments, and a result lists 100,000 of them."))
    minute = 60 / cpu
    half = (512 * MIB - rows[10_000][3]) / growth + 10_000
    yield (
        f"- One process of this host merges {grouped(minute)} such results in a minute of processor time, and "
        f"{'more than a million' if half > 1e6 else grouped(half)} in 512 MiB. More than that are merged in steps, as above.")
    yield (
        "- The results of a search for a capacity (`capacity --trial-command`) are merged after each trial: the time of the "
        "merge is added to that of each.")


def main():
    binary, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    text = "\n".join(wrapped(line) for line in page(binary)) + "\n"
    folder.mkdir(exist_ok=True)
    (folder / "README.md").write_text(text)


main()
