"""A test of a provider in Python: pushjack sends to a simulated gateway, and the gateway says what arrived.

    python -m unittest test_provider        # needs apnscope on the PATH, and pushjack from PyPI
"""

import json
import os
import pathlib
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.request

if not hasattr(ssl, "wrap_socket"):  # pushjack is older than Python 3.12, which took it away.
    def wrap_socket(sock, certfile=None, do_handshake_on_connect=True):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(certfile)
        return context.wrap_socket(sock, do_handshake_on_connect=do_handshake_on_connect)

    ssl.wrap_socket = wrap_socket

from pushjack import APNSClient

APNSCOPE = os.environ.get("apnscope", "apnscope")


class ProviderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(cls.folder.name)
        subprocess.run([APNSCOPE, "identity", "--directory", path / "ids", "--topic", "com.example.app"],
                       stdout=subprocess.DEVNULL, check=True)
        cls.simulator = subprocess.Popen([
            APNSCOPE, "simulate", "--identity", path / "ids", "--gateway", "127.0.0.1:0", "--no-feedback",
            "--control", "127.0.0.1:0", "--ready-file", path / "ready"], stdout=subprocess.DEVNULL)
        while not (path / "ready").exists():  # It appears when the gateway accepts connections.
            assert cls.simulator.poll() is None, "the simulator does not start"
            time.sleep(0.01)
        places = dict(line.split() for line in (path / "ready").read_text().splitlines())
        cls.control = places["control"]
        host, port = places["gateway"].rsplit(":", 1)
        cls.provider = type("Provider", (APNSClient,), {"host": host, "port": int(port)})(
            str(path / "ids" / "com.example.app.combined.pem"), default_error_timeout=2)

    @classmethod
    def tearDownClass(cls):
        cls.provider.close()
        cls.simulator.terminate()
        cls.simulator.wait()
        cls.folder.cleanup()

    def setUp(self):
        self.ask("POST", "/reset")

    def ask(self, method, path, body=None):
        request = urllib.request.Request(self.control + path, method=method)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request) as answer:  # Raises for problems: 408, it did not come in time.
            return json.loads(answer.read() or "null")

    def test_alert(self):
        self.provider.send(["aa" * 32], "Grüße", badge=3)
        arrived = self.ask("GET", "/notifications/wait?count=1&within_s=10")["notifications"]
        self.assertEqual(arrived[0]["token"], "aa" * 32)
        self.assertEqual(arrived[0]["payload"], {"aps": {"alert": "Grüße", "badge": 3}})

    def test_rejected_token(self):
        self.ask("POST", "/faults/rejections", {"token": "bb" * 32, "status": 8, "times": 1})
        report = self.provider.send(["aa" * 32, "bb" * 32, "cc" * 32], "Hello")
        self.assertEqual(list(report.token_errors), ["bb" * 32])
        self.ask("GET", f"/notifications/wait?token={'cc' * 32}&fate=accepted&within_s=10")
        verdict = self.ask("GET", "/verdict")
        self.assertEqual(verdict["stories"]["accepted_twice"], 0)
        self.assertEqual(verdict["not_sent_again"], 0)


if __name__ == "__main__":
    unittest.main()
