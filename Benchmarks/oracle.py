"""What a capture of a load says, and when its schedule had each notification due.

The capture is read by Tests/SecondDecoder, which shares nothing with apnscope; due times follow from the options that the
load was given. Times of packets are nanoseconds of the clock, all others seconds since the schedule's begin.
"""

import bisect
import collections
import math
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Tests" / "SecondDecoder"))
import capture  # noqa: E402
import decode  # noqa: E402

# The deliberate bad notification at a connection's end; it is in no count.
MARKER = 0xFFFFFFFF
MASK = (1 << 64) - 1


def quantile(values, share):
    """By nearest rank, of sorted values; None when there are none."""
    return values[max(0, math.ceil(share * len(values)) - 1)] if values else None


class Schedule:
    """The cumulative count H(t) of stages (seconds, rate at the begin, rate at the end); number k is due at its inverse."""

    def __init__(self, *stages):
        self.stages = stages
        self.length = sum(length for length, _, _ in stages)
        self.total = sum(length * (first + last) / 2 for length, first, last in stages)

    @property
    def count(self):
        return math.ceil(self.total - 1e-9)

    def time(self, number):
        """None when the schedule has ended before."""
        begin = 0.0
        for length, first, last in self.stages:
            here = length * (first + last) / 2
            if number < here:
                slope = (last - first) / length
                # The root of first t + slope t²/2 = number, in a form that does not divide by a slope of 0.
                root = first + math.sqrt(max(0.0, first * first + 2 * slope * number))
                return begin + (2 * number / root if number else 0.0)
            number -= here
            begin += length
        return None

    def even(self):
        return [self.time(number) for number in range(self.count)]

    def poisson(self, seed):
        """Arrivals of one event loop: exponential gaps of mean 1 from SplitMix64, sent through the inverse of H."""
        words, arrival, due = split_mix(seed), 0.0, []
        while True:
            arrival -= math.log1p(-(next(words) >> 11) * 2.0**-53)
            time = self.time(arrival)
            if time is None:
                return due
            due.append(time)


def mixed(word):
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def split_mix(seed):
    state = mixed(seed)
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        yield mixed(state)


Sending = collections.namedtuple("Sending", "time number length fate token")
Refusal = collections.namedtuple("Refusal", "written latency lost")


class Wire:
    """The connections of a capture to a gateway without TLS."""

    def __init__(self, path):
        self.sendings, self.refusals, self.last_answer = [], [], None
        for connection in capture.connections(path):
            sent, answered = (connection.streams[end].pieces() for end in (connection.client, connection.server))
            frames, _ = decode.frames(sent)
            responses = decode.responses(answered)
            decode.settle(frames, responses)
            self.take(frames, responses)
        self.sendings.sort(key=lambda each: each.time)

    def take(self, frames, responses):
        for each in frames:
            if each.identifier != MARKER:
                # The first notification has identifier 1.
                self.sendings.append(Sending(each.time, each.identifier - 1, each.length, each.fate, each.token))
        for response in responses:
            self.last_answer = max(self.last_answer or 0, response.time)
            if response.notification is None or frames[response.notification].identifier == MARKER:
                continue
            bad = frames[response.notification]
            lost = sum(each.identifier != MARKER for each in frames[response.notification + 1 :])
            self.refusals.append(Refusal(bad.time, (response.time - bad.time) / 1e9, lost))


class Reading:
    """A capture beside a schedule: the measured phase is cut out of it by the plan alone.

    The schedule began at the latest when it must have so that no notification was early: the least of packet time minus
    due time. Lags are too short by the lag of the notification that was least late, some tens of microseconds where
    nothing stands still.
    """

    def __init__(self, wire, due, warm_up, length):
        self.wire, self.warm_up, self.length = wire, warm_up, length
        first = {}
        for sending in wire.sendings:
            first.setdefault(sending.number, sending.time)
        if due is None:
            self.begin = wire.sendings[0].time
        else:
            self.begin = min(time - round(due[number] * 1e9) for number, time in first.items() if number < len(due))
        self.times = [sending.time for sending in wire.sendings]
        # Of what was sent in the phase for the first time, or was due in it and sent later or never.
        self.sent_lags, self.unsent = [], []
        for number, time in enumerate(due or []):
            if number not in first:
                self.unsent.append(time)
            elif first[number] >= self.at(warm_up):
                self.sent_lags.append((first[number] - self.begin) / 1e9 - time)
        self.lags = self.lags_until(0)

    def lags_until(self, longer):
        """What was never sent is late by at least the schedule's end minus due; here so much longer."""
        end = self.warm_up + self.length + longer
        return sorted(self.sent_lags + [end - time for time in self.unsent])

    def at(self, seconds):
        return self.begin + round(seconds * 1e9)

    def measured(self, until_the_end=False):
        """What was sent in the measured phase, or from its begin on."""
        start = bisect.bisect_left(self.times, self.at(self.warm_up))
        end = bisect.bisect_left(self.times, self.at(self.warm_up + self.length))
        return self.wire.sendings[start:] if until_the_end else self.wire.sendings[start:end]

    def refusals(self):
        """Of what was sent in the measured phase."""
        start, end = self.at(self.warm_up), self.at(self.warm_up + self.length)
        return [each for each in self.wire.refusals if start <= each.written < end]
