#!/usr/bin/env python3
"""Holds what `apnscope load` says of its runs against what a capture of each says; Scripts/bench truth calls it.

    truth.py --apnscope FILE --folder FOLDER [RUN …]

It needs a network namespace with a loopback interface of its own, in which it may capture. For each run it prints a table:
what the product says, what the oracle computes from packets and plan, their difference, and what the difference may be, with
a letter for the reason. Results, tables and captures of all runs stay in the folder. Exit code 1: a difference is outside.
"""

import argparse
import dataclasses
import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import loads  # noqa: E402
import oracle  # noqa: E402

RATE, PAYLOAD, FRAME = 10_000, 189, 250
# The load's buffers are small: what is in them while the gateway does not read is written for the load, and not sent. The
# kernel doubles SO_SNDBUF, and a batch may wait in front of it.
SMALL = ["--send-buffer", "16KB"]
BUFFERED = (2 * 16_384 + 16_384) / FRAME
# So many of all may be on another side of the phase's ends for the load than for the oracle.
CUT = 0.002
# Seconds that the load goes on for when its schedule has ended, to send what is late, and that it may wake up late.
CATCH_UP, LATE = 0.1, 0.2

REASONS = {
    "a": "counts: none",
    "b": "a phase ends when the load comes to it: late by no more than p99 of the lag at either end, which cuts a batch or a "
    "burst of what is sent again",
    "c": "a packet is stamped some tens of microseconds after its write, and the oracle takes the least late one for punctual",
    "d": "the same, and on a shared machine either process may lose the processor between write and packet, or the gateway "
    "before it reads",
    "e": "what is in the load's send buffer while the gateway does not read is written, and on the wire later",
    "f": "the same, and what was never sent is late by at least the schedule's end minus due; the load goes on for 100 ms, "
    "or until it wakes up",
    "g": "an answer is read when the load comes to it: as late as notifications are sent",
    "h": "the process is stopped and goes on some milliseconds after the signal",
    "i": "a gateway cannot accept more than it reads",
    "j": "what the load takes to catch up when the gateway reads again is its own",
    "-": "must be the same",
}


@dataclasses.dataclass
class Row:
    name: str
    product: object
    oracle: object
    low: float
    high: float
    unit: str
    reason: str

    @property
    def difference(self):
        numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (self.product, self.oracle))
        return self.product - self.oracle if numbers else None

    @property
    def holds(self):
        if self.difference is None:
            return self.product is not None and self.product == self.oracle
        # A difference of nothing is one of nothing, whatever rounding leaves of it.
        return self.low - 1e-9 <= self.difference <= self.high + 1e-9

    def cells(self):
        def text(value, sign=""):
            if value is None:
                return "-"
            if isinstance(value, (bool, str)):
                return str(value).lower()
            return f"{value:{sign},.{2 if self.unit == 'ms' else 0}f}"

        allowed = "the same"
        if self.low or self.high:
            allowed = f"{text(self.low, '+')} to {text(self.high, '+')}" if -self.low != self.high else f"±{text(self.high)}"
        name = f"{self.name}, {self.unit}" if self.unit else self.name
        mark = "yes" if self.holds else "NO"
        return name, text(self.product), text(self.oracle), text(self.difference, "+"), f"{allowed} ({self.reason})", mark


class Check:
    """One run: its plan, what the load said, what the capture says, and the rows of its table."""

    name = title = ""
    connections = 1
    simulate, load, stop = [], [], None
    schedule = oracle.Schedule((7, RATE, RATE))
    poisson = False
    warm_up, length = 1, 6
    pace = ["--rate", f"{RATE}/s", "--for", "6s"]

    def __init__(self, earlier):
        self.earlier = earlier

    def options(self):
        return [
            "--seed", "1", "--threads", "1", "--connections", str(self.connections), "--payload", str(PAYLOAD), "--tokens",
            "1000M", "--warm-up", f"{self.warm_up}s", *self.pace, *(["--poisson"] if self.poisson else []), *SMALL, *self.load,
        ]  # fmt: skip

    def make(self, apnscope, folder):
        self.prepare(folder)
        self.run = loads.Load(apnscope, folder).run(self.simulate, self.options(), self.stop)
        self.read(folder)

    def prepare(self, folder):
        pass

    def read(self, folder):
        with open(folder / "result.json", encoding="utf-8") as file:
            self.result = json.load(file)
        wire = oracle.Wire(folder / "capture.pcap")
        if not wire.sendings:
            raise loads.Failure("nothing was sent")
        due = None
        if self.schedule:
            due = self.schedule.poisson(1) if self.poisson else self.schedule.even()
        self.reading = oracle.Reading(wire, due, self.warm_up, self.length)
        self.due = due

    def said(self, *path):
        """What the result has there, or None."""
        value = self.result
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    # Rows

    def counts(self):
        schedule, notifications = self.result["schedule"], self.result["notifications"]
        asked = notifications["generated"] + schedule["unsent"] + schedule["skipped"]
        yield Row("due in all", asked, len(self.due), 0, 0, "", "-")

    def rates(self, *names, share=0.005, burst=0.0):
        """The difference may be a share of the value, and what either end of the phase cuts: of what is written a burst of
        notifications that are sent again, too."""
        measured = self.reading.measured()
        late = 0 if self.stop else oracle.quantile(self.reading.lags, 0.99)
        behind = self.basis()
        # Over measured and drain it is of what was sent in both: the gateway took time for all of it.
        accepted = self.reading.measured(until_the_end=behind > 0)
        values = {
            "written_per_s": len(measured) / self.length,
            "accepted_per_s": sum(each.fate == "accepted" for each in accepted) / (self.length + behind),
            "written_bytes_per_s": sum(each.length for each in measured) / self.length,
        }
        for name in names or values:
            cut = 2 * (late * RATE + (burst if "written" in name else 0)) / self.length
            limit = share * values[name] + cut * (FRAME if "bytes" in name else 1)
            yield Row(name, self.said("rates", name), values[name], -limit, limit, "", "b")

    def basis(self):
        """Seconds that `accepted_per_s` is over beside the phase: none, or until the gateway's last answer when that is late by
        more than 2 % of the phase. Where it is near to that, as the load sees it."""
        behind = (self.reading.wire.last_answer - self.reading.at(self.warm_up + self.length)) / 1e9
        is_late = behind > 0.02 * self.length
        if 0.01 * self.length < behind < 0.03 * self.length:
            is_late = self.said("rates", "basis") == "measured_and_drain"
        return behind if is_late else 0.0

    def lag(self, quantiles, low, high, reason, share=0.0, histogram="send_lag_us"):
        """Limits are milliseconds, and a share of the value besides; and what the phase's ends may cut."""
        lags, longer = self.reading.lags, self.reading.lags_until(CATCH_UP + LATE)
        for name in quantiles:
            if name == "mean":
                least, value, most = (sum(values) / len(values) * 1e3 for values in (lags, lags, longer))
            else:
                rank = 1.0 if name == "max" else float("0." + name[1:])
                cut = 0.0 if name == "max" else CUT
                least, value = (oracle.quantile(lags, each) * 1e3 for each in (rank - cut, rank))
                most = oracle.quantile(longer, min(1.0, rank + cut)) * 1e3
            said = self.said("latency", histogram, name)
            limits = (least - value + low - share * value, most - value + high + share * value)
            label = histogram.removesuffix("_us").replace("_", " ")
            yield Row(f"{label} {name}", None if said is None else said / 1e3, value, *limits, "ms", reason)

    @property
    def buffered(self):
        """Milliseconds in which as much is due as the load's buffers take."""
        return BUFFERED * self.connections / RATE * 1e3

    def quiet_lag(self):
        yield from self.lag(["p50", "mean"], -0.2, 0.2, "c", 0.05)
        # So late is nothing unless somebody has lost the processor.
        is_quiet = oracle.quantile(self.reading.lags, 0.99) < 0.005
        yield from self.lag(["p99"], -0.5 if is_quiet else -0.5 - self.buffered, 0.5, "d", 0.05)

    def rows(self):
        yield from self.counts()
        yield from self.rates()
        yield from self.quiet_lag()


class Even(Check):
    name, title, connections = "even", "even pace, nothing in the way", 2


class Poisson(Check):
    name, title, poisson = "poisson", "--poisson, nothing in the way", True


class Ramp(Check):
    name, title, connections = "ramp", "a ramp from 0 up and down again", 2
    schedule = oracle.Schedule((3, 0, RATE), (4, RATE, RATE / 5))
    pace = ["--stage", f"3s:0..{RATE}/s", "--stage", f"4s:{RATE}..{RATE // 5}/s"]


class GatewayStall(Check):
    name, title = "gateway-stall", "even pace, the gateway is stopped for a second"
    simulate, stop = ["--receive-buffer", "64KB"], ("gateway", 3, 1)

    def rows(self):
        if oracle.quantile(self.reading.lags, 0.99) < 0.3:
            raise loads.Failure("the stop of the gateway was not felt")
        yield from self.counts()
        yield from self.rates("written_per_s", "accepted_per_s", share=0.01)
        yield from self.lag(["p90", "p99", "max"], -self.buffered - 2, 2, "e", 0.02)
        yield from self.lag(["p99"], -0.5 * self.lag_p99, 2, "j", 0.05, "send_lag_gateway_us")

    @property
    def lag_p99(self):
        return oracle.quantile(self.reading.lags, 0.99) * 1e3


class PoissonGatewayStall(GatewayStall):
    name, title, poisson = "poisson-gateway-stall", "--poisson, the gateway is stopped for a second", True


class PoissonOverload(Check):
    name, title, poisson = "poisson-overload", "--poisson, 12 % more than the gateway reads", True
    reads = int(RATE * FRAME / 1.12)
    simulate = ["--read-rate", str(reads), "--receive-buffer", "64KB"]

    def rows(self):
        yield from self.counts()
        yield from self.lag(["p50", "p99", "mean"], -1.12 * self.buffered - 2, 10, "f", 0.02)


class LoadStall(Check):
    name, title, connections = "load-stall", "even pace, the load itself is stopped for 0.6 s", 2
    stop = ("load", 3, 0.6)

    def rows(self):
        yield from self.counts()
        yield from self.lag(["p99", "max"], -5, 5, "d", 0.02)
        yield from self.lag(["p99"], -15, 15, "d", 0.05, "send_lag_own_us")
        stopped = self.run.stopped * 1e3
        yield Row("longest stall", self.said("stalls", "longest_ms"), stopped, -20, 20, "ms", "h")
        # Of a stop of S in T, weighted by the time that it covers, 1 % of T is later than S - T / 100.
        late = stopped - self.length * 1e3 / 100
        said = self.said("resources", "loop_lag_us", "p99")
        yield Row("loop lag p99", said and said / 1e3, late, -0.1 * late, 0.1 * late, "ms", "h")


class PoissonLoadStall(LoadStall):
    name, title, poisson, connections = "poisson-load-stall", "--poisson, the load itself is stopped for 0.6 s", True, 1


class Frozen(Check):
    name, title = "frozen", "even pace, the gateway is stopped for the rest of the run"
    simulate, stop = ["--receive-buffer", "64KB"], ("gateway", 3, None)
    load = ["--drain", "2s", "--marker-timeout", "1s", "--threshold", "send_lag_p99<50ms"]

    def rows(self):
        yield from self.counts()
        yield from self.lag(["p50", "p99"], -self.buffered - 5, 10, "f", 0.02)
        thresholds = self.said("verdict", "thresholds") or [{}]
        yield Row("send_lag_p99<50ms passes", thresholds[0].get("passed"), False, 0, 0, "", "-")


class Saturated(Check):
    name, title, connections = "saturated", "as fast as possible, the gateway reads 500 KB/s of each connection", 4
    schedule, warm_up, length, pace = None, 0, 5, ["--for", "5s"]
    reads = 500_000
    # A buffer that it is more than a second behind with when it is full; the system's own may be too small for that.
    simulate = ["--read-rate", str(reads), "--receive-buffer", "1MB"]
    # Behind --buffers a size would stand.
    load = ["--buffers", "system", "--drain", "60s", "--marker-timeout", "60s"]

    def rows(self):
        wire = self.reading.wire
        taken = (wire.last_answer - self.reading.begin) / 1e9
        rate = sum(each.fate == "accepted" for each in wire.sendings) / taken
        said = self.said("rates", "accepted_per_s")
        yield Row("accepted_per_s", said, rate, -0.02 * rate, 0.02 * rate, "", "b")
        most = self.reads * self.connections / FRAME
        yield Row("the same, beside the most there can be", said, most, -most, 0.02 * most, "", "i")
        if taken < 1.1 * self.length:
            raise loads.Failure("the gateway was not behind")
        yield Row("rates.basis", self.said("rates", "basis"), "measured_and_drain", 0, 0, "", "-")


class Refusals(Check):
    name, title, connections = "refusals", "one notification in a thousand is refused, 50 ms after it came", 2
    simulate, load = ["--response-delay", "50ms"], ["--faults", "missing-token=1e-3"]

    def refused(self):
        """How many were refused of what was sent in the measured phase."""
        refusals = self.reading.refusals()
        # At either end of the phase one may be on the other side.
        limit, reason = (2, "b") if refusals else (0, "-")
        for title, path in [("error latencies", ("latency", "error_ms", "count")), ("loss windows", ("loss_window", "count"))]:
            yield Row(title, self.said(*path), len(refusals), -limit, limit, "", reason)

    def rows(self):
        refusals = self.reading.refusals()
        latencies = sorted(each.latency * 1e3 for each in refusals)
        losses = sorted(each.lost for each in refusals)
        yield from self.counts()
        yield from self.rates(burst=oracle.quantile(losses, 0.9))
        yield from self.refused()
        for name, share, later in [("p50", 0.5, 0.9), ("p90", 0.9, 0.99)]:
            late = 0.5 + oracle.quantile(self.reading.lags, later) * 1e3
            said = self.said("latency", "error_ms", name)
            yield Row(f"error latency {name}", said, oracle.quantile(latencies, share), -0.5, late, "ms", "g")
            # One that is on another side of the phase's end moves a rank.
            value, ranks = oracle.quantile(losses, share), 2 / len(losses)
            low, high = (oracle.quantile(losses, max(0.0, min(1.0, share + step))) for step in (-ranks, ranks))
            yield Row(f"loss window {name}", self.said("loss_window", name), value, low - value - 2, high - value + 2, "", "b")


class WarmUpRefusals(Refusals):
    name, title = "warm-up-refusals", "the gateway refuses some in the warm-up, and nothing afterwards"
    simulate, load = ["--response-delay", "40ms", "--reject", "tokens=refused.txt"], []

    def prepare(self, folder):
        """Which tokens will come when is known from the run with the same seed before."""
        tokens = {each.number: each.token for each in self.earlier["even"].reading.wire.sendings if each.number < RATE * 0.8}
        self.refused_tokens = [tokens[number].hex() for number in range(400, int(RATE * 0.8), 400)]
        path = folder.parent / "refused.txt"
        path.write_text("".join(token + "\n" for token in self.refused_tokens))
        self.simulate = [*self.simulate[:-1], f"tokens={path}"]

    def rows(self):
        if not self.reading.wire.refusals:
            raise loads.Failure("nothing was refused in the warm-up")
        yield from self.counts()
        yield from self.rates()
        yield from self.refused()


CHECKS = [
    Even, Poisson, Ramp, GatewayStall, PoissonGatewayStall, PoissonOverload, LoadStall, PoissonLoadStall, Frozen, Saturated,
    Refusals, WarmUpRefusals,
]  # fmt: skip
# The run that another one needs before it.
NEEDED = {WarmUpRefusals: Even}


def table(check, rows):
    lines = [("", "product", "oracle", "difference", "allowed", "ok"), *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(6)]
    text = [f"{check.name}: {check.title}"]
    for line in lines:
        cells = [cell.ljust(width) if column in (0, 4) else cell.rjust(width) for column, (cell, width) in enumerate(zip(line, widths))]
        text.append("  " + "  ".join(cells))
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--apnscope", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=", ".join(check.name for check in CHECKS))
    options = parser.parse_args()
    if unknown := set(options.runs) - {check.name for check in CHECKS}:
        parser.error(f"there is no run {', '.join(sorted(unknown))}; there are {', '.join(check.name for check in CHECKS)}")
    wanted = [check for check in CHECKS if not options.runs or check.name in options.runs]
    wanted += [NEEDED[check] for check in wanted if check in NEEDED and NEEDED[check] not in wanted]
    made, outside, void, used = {}, [], [], set()
    for kind in sorted(wanted, key=CHECKS.index):
        check = kind(made)
        folder = (options.folder / check.name).resolve()
        try:
            check.make(options.apnscope.resolve(), folder)
            rows = list(check.rows())
        except loads.Failure as error:
            print(f"{check.name}: void: {error}\n", flush=True)
            void.append(check.name)
            if any(NEEDED.get(other) is kind for other in wanted):
                break
            continue
        made[check.name] = check
        text = table(check, rows)
        (folder / "table.txt").write_text(text + "\n")
        print(text + "\n", flush=True)
        outside += [f"{check.name}: {row.name}" for row in rows if not row.holds]
        used |= {row.reason for row in rows}
    print("A difference is allowed because")
    for letter in sorted(used):
        print(f"  {letter}  {REASONS[letter]}")
    print(f"\nResults, tables and captures are in {options.folder}")
    for names, what in [(outside, "not what the capture says"), (void, "could not be made, so nothing is known of it")]:
        for name in names:
            print(f"✗ {name}: {what}")
    if not outside and not void:
        print("✓ all figures are what the captures say")
    return 1 if outside or void else 0


if __name__ == "__main__":
    sys.exit(main())
