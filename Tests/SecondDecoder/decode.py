#!/usr/bin/env python3
"""A second decoder of the binary provider protocol, to hold the first one against.

    Tests/SecondDecoder/decode.py [--port N=gateway|feedback]… CAPTURE

It prints a JSON object for every TCP connection of a capture: frames, error responses, feedback tuples, and what became
of each notification. It is written from the protocol's description alone, shares nothing with apnscope, and is slow and
short where that one is fast and long. It does not decrypt.
"""

import json
import socket
import struct
import sys

sys.dont_write_bytecode = True
import capture  # noqa: E402

SERVICES = {2195: "gateway", 2196: "feedback"}
# Five items of the greatest length that an item can have: a frame that claims more holds something else.
LONGEST_FRAME = 5 * (3 + 0xFFFF)
LOWEST_PAYLOAD_LIMIT = 256
USUAL_TOKEN = 32
# What items are, and the length of those that are numbers.
ITEMS = {1: ("token", None), 2: ("payload", None), 3: ("identifier", 4), 4: ("expiration", 4), 5: ("priority", 1)}
NO_ERROR, SHUTDOWN, UNPARSABLE = 0, 10, 128


# Frames


class Frame:
    """What stands between two frame boundaries. An item that was absent is None."""

    def __init__(self, command):
        self.command = command
        self.identifier = self.expiration = self.priority = self.token = self.payload = None
        self.others, self.misfit = [], False
        self.fate = "unknown"

    def take(self, kind, data):
        name, length = ITEMS.get(kind, (None, None))
        if name is None or getattr(self, name) is not None or length not in (None, len(data)):
            self.others.append([kind, data.hex()])
        else:
            setattr(self, name, data if length is None else int.from_bytes(data, "big"))

    def shows(self, status):
        """Whether the fault that this status names can be seen in the frame."""
        if self.misfit:
            return status == UNPARSABLE
        token, payload = len(self.token or b""), len(self.payload or b"")
        return {
            2: token == 0,
            4: payload == 0,
            5: token != USUAL_TOKEN,
            # Gateways of some years took no longer one.
            7: payload > LOWEST_PAYLOAD_LIMIT,
        }.get(status, False)

    @property
    def is_likely(self):
        """As nearly all are. Among other bytes such a frame is looked for."""
        return not self.misfit and len(self.token or b"") == USUAL_TOKEN and (self.payload or b"").startswith(b"{")


class More(Exception):
    """The stretch ends before the frame does."""


def frame(data, at):
    """The frame that begins here, and its end. None: no frame begins so."""
    end = at

    def take(count):
        nonlocal end
        if end + count > len(data):
            raise More
        end += count
        return data[end - count : end]

    def number(count):
        return int.from_bytes(take(count), "big")

    command = number(1)
    found = Frame(command)
    if command in (0, 1):
        if command == 1:
            found.identifier, found.expiration = number(4), number(4)
        found.token = take(number(2))
        found.payload = take(number(2))
    elif command == 2:
        length = number(4)
        if length > LONGEST_FRAME:
            return None
        items, place = take(length), 0
        while place < length:
            # An item that is longer than what is left, or a rest that is no item.
            if length - place < 3 or place + 3 + struct.unpack_from(">H", items, place + 1)[0] > length:
                found.misfit = True
                break
            kind, size = struct.unpack_from(">BH", items, place)
            found.take(kind, items[place + 3 : place + 3 + size])
            place += 3 + size
    else:
        return None
    return found, end


def next_likely(data, at):
    """The next place where something begins that is a frame without doubt, or the end."""
    while at < len(data):
        if data[at] <= 2:
            try:
                found = frame(data, at)
            except More:
                found = None
            if found and found[0].is_likely:
                return at
        at += 1
    return at


def frames(pieces):
    """All of a stream, and stretches (offset, length) of it that are none."""
    found, skipped = [], []
    for piece in pieces:
        data, at = piece.data, 0
        if not piece.is_beginning:
            at = next_likely(data, 0)
            skipped += [(piece.start, at)] if at else []
        while at < len(data):
            try:
                read = frame(data, at)
            except More:
                skipped.append((piece.start + at, len(data) - at))
                break
            if read:
                each, end = read
                place(each, piece, at, end)
                found.append(each)
            else:
                end = next_likely(data, at + 1)
                skipped.append((piece.start + at, end - at))
            at = end
    return found, skipped


def place(thing, piece, at, end):
    thing.bytes = piece.data[at:end]
    segment = piece.segment(end - 1)
    thing.offset, thing.length = piece.start + at, end - at
    thing.packet, thing.time = segment.packet, segment.time


# What the gateway sends


class Response:
    def __init__(self, command, status, identifier):
        self.command, self.status, self.identifier = command, status, identifier
        self.notification, self.ambiguous, self.accepted = None, False, None


class Tuple:
    def __init__(self, timestamp, token):
        self.timestamp, self.token = timestamp, token


def responses(pieces):
    found = []
    for piece in pieces:
        # Behind a hole nobody knows where one begins.
        if not piece.is_beginning and piece.start:
            continue
        for at in range(0, len(piece.data) - 5, 6):
            each = Response(*struct.unpack_from(">BBI", piece.data, at))
            if each.command != 8:
                break
            place(each, piece, at, at + 6)
            found.append(each)
    return found


def tuples(pieces):
    found = []
    for piece in pieces:
        if not piece.is_beginning:
            continue
        at = 0
        while at + 6 <= len(piece.data):
            timestamp, length = struct.unpack_from(">IH", piece.data, at)
            end = at + 6 + length
            if end > len(piece.data):
                break
            each = Tuple(timestamp, piece.data[at + 6 : end])
            place(each, piece, at, end)
            found.append(each)
            at = end
    return found


# Fates


def named(response, frames):
    """The index of the notification that a response means, and whether its identifier 0 may mean one or none."""
    before = [index for index, each in enumerate(frames) if each.packet < response.packet]
    # Identifiers repeat: the last that was written by then.
    same = next((index for index in reversed(before) if frames[index].identifier == response.identifier), None)
    # Who says "no error" has read it.
    if response.identifier or response.status == NO_ERROR:
        return same, False
    # 0 is an identifier like another, or stands for one that the gateway did not read. What no gateway takes is meant
    # before what may be right, and the first of it, because nothing behind it is read.
    certain = unread(response.status, frames, before)
    if certain and same is not None and frames[same].shows(response.status):
        certain.append(same)
    if certain:
        return min(certain), False
    # A wrong topic is the connection's, so of the first notification.
    is_topic = same == 0 and response.status in (3, 6)
    if same is None or is_topic or frames[same].shows(response.status) or len(before) == 1:
        return same, False
    return None, True


def unread(status, frames, before):
    """The frames with the fault of a status that a gateway may have found before it read an identifier."""
    found = []
    misfit = next((index for index in before if frames[index].misfit), None)
    # Servers answer such items with 128, or with what they then miss, if no other without an identifier came before.
    usual = all(frames[other].misfit or len(frames[other].token or b"") in (0, USUAL_TOKEN) for other in before)
    if misfit is not None and (
        status == UNPARSABLE
        or (status in (1, 2, 4, 7) or status == 5 and usual)
        and are_numbered(frames[:misfit])
    ):
        found.append(misfit)
    empty = next((index for index in before if frames[index].token == b"" and not frames[index].misfit), None)
    if empty is not None and (status == 2 or status == 5 and is_only_odd(frames, empty, before)):
        found.append(empty)
    if status == 4:
        found += [index for index in before if frames[index].shows(4)][:1]
    return found


def are_numbered(frames):
    return all(frame.identifier is not None for frame in frames)


def is_only_odd(frames, index, before):
    """No other token can be meant: each other has the usual length, and each frame until then an identifier."""
    usual = all(frames[other].misfit or len(frames[other].token or b"") in (0, USUAL_TOKEN) for other in before)
    return usual and are_numbered(frames[:index])


def settle(frames, responses):
    """Gives each notification its fate. The first that is named ends the connection; a gateway that goes on reading and
    names another one has accepted those between."""
    first = 0
    for response in responses:
        index, response.ambiguous = named(response, frames)
        response.notification = index
        if index is None:
            continue
        # Of a status that is not in the table nothing else is known.
        is_rejection = response.status not in (NO_ERROR, SHUTDOWN)
        for each in frames[first : index + 1]:
            each.fate = "accepted"
        if is_rejection:
            frames[index].fate = "rejected"
        first = max(first, index + 1)
        # "No error" says nothing of what comes behind it.
        for each in frames[first:] if response.status != NO_ERROR else ():
            each.fate = "discarded"
        response.accepted = sum(each.fate == "accepted" for each in frames[: index + 1])


# Connections


def service(connection, ports):
    """A port that is known tells who is the server, where no SYN does."""
    for end in (connection.server, connection.client):
        if end[1] in ports:
            if end == connection.client and not connection.has_syn:
                connection.turn()
            return ports[end[1]]
    return None


def endpoint(end):
    address, port = end
    if len(address) == 4:
        return "%s:%d" % (socket.inet_ntop(socket.AF_INET, address), port)
    return "[%s]:%d" % (socket.inet_ntop(socket.AF_INET6, address), port)


def described(number, connection, ports):
    kind = service(connection, ports)
    sent, answered = (connection.streams[end].pieces() for end in (connection.client, connection.server))
    head = bytes(sent[0].data[:2]) if sent else b""
    is_encrypted = len(head) == 2 and 0x14 <= head[0] <= 0x17 and head[1] == 3
    record = {
        "connection": number, "client": endpoint(connection.client), "server": endpoint(connection.server),
        "service": "encrypted" if is_encrypted else kind,
    }  # fmt: skip
    if record["service"] in ("encrypted", None):
        return record
    if kind == "feedback":
        return record | {"tuples": [shown(each, "timestamp", "token") for each in tuples(answered)]}
    found, skipped = frames(sent)
    answers = responses(answered)
    settle(found, answers)
    names = ("command", "identifier", "expiration", "priority", "token", "payload", "others", "misfit", "fate", "bytes")
    answered_names = ("command", "status", "identifier", "notification", "ambiguous", "accepted")
    return record | {
        "frames": [shown(each, *names) for each in found],
        "skipped": skipped,
        "responses": [shown(each, *answered_names) for each in answers],
    }


def shown(thing, *names):
    record = {}
    for name in ("offset", "length", "packet", "time", *names):
        value = getattr(thing, name)
        if value is not None:
            record[name] = value.hex() if isinstance(value, bytes) else value
    return record


def decoded(path, ports=SERVICES):
    for number, connection in enumerate(capture.connections(path), 1):
        yield described(number, connection, ports)


def port(text):
    number, kind = text.split("=")
    return int(number), kind


def main(arguments):
    ports, paths = dict(SERVICES), []
    while arguments:
        argument = arguments.pop(0)
        if argument == "--port" and arguments:
            number, kind = port(arguments.pop(0))
            ports[number] = kind
        else:
            paths.append(argument)
    if len(paths) != 1:
        print("usage:", __doc__.split("\n\n")[1].strip(), file=sys.stderr)
        return 64
    for record in decoded(paths[0], ports):
        print(json.dumps(record))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
