"""Chromium, driven over its debugging pipe as a person would drive it: with a mouse and a keyboard."""

import base64
import fcntl
import os
import select
import shutil
import signal
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = "There is no Chromium on this machine. Install it: apt-get install chromium."
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars")
#: No step of a test takes so long.
DEADLINE_S = 30.0
POLL_S = 0.02
#: Chromium reads commands from the first of these descriptors and writes answers and events to the second.
COMMANDS, ANSWERS = 3, 4
KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, "\t")}


class Browser:
    """One page of a browser of its own. Use it as a context manager."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._rest = b""
        self._count = 0
        self._session: str | None = None
        #: What went wrong in the page: exceptions nobody caught, and what the browser complains of.
        self.complaints: list[str] = []

    def __enter__(self) -> Self:
        assert CHROMIUM is not None, MISSING
        theirs_in, self._in = map(_above_standard, os.pipe())
        self._out, theirs_out = map(_above_standard, os.pipe())
        self._pid = os.posix_spawn(
            CHROMIUM,
            [CHROMIUM, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={self._profile}", "about:blank"],
            os.environ,
            file_actions=[
                *((os.POSIX_SPAWN_OPEN, each, os.devnull, os.O_RDWR, 0) for each in (0, 1, 2)),
                (os.POSIX_SPAWN_DUP2, theirs_in, COMMANDS),
                (os.POSIX_SPAWN_DUP2, theirs_out, ANSWERS),
            ],
        )
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(1360, 900)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call the DevTools protocol."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._in, orjson.dumps(message) + b"\0")
        end = time.monotonic() + DEADLINE_S
        while (answer := self._read(end)).get("id") != self._count:
            self._hear(answer)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]  # type: ignore[no-any-return]

    def open(self, url: str) -> None:
        """Go to another page, or anew to this one."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def darken(self) -> None:
        """Be as on a system with dark colours."""
        features = [{"name": "prefers-color-scheme", "value": "dark"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def evaluate(self, script: str) -> Any:
        """Give what an expression is in the page; of an element, that there is one."""
        plain = f"((value) => value instanceof Node ? true : value)({script})"
        told = self.call("Runtime.evaluate", expression=plain, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def wait(self, script: str) -> Any:
        """Wait until an expression holds, and give what it is."""
        end = time.monotonic() + DEADLINE_S
        while not (value := self.evaluate(script)):
            shown = self.evaluate("document.body.innerText") if time.monotonic() > end else None
            assert shown is None, f"waited in vain for {script}; the page shows:\n{shown}"
            time.sleep(POLL_S)
        return value

    def text(self, selector: str) -> str:
        """What is shown of the first element there is."""
        shown: str = self.wait(f"document.querySelector({_js(selector)})?.innerText")
        return shown

    def wait_for_text(self, selector: str, text: str) -> None:
        """Wait until that is shown of the first element: what was shown before may still stand there for a moment."""
        self.wait(f"document.querySelector({_js(selector)})?.innerText === {_js(text)}")

    def click(self, selector: str) -> None:
        """Click at the middle of the first element that is shown and not covered by another."""
        middle = f"""(() => {{
            const element = document.querySelector({_js(selector)});
            element?.scrollIntoView({{ block: "center" }});
            const {{ left, top, width, height }} = element?.getBoundingClientRect() ?? {{ width: 0 }};
            const [x, y] = [left + width / 2, top + height / 2];
            return width > 0 && element.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
        }})()"""
        x, y = self.wait(middle)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key."""
        code, text = KEYS[key]
        named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **named, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Store what is seen as PNG: the whole page, or what fits the window."""
        told = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(told["data"]))

    def _read(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._out], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            read = os.read(self._out, 1 << 16)
            assert read, "the browser ended"
            self._rest += read
        message, self._rest = self._rest.split(b"\0", 1)
        return orjson.loads(message)  # type: ignore[no-any-return]

    def _hear(self, event: dict[str, Any]) -> None:
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                self.complaints.append(details.get("exception", {}).get("description", details["text"]))
            case "Log.entryAdded" if event["params"]["entry"]["level"] == "error":
                entry = event["params"]["entry"]
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}")


def _above_standard(descriptor: int) -> int:
    """The same out of the way of those that the browser expects."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


def _js(text: str) -> str:
    return orjson.dumps(text).decode()
