#!/usr/bin/env python3
"""Makes a capture of a load whose figures are known by hand, and prints as JSON what Benchmarks/oracle.py reads from it.

    captured_load.py CAPTURE

1000 notifications a second for four seconds, the first of them warm-up; every 10 ms those that are due are written, so
that each is 0 to 9 ms late. From 2.0 to 2.5 s nothing is written. Number 1200 is refused 45.1 ms after it was written, on
a connection whose next 40 are lost and written again on another one. The last 49 are never written.
"""

import importlib.machinery
import importlib.util
import json
import pathlib
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "Benchmarks"))
import oracle  # noqa: E402
import repeats  # noqa: E402
import truth  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader("make", str(ROOT / "Traces" / "make"))
make = importlib.util.module_from_spec(importlib.util.spec_from_loader("make", LOADER))
LOADER.exec_module(make)


class Connection(make.Conversation):
    """One whose packets have the time that they are given, in microseconds since the schedule's begin."""

    def at(self, microseconds, data, is_server=False):
        self.packet(is_server, make.PSH | make.ACK, data)
        *_, length, frame = self.packets.pop()
        seconds, rest = divmod(microseconds + 250, 10**6)
        self.packets.append((make.START + 1 + seconds, rest * 1000 + 7, length, frame))


def frame(number):
    return make.enhanced(number + 1, 0, make.token(number % 8), make.alert("x"))


def capture(path):
    packets = []
    first, second = Connection(packets).open(), Connection(packets, client_port=40002).open()
    written = 0
    for tick in range(400):
        due = min(10 * tick + 1, 3951)
        if 200 < tick < 250 or due == written:
            continue
        frames = b"".join(frame(number) for number in range(written, due))
        if tick <= 124:
            first.at(tick * 10_000, frames)
        else:
            if tick == 125:
                first.at(1_245_100, make.response(8, 1201), is_server=True)
                frames = b"".join(frame(number) for number in range(1201, 1241)) + frames
            second.at(tick * 10_000, frames)
        written = due
    second.at(4_100_000, make.framed(make.item(1, b""), make.item(2, b""), make.item(3, make.number(oracle.MARKER))))
    second.at(4_120_000, make.response(2, oracle.MARKER), is_server=True)
    pathlib.Path(path).write_bytes(make.pcap(packets, nanos=True))


def judged(product, said, low, high):
    return truth.Row("", product, said, low, high, "ms", "a").holds


def main():
    capture(sys.argv[1])
    wire = oracle.Wire(sys.argv[1])
    reading = oracle.Reading(wire, oracle.Schedule((4, 1000, 1000)).even(), 1, 3)
    measured, lags = reading.measured(), reading.lags
    mixed = oracle.Schedule((2, 0, 500), (1.5, 500, 500), (2, 500, 100))
    table = "| question | answer | 95 % interval |\n|---|--:|--:|\n| A | **1.5 ms** | 900 µs to 2 ms |\n| B | 1,000/s | ± 20/s |\n"
    print(json.dumps({
        "written": len(measured), "accepted": sum(each.fate == "accepted" for each in measured),
        "bytes": sum(each.length for each in measured), "frame": len(frame(0)), "unsent": len(reading.unsent),
        "lags": len(lags), "sum": sum(lags), "sent": len(wire.sendings), "p50": oracle.quantile(lags, 0.5), "p99": oracle.quantile(lags, 0.99), "max": lags[-1],
        "refused": [len(wire.refusals), wire.refusals[0].latency, wire.refusals[0].lost],
        "refusedLater": len(oracle.Reading(wire, oracle.Schedule((4, 1000, 1000)).even(), 2, 2).refusals()),
        "drained": (wire.last_answer - reading.begin) / 1e9,
        "even": mixed.even(), "poisson": mixed.poisson(7),
        "right": [judged(1.0, 0.9, -0.2, 0.2), judged(True, True, 0, 0), judged(5, 5, 0, 0), judged(0.5, 1.0, -0.6, 0)],
        "wrong": [judged(1.0, 0.66, -0.2, 0.2), judged(None, 1.0, -9, 9), judged(True, False, 0, 0), judged(5, 4, 0, 0),
                  judged(1.1, 1.0, -0.6, 0), judged("measured", "other", 0, 0)],
        "intervals": list(repeats.intervals(table)),
        "most": [repeats.most_by_chance(200, 0.05), repeats.most_by_chance(20, 0.05)],
    }))  # fmt: skip


main()
