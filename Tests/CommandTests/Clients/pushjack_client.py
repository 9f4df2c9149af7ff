"""pushjack as it comes from PyPI, aimed at a simulator; tells what it reports as JSON.

  pushjack_client.py send     --gateway N --feedback N --certificate FILE [--tokens N] [--batch N] [--message N]
  pushjack_client.py feedback --gateway N --feedback N --certificate FILE

`written` is not pushjack's word: it counts what goes through its connection's `write`.
"""

import argparse
import json
import socket
import ssl
import struct
import warnings

warnings.simplefilter("ignore")

if not hasattr(ssl, "wrap_socket"):
    # Python 3.12 took it away; this is what it did.
    def wrap_socket(sock, certfile=None, do_handshake_on_connect=True):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(certfile)
        return context.wrap_socket(sock, do_handshake_on_connect=do_handshake_on_connect)

    ssl.wrap_socket = wrap_socket

from pushjack import APNSClient
from pushjack.apns import APNSConnection

parser = argparse.ArgumentParser()
parser.add_argument("job", choices=["send", "feedback"])
parser.add_argument("--gateway", type=int, required=True)
parser.add_argument("--feedback", type=int, required=True)
parser.add_argument("--certificate", required=True)
parser.add_argument("--tokens", type=int, default=1000)
parser.add_argument("--batch", type=int, default=100)
parser.add_argument("--error-timeout", type=int, default=2, help="seconds that it waits for errors at the end")
parser.add_argument("--message", type=int, default=5, help="length of the message")
options = parser.parse_args()

written = 0


def count_frames(write):
    def counted(self, data, timeout=10):
        global written
        result = write(self, data, timeout)
        offset = 0
        while offset < len(data):
            offset += 5 + struct.unpack_from(">I", data, offset + 1)[0]
            written += 1
        return result
    return counted


APNSConnection.write = count_frames(APNSConnection.write)


class Client(APNSClient):
    host = feedback_host = "127.0.0.1"
    port = options.gateway
    feedback_port = options.feedback


client = Client(options.certificate, default_error_timeout=options.error_timeout, default_batch_size=options.batch)
if options.job == "send":
    response = client.send(["%064x" % number for number in range(1, options.tokens + 1)], "x" * options.message)
    client.close()
    report = {
        "successes": len(response.successes), "failures": len(response.failures), "written": written,
        "errors": [[error.code, error.identifier] for error in response.errors],
    }
else:
    try:
        report = {"tokens": [expired.token for expired in client.get_expired_tokens()], "problem": None}
    except socket.timeout:
        report = {"tokens": [], "problem": "timeout"}
print(json.dumps(report))
