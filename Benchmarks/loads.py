"""Starts loads against simulated gateways, with a capture between them, and stops either of them for a while."""

import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

# The port of the discard service, at which nobody listens.
DISCARD = 9
LAST = b"the last packet of this capture"


class Failure(Exception):
    """A run could not be made, so it says nothing."""


def ended(process, seconds, name):
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise Failure(f"{name} did not end within {seconds} s") from None


class Load:
    """One run. What it leaves is in its folder: result.json, load.txt, ledger.json, capture.pcap."""

    def __init__(self, apnscope, folder):
        self.apnscope, self.folder = str(apnscope), pathlib.Path(folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.processes = []
        self.status = None
        # Seconds of the process that was stopped.
        self.stopped = 0.0

    def start(self, name, *command):
        with open(self.folder / f"{name}.txt", "wb") as out:
            process = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        self.processes.append(process)
        return process

    def wait_for(self, name, pattern, process):
        """What the first group of the pattern matches in the output of a process."""
        for _ in range(400):
            text = (self.folder / f"{name}.txt").read_text(errors="replace")
            if found := re.search(pattern, text, re.MULTILINE):
                return found[1]
            if process.poll() is not None:
                break
            time.sleep(0.05)
        raise Failure(f"{name} did not start: {text.strip()[-300:]}")

    def run(self, simulate, load, stop=None, captures=True):
        """Makes it. `stop` is who is stopped ("load" or "gateway"), how many seconds after the load was started, and for how
        long; None: until the load has ended."""
        try:
            gateway = self.start(
                "gateway", self.apnscope, "simulate", "--plain", "--no-feedback", "--gateway", "127.0.0.1:0", "--ledger",
                "ledger.json", *simulate)  # fmt: skip
            address = self.wait_for("gateway", r"^gateway (\S+)$", gateway)
            tcpdump = self.capture(address.rpartition(":")[2]) if captures else None
            generator = self.start(
                "load", self.apnscope, "load", "--plain", "--gateway", address, "--output", "result.json", *load)
            if stop:
                self.stop({"load": generator, "gateway": gateway}[stop[0]], generator, *stop[1:])
            self.status = ended(generator, 180, "load")
            if tcpdump:
                self.end_capture(tcpdump)
            gateway.terminate()
            ended(gateway, 20, "simulate")
            if not (self.folder / "result.json").exists():
                text = (self.folder / "load.txt").read_text(errors="replace")
                raise Failure(f"load has left no result: {text.strip()[-300:]}")
        finally:
            for process in self.processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        return self

    def capture(self, port):
        # It is root's in a namespace of its own, and may not become somebody else.
        process = self.start(
            "tcpdump", "tcpdump", "-i", "lo", "-s", "0", "-B", "65536", "-Z", "root", "--time-stamp-precision=nano", "-w",
            "capture.pcap", f"tcp port {port} or udp port {DISCARD}")  # fmt: skip
        self.wait_for("tcpdump", r"(listening) on", process)
        return process

    def end_capture(self, process):
        # When a datagram is on file that was sent last, so is everything before it.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(LAST, ("127.0.0.1", DISCARD))
        for _ in range(200):
            time.sleep(0.1)
            process.send_signal(signal.SIGUSR2)  # It writes to the file what it has.
            with open(self.folder / "capture.pcap", "rb") as file:
                file.seek(-min(65_536, file.seek(0, 2)), 2)
                if LAST in file.read():
                    break
        else:
            raise Failure("tcpdump does not come to the end of the capture")
        process.send_signal(signal.SIGINT)
        ended(process, 20, "tcpdump")
        text = (self.folder / "tcpdump.txt").read_text(errors="replace")
        dropped = re.search(r"(\d+) packets? dropped by kernel", text)
        if not dropped or int(dropped[1]):
            raise Failure(f"the capture is not whole: {text.strip()[-200:]}")

    def stop(self, process, generator, at, seconds):
        time.sleep(at)
        if generator.poll() is not None:
            raise Failure("load ended before it, or its gateway, could be stopped")
        began = time.monotonic()
        process.send_signal(signal.SIGSTOP)
        try:
            if seconds is None:
                ended(generator, 180, "load")
            else:
                time.sleep(seconds)
        finally:
            process.send_signal(signal.SIGCONT)
            self.stopped = time.monotonic() - began
