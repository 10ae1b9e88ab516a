"""Headless Chromium over its debugging pipe (the DevTools protocol as NUL-ended JSON on two file descriptors): enough to
open a page, read it and press its keys, with nothing but the standard library."""

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path


class Browser:
    """One browser process and one page in it. `errors`: what the page reported; `requests`: the addresses it asked for."""

    def __init__(self, profile_folder):
        to_child, from_parent = os.pipe()
        to_parent, from_child = os.pipe()
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        assert program, "chromium is not installed (packages-dev.txt names it)"

        def wire():  # the protocol's descriptors are 3 (commands) and 4 (answers)
            reading, writing = os.dup(to_child), os.dup(from_child)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions", "--no-first-run",
             "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={profile_folder}", "about:blank"],
            preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.commands, self.answers = os.fdopen(from_parent, "wb", 0), os.fdopen(to_parent, "rb", 0)
        self.last, self.rest = 0, b""
        self.errors, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank", session=None)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True, session=None)["sessionId"]
        for domain in ("Runtime", "Page", "Network", "Log"):
            self.call(domain + ".enable")

    def call(self, method, session="page", **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if session == "page":
            message["sessionId"] = self.session
        self.commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def receive(self):
        while b"\0" not in self.rest:
            piece = os.read(self.answers.fileno(), 1 << 20)
            assert piece, "the browser has closed its pipe"
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(text)
        self.observe(message.get("method"), message.get("params", {}))
        return message

    def observe(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str([argument.get("value") for argument in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def size(self, width, height=900, dark=False, touch=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path):
        """Loads a file and waits until its script says that it is drawn."""
        self.errors.clear()
        self.requests.clear()
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        deadline = time.monotonic() + 60
        while self.value("document.readyState + document.documentElement?.dataset.ready") != "completetrue":
            assert time.monotonic() < deadline, f"the page never became ready: {self.errors}"
            time.sleep(0.02)
        self.frame()

    def frame(self):
        """Lets the page draw (resize observers run before a frame)."""
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def value(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key, text=""):
        names = {"ArrowRight": 39, "ArrowDown": 40, "ArrowLeft": 37, "ArrowUp": 38, "Tab": 9, "Escape": 27}
        code = {"key": key, "code": key, "windowsVirtualKeyCode": names.get(key, ord(key[0]))}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def mouse(self, kind, x, y, buttons=0):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left" if buttons or kind == "mouseReleased" else "none",
                  buttons=buttons, clickCount=1 if kind != "mouseMoved" else 0)

    def screenshot(self, path, whole=True):
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole, format="png")
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        self.commands.close()
        self.answers.close()
