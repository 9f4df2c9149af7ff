#!/usr/bin/env python3
"""Holds what `apnscope decode` printed against what the second decoder reads from the same capture.

    Tests/SecondDecoder/compare.py [--port N=gateway|feedback]… CAPTURE RECORDS

It prints every difference, and last a line of JSON with what was compared. Exit code 1: something differs.
"""

import base64
import calendar
import collections
import json
import sys
import time

sys.dont_write_bytecode = True
import decode  # noqa: E402

SHOWN = 20


def exact(text):
    """JSON in which numbers are as they were written, and a key that stands twice does so."""
    pairs = {"object_pairs_hook": lambda pairs: ("object", pairs)}
    return json.loads(text, parse_int=str, parse_float=str, parse_constant=str, **pairs)


def nanoseconds(text):
    whole, fraction = text.rstrip("Z").split(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) * 10**9 + int(fraction.ljust(9, "0"))


class Recorded:
    """One connection of the first decoder."""

    def __init__(self):
        self.records, self.connection = collections.defaultdict(list), {}


def recorded(path):
    found = collections.defaultdict(Recorded)
    with open(path, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            kind, number = record["type"], record.get("connection")
            if kind == "connection":
                found[number].connection = record
            elif number is not None:
                if "payload" in record:
                    record["payload"] = dict(exact(line)[1])["payload"]
                found[number].records[kind].append(record)
    return found


def told(responses, count):
    """The fate of each of so many notifications, as the error responses of decode tell it."""
    settled, rejected, ended = 0, set(), False
    for record in responses:
        if "notification" not in record:
            continue
        named, status = record["notification"], record["status"]
        settled = max(settled, named + 1)
        if status not in (0, 10):
            rejected.add(named)
        ended = ended or status != 0
    rest = "discarded" if ended else "unknown"
    return ["rejected" if n in rejected else "accepted" if n < settled else rest for n in range(count)]


def written(records, count):
    """The fate of each of so many notifications as decode writes it, with them or in ranges; None where it does not."""
    fates = [None] * count
    for record in records["notification"]:
        if record["index"] < count:
            fates[record["index"]] = record.get("fate")
    for record in records["fate"]:
        for index in range(record["first"], min(record["last"] + 1, count)):
            fates[index] = record["fate"] if fates[index] is None else "told twice"
    return fates


class Comparison:
    def __init__(self):
        self.counts, self.differences = collections.Counter(), 0

    def differ(self, place, name, first, second):
        self.differences += 1
        if self.differences <= SHOWN:
            print(f"{place}: {name}: decode {str(first)[:200]}, second decoder {str(second)[:200]}")

    def same(self, place, name, first, second):
        if first != second:
            self.differ(place, name, first, second)

    def pairs(self, place, kind, first, second):
        """By offset: one that only the one has is one difference, and no hundred."""
        others = {each["offset"]: (index, each) for index, each in enumerate(second)}
        for record in first:
            index, other = others.pop(record["offset"], (None, None))
            where = f"{place}, {kind} at {record['offset']}"
            if other is None:
                self.differ(where, "whole", "has it", "does not")
                continue
            self.counts[kind] += 1
            self.same(where, "length", record.get("length", 6), other["length"])
            self.same(where, "index", record.get("index"), None if kind == "error_response" else index)
            self.same(where, "packet", record["packet"], other["packet"])
            self.same(where, "time", nanoseconds(record["time"]), other["time"])
            yield where, record, other
        for offset in others:
            self.differ(f"{place}, {kind} at {offset}", "whole", "does not have it", "has it")

    def notifications(self, place, first, second):
        for where, record, other in self.pairs(place, "notification", first, second):
            for name in ("command", "identifier", "expiration", "priority", "token"):
                self.same(where, name, record.get(name), other.get(name))
            payload = bytes.fromhex(other.get("payload", ""))
            length = len(payload) if "payload" in other else None
            self.same(where, "payload length", record.get("payload_length"), length)
            self.payload(where, record, payload)
            self.same(where, "other items", record.get("items", []), other["others"])
            self.same(where, "items that do not fit", "problem" in record, other["misfit"])
            self.counts["misfit"] += other["misfit"]

    def payload(self, where, record, payload):
        if "payload_base64" in record:
            self.same(where, "payload", base64.b64decode(record["payload_base64"]), payload)
        elif "payload" not in record:
            self.same(where, "payload", b"", payload)
        else:
            try:
                self.same(where, "payload", record["payload"], exact(payload.decode("utf-8")))
            except ValueError:
                self.differ(where, "payload", "JSON", payload)

    def responses(self, place, first, second):
        for where, record, other in self.pairs(place, "error_response", first, second):
            for name in ("command", "status", "identifier", "notification", "accepted"):
                self.same(where, name, record.get(name), other.get(name))
            self.same(where, "ambiguous", record.get("ambiguous", False), other["ambiguous"])
            self.counts["ambiguous"] += other["ambiguous"]

    def connection(self, number, first, second):
        place = f"connection {number}"
        self.counts["connection"] += 1
        for name in ("client", "server"):
            self.same(place, name, first.connection.get(name), second[name])
        if second["service"] == "encrypted":
            self.counts["encrypted"] += 1
            return
        records = first.records
        if second["service"] is None:
            self.counts["unknown port"] += 1
            return
        self.same(place, "service", first.connection.get("service"), second["service"])
        if second["service"] == "feedback":
            for where, record, other in self.pairs(place, "feedback", records["feedback"], second["tuples"]):
                self.same(where, "timestamp", record["timestamp"], other["timestamp"])
                self.same(where, "token", record["token"], other["token"])
            return
        self.notifications(place, records["notification"], second["frames"])
        self.responses(place, records["error_response"], second["responses"])
        for index, (fate, frame) in enumerate(zip(told(records["error_response"], len(second["frames"])), second["frames"])):
            self.counts["fate"] += 1
            self.same(f"{place}, notification {index}", "fate", fate, frame["fate"])
        for index, (fate, frame) in enumerate(zip(written(records, len(second["frames"])), second["frames"])):
            self.counts["written fate"] += 1
            self.same(f"{place}, notification {index}", "written fate", fate, frame["fate"])
        fates = collections.Counter(frame["fate"] for frame in second["frames"])
        for fate in ("accepted", "rejected", "discarded", "unknown"):
            self.counts[fate] += fates[fate]
            self.same(place, fate, first.connection.get(fate), fates[fate])


def main(arguments):
    ports, paths = dict(decode.SERVICES), []
    while arguments:
        argument = arguments.pop(0)
        if argument == "--port" and arguments:
            number, kind = decode.port(arguments.pop(0))
            ports[number] = kind
        else:
            paths.append(argument)
    if len(paths) != 2:
        print("usage:", __doc__.split("\n\n")[1].strip(), file=sys.stderr)
        return 64
    comparison, first = Comparison(), recorded(paths[1])
    for second in decode.decoded(paths[0], ports):
        number = second["connection"]
        comparison.connection(number, first.pop(number, Recorded()), second)
    for number in first:
        comparison.differ(f"connection {number}", "whole", "has it", "does not")
    if comparison.differences > SHOWN:
        print(f"… and {comparison.differences - SHOWN} more")
    print(json.dumps(dict(comparison.counts, differences=comparison.differences), sort_keys=True))
    return 1 if comparison.differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
