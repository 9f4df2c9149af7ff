"""A provider on Python's ssl that believes only what was proven to it, and tells what it believes as JSON.

  provider.py send     --port N --identity DIR [--tokens N] [--first N] [--chunk N] [--version 1.2] [--kill PID]
  provider.py feedback --port N --identity DIR [--stop-after BYTES] [--end close|unwrap] [--kill PID] [--early]
                       [--receive-buffer BYTES]

`send` writes one notification for each token, `--chunk` of them at a time, and ends every connection with a frame that
is known to be bad: its error response proves that what came before it was accepted. What a response says was discarded
is sent again on a new connection. With --kill, that process gets SIGKILL at the moment the proof has arrived.

`feedback` reads the list, to its end unless --stop-after says where to stop. With --kill, the process gets SIGKILL at
the moment that was read.
"""

import argparse
import json
import os
import select
import signal
import socket
import ssl
import struct

MARKER = 0xFFFFFFFF


def connect(options):
    context = ssl.create_default_context(cafile=f"{options.identity}/ca.pem")
    context.load_cert_chain(f"{options.identity}/{options.topic}.pem", f"{options.identity}/{options.topic}.key")
    if options.version:
        version = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[options.version]
        context.minimum_version = context.maximum_version = version
    plain = socket.socket()
    plain.settimeout(150)
    if options.receive_buffer:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.receive_buffer)
    plain.connect(("127.0.0.1", options.port))
    return context.wrap_socket(plain, server_hostname="localhost")


def frame(number, token):
    payload = b'{"aps":{"alert":"%d"}}' % number
    items = b""
    for kind, data in [
        (1, token), (2, payload), (3, struct.pack(">I", number)), (4, struct.pack(">I", 0x7FFFFFFF)), (5, b"\x0a"),
    ]:
        items += struct.pack(">BH", kind, len(data)) + data
    return struct.pack(">BI", 2, len(items)) + items


def token(number):
    return struct.pack(">I", number) * 8


def is_readable(connection, seconds):
    return connection.pending() > 0 or bool(select.select([connection], [], [], seconds)[0])


def read_response(connection):
    """The error response, and the end of the connection behind it."""
    data = b""
    while True:
        piece = connection.recv(64)
        if not piece:
            return data
        data += piece


def send(options):
    numbers = list(range(options.first, options.first + options.tokens))
    said = {"accepted": [], "rejected": {}, "shutdowns": [], "written": 0, "markers": 0, "connections": 0}
    start = 0
    while start is not None:
        connection = connect(options)
        said["connections"] += 1
        position = start
        while position < len(numbers) and not is_readable(connection, 0):
            chunk = numbers[position:position + options.chunk]
            connection.sendall(b"".join(frame(number, token(number)) for number in chunk))
            said["written"] += len(chunk)
            position += len(chunk)
        if position == len(numbers) and not is_readable(connection, 0):
            connection.sendall(frame(MARKER, b""))
            said["markers"] += 1
        response = read_response(connection)
        if options.kill:
            os.kill(options.kill, signal.SIGKILL)
        connection.close()
        if len(response) != 6 or response[0] != 8:
            raise SystemExit(f"no error response, but {response!r}")
        status, identifier = struct.unpack(">BI", response[1:])
        if identifier == MARKER:
            said["accepted"] += numbers[start:]
            start = None
        else:
            named = numbers.index(identifier) if identifier else start - 1
            if status == 10:
                said["shutdowns"].append(identifier)
                said["accepted"] += numbers[start:named + 1]
            else:
                said["rejected"][identifier] = status
                said["accepted"] += numbers[start:named]
            start = named + 1
    return said


def feedback(options):
    connection = connect(options)
    data = b""
    if not options.early:
        while options.stop_after is None or len(data) < options.stop_after:
            most = 65536 if options.stop_after is None else min(65536, options.stop_after - len(data))
            piece = connection.recv(most)
            if not piece:
                break
            data += piece
    if options.kill:
        os.kill(options.kill, signal.SIGKILL)
    if options.end == "unwrap":
        try:
            connection.unwrap()
        except (ssl.SSLError, OSError):
            pass  # It finds data where it wants the other side's close_notify.
    connection.close()
    tokens = []
    offset = 0
    while offset + 6 <= len(data):
        _, length = struct.unpack_from(">IH", data, offset)
        tokens.append(data[offset + 6:offset + 6 + length].hex())
        offset += 6 + length
    return {"tokens": tokens, "bytes": len(data), "isWhole": offset == len(data)}


parser = argparse.ArgumentParser()
parser.add_argument("job", choices=["send", "feedback"])
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--identity", required=True)
parser.add_argument("--topic", default="com.example.app")
parser.add_argument("--tokens", type=int, default=1000)
parser.add_argument("--first", type=int, default=1)
parser.add_argument("--chunk", type=int, default=50)
parser.add_argument("--version")
parser.add_argument("--kill", type=int)
parser.add_argument("--stop-after", type=int)
parser.add_argument("--receive-buffer", type=int)
parser.add_argument("--end", choices=["close", "unwrap"], default="close")
parser.add_argument("--early", action="store_true")
options = parser.parse_args()
print(json.dumps({"send": send, "feedback": feedback}[options.job](options)))
