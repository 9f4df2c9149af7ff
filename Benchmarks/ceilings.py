#!/usr/bin/env python3
"""Holds what is measured of gateways against what they were made to take; Scripts/bench truth ceilings calls it.

    ceilings.py --apnscope FILE --folder FOLDER [--searches N]

A gateway that reads so many bytes a second of a connection is written to without end by a sender that is not apnscope: what
it takes in 10 s is that rate within 1 %. Then `apnscope capacity` looks for the limit of gateways whose limit is known: nine
of ten ranges that it prints hold it. Last, a capacity test is stopped for 250 ms again and again: it says of its trials that
they are void, and not that the gateway failed. Documents stay in the folder. Exit code 1: one of this is not so.
"""

import argparse
import json
import pathlib
import shutil
import signal
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import loads  # noqa: E402

PAYLOAD, FRAME = 189, 250
READ_RATES = (1, 20, 100)  # MB/s
CEILINGS = (5, 20)
CONNECTIONS = 2
# The first seconds fill buffers.
FILLING, MEASURED = 3, 10
SEARCH = ["--trial", "3s", "--confirm", "6s"]
STOPPED, EVERY = 0.25, 1.45


def frame(number):
    """A notification of command 2: token, payload, identifier."""
    payload = b'{"aps":{"alert":"' + b"x" * (PAYLOAD - 20) + b'"}}'
    items = [(1, bytes(32)), (2, payload), (3, number.to_bytes(4, "big")), (4, bytes(4)), (5, b"\x0a")]
    body = b"".join(bytes([kind]) + len(value).to_bytes(2, "big") + value for kind, value in items)
    return b"\x02" + len(body).to_bytes(4, "big") + body


class Gateway(loads.Load):
    """A simulated gateway that reads at a rate, and the processes beside it."""

    def __init__(self, apnscope, folder, rate, *options):
        super().__init__(apnscope, folder)
        self.rate, self.options = rate, options

    def __enter__(self):
        gateway = self.start(
            "gateway", self.apnscope, "simulate", "--plain", "--no-feedback", "--gateway", "127.0.0.1:0", "--read-rate",
            f"{self.rate}MB", *self.options)  # fmt: skip
        self.address = self.wait_for("gateway", r"^gateway (\S+)$", gateway)
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            loads.ended(process, 20, "simulate")

    def capacity(self, *options):
        return self.start(
            "capacity", self.apnscope, "capacity", "--plain", "--gateway", self.address, "--payload", str(PAYLOAD),
            "--connections", str(CONNECTIONS), "--connections-sweep", "none", "--batch-sweep", "none", "--error-sweep",
            "none", "--output", "out", *options)  # fmt: skip

    def document(self):
        path = self.folder / "out" / "capacity.json"
        if not path.exists():
            text = (self.folder / "capacity.txt").read_text(errors="replace")
            raise loads.Failure(f"capacity has left no result: {text.strip()[-300:]}")
        return json.loads(path.read_text(encoding="utf-8"))


def taken(apnscope, folder, rate):
    """Bytes a second that a gateway takes which reads at this rate."""
    # Small buffers: what is on its way is little beside what is read.
    with Gateway(apnscope, folder, rate, "--receive-buffer", "64KB") as gateway:
        host, _, port = gateway.address.rpartition(":")
        with socket.socket() as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32_768)
            sender.connect((host, int(port)))
            # Whole frames, about 1 ms of them: what one write blocks for is all that a time may be wrong by.
            block = memoryview(b"".join(frame(number) for number in range(1, max(2, rate * 4))))
            begin, sent, offset, marks = time.monotonic(), 0, 0, []
            while (now := time.monotonic() - begin) < FILLING + MEASURED:
                if not marks and now >= FILLING:
                    marks.append((now, sent))
                count = sender.send(block[offset:])
                sent, offset = sent + count, (offset + count) % len(block)
            (start, before), (end, after) = marks[0], (time.monotonic() - begin, sent)
    return (after - before) / (end - start)


def read_rates(apnscope, folder):
    print(f"{'read rate':>12}{'taken':>14}{'difference':>12}   allowed: 1 %")
    for rate in READ_RATES:
        found = taken(apnscope, folder / f"read-{rate}", rate) / 1e6
        difference = found / rate - 1
        print(f"{rate:>7} MB/s{found:>9.3f} MB/s{difference:>+12.2%}", flush=True)
        yield abs(difference) <= 0.01


def searches(apnscope, folder, count):
    print(f"\n{'limit':>10}{'found':>12}   {'range':<22}{'holds it':<10}{'trials':>6}{'seconds':>9}")
    for number in range(1, count + 1):
        ceiling = CEILINGS[number % len(CEILINGS)]
        limit, began = ceiling * 1e6 * CONNECTIONS / FRAME, time.monotonic()
        with Gateway(apnscope, folder / f"search-{number:02}", ceiling) as gateway:
            loads.ended(gateway.capacity(*SEARCH), 900, "capacity")
            document = gateway.document()
        found, given = document.get("sustained_per_s"), document.get("sustained_range") or {}
        low, high = given.get("lower_per_s"), given.get("upper_per_s")
        holds = low is not None and high is not None and low <= limit <= high
        text = "none" if low is None or high is None else f"{low:,.0f} to {high:,.0f}"
        print(
            f"{limit:>10,.0f}{found or 0:>12,.0f}   {text:<22}{'yes' if holds else 'NO':<10}"
            f"{len(document['trials']):>6}{time.monotonic() - began:>9.0f}", flush=True)  # fmt: skip
        yield holds


def stop_again_and_again(process, is_over):
    while not is_over.wait(EVERY - STOPPED) and process.poll() is None:
        process.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED)
        process.send_signal(signal.SIGCONT)


def stalls(apnscope, folder):
    """How many of a stopped capacity test's trials at a set rate are of each verdict."""
    with Gateway(apnscope, folder / "stopped", CEILINGS[-1]) as gateway:
        process, is_over = gateway.capacity(*SEARCH, "--max-trials", "6"), threading.Event()
        thread = threading.Thread(target=stop_again_and_again, args=(process, is_over))
        thread.start()
        try:
            loads.ended(process, 600, "capacity")
        finally:
            is_over.set()
            thread.join()
        document = gateway.document()
    verdicts = [trial["verdict"] for trial in document["trials"] if trial.get("offered_per_s") is not None]
    print(f"\nstopped for {STOPPED * 1e3:.0f} ms every {EVERY} s: {len(verdicts)} trials at a rate: {', '.join(verdicts)}")
    return bool(verdicts) and set(verdicts) == {"void"} and document.get("sustained_per_s") is None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--apnscope", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--searches", type=int, default=10)
    options = parser.parse_args()
    if options.searches < 1:
        parser.error("at least one search")
    apnscope, folder = options.apnscope.resolve(), options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    try:
        rates = list(read_rates(apnscope, folder))
        held = list(searches(apnscope, folder, options.searches))
        void = stalls(apnscope, folder)
    except loads.Failure as error:
        print(f"void: {error}")
        return 1
    checks = [
        (all(rates), "each read rate is what was taken, within 1 %"),
        (sum(held) * 10 >= len(held) * 9, f"{sum(held)} of {len(held)} ranges hold the limit; nine of ten have to"),
        (void, "no trial of a generator that stands still blames the gateway"),
    ]
    print()
    for holds, text in checks:
        print(f"{'✓' if holds else '✗'} {text}")
    print(f"\nDocuments are in {options.folder}")
    return 0 if all(holds for holds, _ in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
