"""A provider without TLS that sends a campaign and treats an error response as providers of several kinds do.

  judged_provider.py KIND --port N --count N --bad N

It writes all notifications, waits for the end of the connection, and sends on a new one what its kind sends again:

  perfect    everything after the rejected notification
  cached     as java-apns does: what is still in its cache of the last 8 that it wrote, and not the rest
  early      from three before the rejected one, and not the first three after it: three twice, three never
  stubborn   the rejected one as well, once, then everything after it
  forgetful  nothing
  restarted  everything from the beginning, the rejected one left out

The usual 20 notifications are few enough for one read of the gateway: it has them all before its error response leaves,
so what was discarded has arrived before it is sent again.
"""

import argparse
import json
import socket
import struct

parser = argparse.ArgumentParser()
parser.add_argument(
    "kind", choices=["perfect", "cached", "early", "stubborn", "forgetful", "restarted"]
)
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--count", type=int, default=20)
parser.add_argument("--bad", type=int, default=5)
options = parser.parse_args()

CACHE, NEAR = 8, 3


def frame(number):
    token = (b"\xbb" if number == options.bad else b"\xaa") + struct.pack(">I", number) * 8
    token = token[:32]
    payload = json.dumps({"aps": {"alert": f"number {number}"}}).encode()
    items = b"".join(
        struct.pack(">BH", kind, len(data)) + data
        for kind, data in [(1, token), (2, payload), (3, struct.pack(">I", number)), (5, b"\x0a")]
    )
    return struct.pack(">BI", 2, len(items)) + items


def send(numbers):
    """Writes notifications on a connection; returns the number that an error response names."""
    with socket.create_connection(("127.0.0.1", options.port), timeout=60) as connection:
        connection.sendall(b"".join(frame(number) for number in numbers))
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(6):
            answer += piece
    return struct.unpack(">BBI", answer)[2] if answer else None


rest, hopes = list(range(options.count)), 1
while rest:
    named = send(rest)
    if named is None:
        break
    after = rest[rest.index(named) + 1 :]
    if options.kind == "perfect":
        rest = after
    elif options.kind == "cached":
        rest = [number for number in rest[-CACHE:] if number != named]
    elif options.kind == "early":
        rest = rest[rest.index(named) - NEAR : rest.index(named)] + after[NEAR:]
    elif options.kind == "stubborn":
        rest = [named] * hopes + after
        hopes = 0
    elif options.kind == "restarted":
        rest = [number for number in range(options.count) if number != named]
    else:
        rest = []
