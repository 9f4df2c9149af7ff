"""Opens a page in Chromium and prints its text, as JSON, when it says that the run has ended.

watch_page.py URL SECONDS [WIDTH [--press]]: waits at most SECONDS; --press presses the button that ends the run, once the
page has followed a change. Chromium is spoken to through its debugging pipe.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

url, seconds = sys.argv[1], float(sys.argv[2])
width = int(sys.argv[3]) if len(sys.argv) > 3 else 1280
press = "--press" in sys.argv

to_read, to_write = os.pipe()
from_read, from_write = os.pipe()


def place_pipes():
    # Both ends are copied first: they may be each other's places.
    a, b = os.dup(to_read), os.dup(from_write)
    os.dup2(a, 3)
    os.dup2(b, 4)


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
    chromium = subprocess.Popen(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
         f"--user-data-dir={profile}", f"--window-size={width},900", "--remote-debugging-pipe", "about:blank"],
        preexec_fn=place_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + seconds
    number, waiting = 0, b""

    def ask(method, session=None, **params):
        global number, waiting
        number += 1
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(to_write, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" in waiting:
                text, waiting = waiting.split(b"\0", 1)
                answer = json.loads(text)
                if answer.get("id") == number:
                    return answer["result"]
            waiting += os.read(from_read, 1 << 20)

    def value(expression):
        result = ask("Runtime.evaluate", session, expression=expression, returnByValue=True)
        return result["result"].get("value")

    try:
        target = ask("Target.createTarget", url=url)["targetId"]
        session = ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        seen = []
        while time.monotonic() < end:
            version = value("document.getElementById('live')?.dataset.version")
            if version and (not seen or seen[-1] != version):
                seen.append(version)
            if press and len(seen) > 2:
                press = False
                value("document.getElementById('stop').click()")
            if value("document.getElementById('live')?.dataset.last") == "true":
                break
            time.sleep(0.1)
        # Values at a chart's cursor are no part of the report.
        value("document.querySelectorAll('.values-at').forEach(element => element.remove())")
        sections = value("[...document.querySelectorAll('main section')].map(s => s.textContent)")
        print(json.dumps({
            "line": value("document.getElementById('live')?.textContent"), "versions": seen, "sections": sections,
            "title": value("document.title"),
            "tooWide": value("document.documentElement.scrollWidth > window.innerWidth"),
            "requests": value("performance.getEntriesByType('resource').map(e => new URL(e.name).host)"),
            "host": value("location.host"),
        }))
    finally:
        chromium.kill()
        chromium.wait()
