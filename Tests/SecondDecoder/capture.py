"""TCP streams of a capture file: classic pcap, and nothing that a test does not need.

Of a stream only what is on file is kept: a stretch that was lost or cut is a hole between two pieces.
"""

import bisect
import collections
import gzip
import struct

FIN, SYN, RST, ACK = 1, 2, 4, 16
HALF, WHOLE = 1 << 31, 1 << 32
# Nanoseconds that fractions of a second count, by the file's first number.
UNITS = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}

Segment = collections.namedtuple("Segment", "packet time source target sequence flags data")


def packets(contents):
    """(number from 1, nanoseconds, link type, bytes) of each whole packet."""
    for order in "<>":
        magic = struct.unpack_from(order + "I", contents, 0)[0]
        if magic in UNITS:
            break
    else:
        raise ValueError("not a classic pcap file")
    link = struct.unpack_from(order + "I", contents, 20)[0] & 0xFFFF
    offset, number = 24, 0
    while offset + 16 <= len(contents):
        seconds, fraction, captured, _ = struct.unpack_from(order + "4I", contents, offset)
        data = contents[offset + 16 : offset + 16 + captured]
        if len(data) < captured:
            return
        number += 1
        yield number, seconds * 10**9 + fraction * UNITS[magic], link, data
        offset += 16 + captured


def network(link, data):
    """The IP packet in a frame, or None."""
    if link in (0, 108):  # BSD loopback: a family, in the host's order or not
        return data[4:]
    if link in (12, 14, 101, 228, 229):  # nothing before IP
        return data
    start = {1: 12, 113: 14, 276: 0}.get(link)
    if start is None or len(data) < start + 2:
        return None
    kind, offset = struct.unpack_from(">H", data, start)[0], 20 if link == 276 else start + 2
    while kind in (0x8100, 0x88A8, 0x9100) and len(data) >= offset + 4:
        kind, offset = struct.unpack_from(">H", data, offset + 2)[0], offset + 4
    return data[offset:] if kind in (0x0800, 0x86DD) else None


def transport(data):
    """(source, target, bytes) of the TCP segment in an IP packet, or None. Fragments are left out."""
    if len(data) >= 20 and data[0] >> 4 == 4:
        total, fragment = struct.unpack_from(">H", data, 2)[0], struct.unpack_from(">H", data, 6)[0] & 0x3FFF
        if data[9] != 6 or fragment:
            return None
        # Total length 0: the network card was to cut it.
        return data[12:16], data[16:20], data[(data[0] & 15) * 4 : total or len(data)]
    if len(data) >= 40 and data[0] >> 4 == 6:
        end = 40 + struct.unpack_from(">H", data, 4)[0]
        kind, offset = data[6], 40
        while kind in (0, 43, 60) and offset + 2 <= len(data):
            kind, offset = data[offset], offset + 8 + data[offset + 1] * 8
        return (data[8:24], data[24:40], data[offset : end if end > 40 else len(data)]) if kind == 6 else None
    return None


def segments(contents):
    for packet, time, link, frame in packets(contents):
        ip = network(link, frame)
        found = transport(ip) if ip else None
        if not found or len(found[2]) < 20:
            continue
        source, target, tcp = found
        ports, sequence = struct.unpack_from(">HH", tcp), struct.unpack_from(">I", tcp, 4)[0]
        data = tcp[(tcp[12] >> 4) * 4 :]
        yield Segment(packet, time, (source, ports[0]), (target, ports[1]), sequence, tcp[13], data)


class Stream:
    """One direction of a connection. The first copy of a byte is the one that counts."""

    def __init__(self):
        self.syn = None  # the sequence number of the SYN
        self.reference = None  # a (sequence number, place) to count from
        self.starts, self.parts = [], []  # places from the first byte on, in order, and what stands there

    def begin(self, sequence):
        self.syn = sequence
        self.reference = (sequence + 1) % WHOLE, 0

    def add(self, segment):
        if not segment.data:
            return
        sequence = segment.sequence + (1 if segment.flags & SYN else 0)
        if self.reference is None:
            self.reference = sequence % WHOLE, 0
        number, place = self.reference
        start = place + (sequence - number + HALF) % WHOLE - HALF
        self.reference = sequence % WHOLE, start
        end = start + len(segment.data)
        index = max(0, bisect.bisect_right(self.starts, start) - 1)
        at = start
        while at < end:
            # What is there from `at` on, or next.
            while index < len(self.starts) and self.starts[index] + len(self.parts[index][0]) <= at:
                index += 1
            following = self.starts[index] if index < len(self.starts) else end
            if following > at:
                stop = min(end, following)
                self.starts.insert(index, at)
                self.parts.insert(index, (segment.data[at - start : stop - start], segment))
                at = stop
            else:
                at = self.starts[index] + len(self.parts[index][0])

    def pieces(self):
        """Each unbroken stretch. Places count from the SYN, or from the first byte that is on file."""
        found = []
        parts = [(at, part) for at, part in zip(self.starts, self.parts) if self.syn is None or at >= 0]
        first = 0 if self.syn is not None or not parts else parts[0][0]
        for at, (data, segment) in parts:
            if not found or found[-1].end != at - first:
                found.append(Piece(at - first))
            found[-1].append(data, segment)
        for piece in found:
            piece.data = bytes(piece.data)
        if found:
            found[0].is_beginning = self.syn is not None and found[0].start == 0
        return found


class Piece:
    """Bytes of a stream without a hole."""

    def __init__(self, start):
        self.start, self.data, self.is_beginning = start, bytearray(), False
        self.edges, self.segments = [], []

    @property
    def end(self):
        return self.start + len(self.data)

    def append(self, data, segment):
        self.data += data
        self.edges.append(len(self.data))
        self.segments.append(segment)

    def segment(self, place):
        """The one that brought the byte at this place of the piece."""
        return self.segments[bisect.bisect_right(self.edges, place)]


class Connection:
    def __init__(self, segment):
        self.client, self.server = segment.source, segment.target
        self.streams = {self.client: Stream(), self.server: Stream()}
        self.has_syn = False

    def add(self, segment):
        stream = self.streams[segment.source]
        if segment.flags & SYN and stream.syn is None:
            stream.begin(segment.sequence)
            if not self.has_syn and (segment.source == self.client) == bool(segment.flags & ACK):
                self.client, self.server = self.server, self.client
            self.has_syn = True
        stream.add(segment)

    def is_renewed(self, segment):
        """It begins another connection between the same two."""
        stream = self.streams[segment.source]
        first = stream.syn if stream.syn is not None else None if not stream.parts else -1
        return bool(segment.flags & SYN) and first is not None and first != segment.sequence

    def turn(self):
        self.client, self.server = self.server, self.client


def connections(path):
    """All TCP connections of a file, in the order of their first packets."""
    with open(path, "rb") as file:
        contents = file.read()
    if contents[:2] == b"\x1f\x8b":
        contents = gzip.decompress(contents)
    found, current = [], {}
    for segment in segments(contents):
        key = frozenset((segment.source, segment.target))
        connection = current.get(key)
        if connection is None or connection.is_renewed(segment):
            connection = current[key] = Connection(segment)
            found.append(connection)
        connection.add(segment)
    return found
