#!/usr/bin/env python3
"""Makes a capture of 200 conversations by chance, with every fault that two decoders may judge differently.

    Tests/SecondDecoder/conversations.py SEED CAPTURE

The same seed makes the same capture.
"""

import importlib.machinery
import importlib.util
import pathlib
import random
import sys

sys.dont_write_bytecode = True
PATH = pathlib.Path(__file__).resolve().parents[2] / "Traces" / "make"
LOADER = importlib.machinery.SourceFileLoader("make", str(PATH))
make = importlib.util.module_from_spec(importlib.util.spec_from_loader("make", LOADER))
LOADER.exec_module(make)

CONVERSATIONS = 200
STATUSES = [0, 1, 2, 2, 3, 4, 5, 7, 8, 8, 10, 10, 42, 128, 128, 255]
# The ends of frames that are longer than what they hold, or shorter.
MISFITS = [b"\x05\x00\x04\x0a", b"\x05", b"\x05\x00", b"\x01\x00\x20ab"]


def mostly(chance, share, usual, *others):
    return usual if chance.random() < share else chance.choice(others)


def frame(chance, identifier):
    odd = [b"", b"short", make.token(1) * 2, make.token(1) + b"zz"]
    token = mostly(chance, 0.85, make.token(chance.randrange(8)), *odd)
    long = [make.alert("x" * 2100), make.alert("x" * 4100)]
    payload = mostly(chance, 0.9, make.alert("x" * chance.randrange(20)), b"", b"no JSON", *long)
    command = chance.choices((0, 1, 2), (1, 2, 7))[0]
    if command == 0:
        # Neither token nor payload would be five zeros, which nobody sends.
        return make.simple(token, payload or b"{}")
    if command == 1:
        return make.enhanced(identifier, chance.choice([0, 86400]), token, payload)
    items = [make.item(1, token), make.item(2, payload)]
    seldom = [
        (0.8, make.item(3, make.number(identifier))),
        (0.3, make.item(4, make.number(7))),
        (0.3, make.item(5, chance.choice([b"\x0a", b"\x05", b"\x00\x05"]))),
        (0.05, make.item(9, b"zz")),
        (0.05, make.item(1, make.token(2))),
        (0.05, make.item(3, make.number(4))),
    ]
    items += [item for share, item in seldom if chance.random() < share]
    chance.shuffle(items)
    if chance.random() < 0.12:
        items.insert(chance.randrange(len(items) + 1), chance.choice(MISFITS))
    return make.framed(*items)


def conversation(chance, packets, number):
    connection = make.Conversation(packets, client_port=10000 + number, start=number * 100).open()
    count = chance.choice([0, 1, 1, 2, 3, 5, 8, 20])
    first = chance.choice([0, 1, None])
    identifiers = [chance.randrange(6) if first is None else first + index for index in range(count)]
    answers = sorted(chance.randrange(count + 1) for _ in range(chance.choice([0, 1, 1, 1, 1, 1, 2, 3])))
    for index in range(count + 1):
        for _ in range(answers.count(index)):
            named = chance.choice([0, 0, 99, *identifiers[:index], *identifiers[:index]])
            connection.server(make.response(chance.choice(STATUSES), named))
        if index < count:
            data = frame(chance, identifiers[index])
            cut = chance.randrange(1, len(data)) if chance.random() < 0.2 else len(data)
            connection.client(data[:cut])
            if cut < len(data):
                connection.client(data[cut:])
    connection.close(chance.random() < 0.5)


def main(arguments):
    if len(arguments) != 2:
        print("usage:", __doc__.split("\n\n")[1].strip(), file=sys.stderr)
        return 64
    chance, packets = random.Random(int(arguments[0])), []
    for number in range(CONVERSATIONS):
        conversation(chance, packets, number)
    pathlib.Path(arguments[1]).write_bytes(make.pcap(packets))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
