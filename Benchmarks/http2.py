#!/usr/bin/env python3
"""Writes captures of providers over HTTP/2, in clear and under TLS 1.3, for Scripts/bench http2.

usage: http2.py FOLDER REQUESTS

One connection for each of eight styles in which clients code header fields, with as many requests each; answers come in
the order of requests. In FOLDER afterwards: clear.pcap; tls.pcap and tls.keys; blocks.bin, the field blocks of all
requests: connection u32, length u32, block, in the byte order of the machine. Prints the requests in all.

Strings are coded by libnghttp2, the table of a connection is kept here, and TLS is that of Python's ssl.
"""

import ctypes
import pathlib
import random
import ssl
import struct
import subprocess
import sys
import time

NGHTTP2 = ctypes.CDLL("libnghttp2.so.14")
# Of the static table: name, or name and value, to index.
STATIC = {
    (":authority", ""): 1, (":method", "POST"): 3, (":path", ""): 4, (":scheme", "https"): 7, ("authorization", ""): 23,
    ("content-length", ""): 28, ("content-type", ""): 31, ("user-agent", ""): 58, ("accept-encoding", "gzip, deflate"): 16,
}
INDEX, WITHOUT, NEVER = 0x40, 0x00, 0x10
OPENED = int(time.time())


class Pair(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("value", ctypes.c_char_p), ("name_length", ctypes.c_size_t),
        ("value_length", ctypes.c_size_t), ("flags", ctypes.c_uint8),
    ]


def integer(value, bits, first):
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([first | value])
    out, value = bytearray([first | limit]), value - limit
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


class Strings:
    """String literals with Huffman's code where that is shorter, as libnghttp2 writes them."""

    def __init__(self):
        self.deflater = ctypes.c_void_p()
        if NGHTTP2.nghttp2_hd_deflate_new(ctypes.byref(self.deflater), ctypes.c_size_t(0)) != 0:
            sys.exit("http2.py: libnghttp2 cannot be used")
        self.first = True

    def __call__(self, text):
        data = text.encode()
        pair = Pair(b"\x01", data, 1, len(data), 1)
        out = ctypes.create_string_buffer(len(data) + 64)
        length = NGHTTP2.nghttp2_hd_deflate_hd(
            self.deflater, out, ctypes.c_size_t(len(out)), ctypes.byref(pair), ctypes.c_size_t(1))
        if length <= 0:
            sys.exit(f"http2.py: libnghttp2: {length}")
        block = out.raw[:length]
        # A change of the table's size, then a literal that is never indexed, with the name 01.
        start = block.index(b"\x10") + 1
        return block[start + 1 + (block[start] & 0x7f):]


class Encoder:
    """Codes the fields of one connection; `forms` has the form of each field by name, others are indexed."""

    def __init__(self, strings, forms, huffman=True, default=INDEX):
        self.strings, self.forms, self.huffman, self.default = strings, forms, huffman, default
        self.table, self.size = [], 0

    def string(self, text):
        return self.strings(text) if self.huffman else integer(len(text), 7, 0) + text.encode()

    def field(self, name, value):
        form = self.forms.get(name, self.default)
        known = STATIC.get((name, value))
        if known is None and form == INDEX and (name, value) in self.table:
            known = 62 + self.table.index((name, value))
        if known is not None:
            return integer(known, 7, 0x80)
        index = STATIC.get((name, ""), 0)
        if not index:
            index = next((62 + place for place, (other, _) in enumerate(self.table) if other == name), 0)
        out = integer(index, 6 if form == INDEX else 4, form) + (b"" if index else self.string(name)) + self.string(value)
        if form == INDEX:
            self.table.insert(0, (name, value))
            self.size += len(name) + len(value) + 32
            while self.size > 4096:
                old = self.table.pop()
                self.size -= len(old[0]) + len(old[1]) + 32
        return out

    def block(self, fields):
        return b"".join(self.field(name, value) for name, value in fields)


# Documentation/provider-api.md; which client codes what is what recordings of them show.
STYLES = [
    ("python hpack", dict(authorization=NEVER), True, INDEX, True),
    ("go", {}, True, INDEX, False),
    ("ruby", {}, True, INDEX, True),
    ("netty", {}, False, INDEX, True),
    ("nghttp2", {":path": WITHOUT, "authorization": NEVER}, True, INDEX, True),
    ("java", {}, True, WITHOUT, False),
    ("apple's advice", {":path": WITHOUT, "authorization": WITHOUT}, True, INDEX, True),
    ("plain literals", {}, False, WITHOUT, True),
]


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def base64url(data):
    import base64
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider:
    """What both ends of a connection say, request by request."""

    def __init__(self, number, strings, choice):
        _, forms, huffman, default, self.has_id = STYLES[number % len(STYLES)]
        self.encoder = Encoder(strings, forms, huffman, default)
        self.choice, self.stream = choice, -1
        header = base64url(b'{"alg":"ES256","kid":"ABC123DEFG"}')
        claims = base64url(b'{"iss":"DEF123GHIJ","iat":%d}' % OPENED)
        self.token = f"bearer {header}.{claims}.{base64url(choice.randbytes(64))}"
        self.greeting = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
        self.welcome = frame(4, 0, 0, struct.pack(">HI", 3, 1000)) + frame(4, 1, 0, b"")

    def request(self):
        """The block, the client's bytes, and the server's answer."""
        self.stream += 2
        fields = [
            (":method", "POST"), (":scheme", "https"), (":path", "/3/device/" + self.choice.randbytes(32).hex()),
            (":authority", "api.push.apple.com"), ("authorization", self.token), ("apns-topic", "com.example.tide"),
            ("apns-push-type", "alert"), ("apns-priority", "10"),
        ]
        if self.has_id:
            value = self.choice.randbytes(16).hex()
            fields.append(("apns-id", f"{value[:8]}-{value[8:12]}-{value[12:16]}-{value[16:20]}-{value[20:]}"))
        body = f'{{"aps":{{"alert":{{"title":"Tide","body":"High water {self.stream}"}},"badge":{self.stream % 30}}}}}'
        block = self.encoder.block(fields)
        sent = frame(1, 4, self.stream, block) + frame(0, 1, self.stream, body.encode())
        return block, sent, frame(1, 5, self.stream, b"\x88")


class Capture:
    """A pcap of TCP connections on port 443, with Ethernet and IPv4."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.file.write(struct.pack("=IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 1 << 18, 1))
        self.now = OPENED * 10**9
        self.sequences = {}

    def packet(self, number, is_server, flags, data=b""):
        self.now += 1000
        place = self.sequences.setdefault(number, [1000 + 7919 * number, 5000 + 104729 * number])
        ports = (443, 20000 + number) if is_server else (20000 + number, 443)
        tcp = struct.pack(
            ">HHIIBBHHH", *ports, place[is_server] & 0xffffffff, place[not is_server] & 0xffffffff, 0x50, flags, 65535, 0, 0)
        ends = (b"\x0a\x00\x00\x02", b"\x0a\x00\x00\x01") if is_server else (b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02")
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(data), 0, 0x4000, 64, 6, 0, *ends)
        packet = bytes(12) + b"\x08\x00" + ip + tcp + data
        self.file.write(struct.pack("=IIII", self.now // 10**9, self.now % 10**9, len(packet), len(packet)) + packet)
        place[is_server] += len(data) + (flags & 3 != 0)

    def open(self, number):
        for is_server, flags in [(0, 2), (1, 0x12), (0, 0x10)]:
            self.packet(number, is_server, flags)

    def send(self, number, is_server, data):
        for start in range(0, len(data), 1448):
            self.packet(number, is_server, 0x18, data[start:start + 1448])

    def end(self, number):
        for is_server in (0, 1):
            self.packet(number, is_server, 0x11)

    def close(self):
        self.file.close()


class Sealed:
    """Both ends of a TLS 1.3 connection in memory."""

    def __init__(self, folder):
        self.buffers = [(ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in range(2)]
        client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        for context in (client, server):
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.set_alpn_protocols(["h2"])
        client.keylog_filename = str(folder / "tls.keys")
        server.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
        server.num_tickets = 0
        self.ends = [client.wrap_bio(*self.buffers[0]), server.wrap_bio(*self.buffers[1], server_side=True)]

    def handshake(self, capture, number):
        waiting = [0, 1]
        while waiting:
            for end in list(waiting):
                try:
                    self.ends[end].do_handshake()
                    waiting.remove(end)
                except ssl.SSLWantReadError:
                    pass
                data = self.buffers[end][1].read()
                capture.send(number, end, data)
                self.buffers[1 - end][0].write(data)

    def send(self, capture, number, end, data):
        self.ends[end].write(data)
        capture.send(number, end, self.buffers[end][1].read())


def main():
    folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tls.keys").unlink(missing_ok=True)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=api.push.apple.com", "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"],
        check=True, capture_output=True)
    clear, tls = Capture(folder / "clear.pcap"), Capture(folder / "tls.pcap")
    strings, choice = Strings(), random.Random(1)
    providers = [Provider(number, strings, choice) for number in range(len(STYLES))]
    sealed = []
    for number, provider in enumerate(providers):
        clear.open(number)
        tls.open(number)
        sealed.append(Sealed(folder))
        sealed[number].handshake(tls, number)
        for end, data in ((0, provider.greeting), (1, provider.welcome), (0, frame(4, 1, 0, b""))):
            clear.send(number, end, data)
            sealed[number].send(tls, number, end, data)
    with open(folder / "blocks.bin", "wb") as blocks:
        for done in range(0, count, 8):
            for number, provider in enumerate(providers):
                made = [provider.request() for _ in range(min(8, count - done))]
                for block, _, _ in made:
                    blocks.write(struct.pack("=II", number, len(block)) + block)
                for end, data in enumerate((b"".join(each[1] for each in made), b"".join(each[2] for each in made))):
                    clear.send(number, end, data)
                    sealed[number].send(tls, number, end, data)
    for number in range(len(providers)):
        clear.end(number)
        tls.end(number)
    clear.close()
    tls.close()
    print(count * len(providers))


main()
