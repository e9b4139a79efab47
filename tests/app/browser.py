"""Chromium, driven over its debugging pipe as a person would drive it: with a mouse and a keyboard."""

import base64
import fcntl
import os
import select
import shutil
import signal
import time
from collections.abc import Callable
from importlib import resources
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
KEYS = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "Tab": (9, "\t"),
    "ArrowRight": (39, ""),
    "ArrowLeft": (37, ""),
}
#: What accessibility rules the pages must keep: those of WCAG 2.1, levels A and AA, and best practice.
AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


class Browser:
    """A browser of its own, without tabs at first. Use it as a context manager."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._rest = b""
        self._count = 0
        self._tabs: dict[str, Tab] = {}

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
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._in)
        os.close(self._out)

    def tab(self) -> "Tab":
        """Open a tab."""
        target = self.call(None, "Target.createTarget", url="about:blank")["targetId"]
        session = self.call(None, "Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._tabs[session] = Tab(self, session, target)
        return self._tabs[session]

    def call(self, session: str | None, method: str, **parameters: Any) -> dict[str, Any]:
        """Call the DevTools protocol."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._in, orjson.dumps(message) + b"\0")
        end = time.monotonic() + DEADLINE_S
        while (answer := self._read(end)).get("id") != self._count:
            heard_by = self._tabs.get(answer.get("sessionId", ""))
            if heard_by is not None:
                heard_by.hear(answer)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]  # type: ignore[no-any-return]

    def _read(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._out], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            read = os.read(self._out, 1 << 16)
            assert read, "the browser ended"
            self._rest += read
        message, self._rest = self._rest.split(b"\0", 1)
        return orjson.loads(message)  # type: ignore[no-any-return]


class Tab:
    """One page of a browser."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self._target = target
        self._chooser: int | None = None
        #: What went wrong in the page: exceptions nobody caught, and what the browser complains of.
        self.complaints: list[str] = []
        #: How often the mouse was pressed.
        self.clicks = 0
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.call(f"{domain}.enable")
        self.resize(1280, 900)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(self._session, method, **parameters)

    def close(self) -> None:
        self._browser.call(None, "Target.closeTarget", targetId=self._target)

    def open(self, url: str) -> None:
        """Go to another page, or anew to this one."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def reload(self) -> None:
        self.evaluate("(window.before = true)")
        self.call("Page.reload")
        self.wait("!window.before && document.readyState === 'complete'")

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def theme(self, name: str) -> None:
        """Be as on a system with `light` or `dark` colours."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def evaluate(self, script: str) -> Any:
        """Give what an expression is in the page; of an element, that there is one."""
        plain = f"(async () => {{ const value = await ({script}); return value instanceof Node ? true : value; }})()"
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

    def click(self, selector: str, *, saying: str = "", held: Callable[[], object] | None = None) -> None:
        """Click at the middle of the first element that is shown, not covered by another, and has the text.

        `held` is called between the press and the release.
        """
        x, y = self.wait(f"""(() => {{
            const element = [...document.querySelectorAll({_js(selector)})]
                .find((each) => [each.innerText ?? each.textContent, each.value ?? ""]
                    .some((text) => text.includes({_js(saying)})));
            element?.scrollIntoView({{ block: "center" }});
            const {{ left, top, width, height }} = element?.getBoundingClientRect() ?? {{ width: 0 }};
            const [x, y] = [left + width / 2, top + height / 2];
            return width > 0 && element.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
        }})()""")
        mouse = {"x": x, "y": y, "button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mousePressed", **mouse)
        if held is not None:
            held()
        self.call("Input.dispatchMouseEvent", type="mouseReleased", **mouse)
        self.clicks += 1

    def point(self, selector: str, across: float = 0.5, *, drag_to: float | None = None) -> None:
        """Point at a part of an element's width; with `drag_to`, press there and release at another part."""
        place = f"""(() => {{
            const element = document.querySelector({_js(selector)});
            element?.scrollIntoView({{ block: "center" }});
            const {{ left, top, width, height }} = element?.getBoundingClientRect() ?? {{ width: 0 }};
            return width > 0 ? [left, top + height / 2, width] : null;
        }})()"""
        left, y, width = self.wait(place)
        x = left + across * width
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if drag_to is not None:
            end = left + drag_to * width
            self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=end, y=y, button="left")
            self.call(
                "Input.dispatchMouseEvent", type="mouseReleased", x=end, y=y, button="left", clickCount=1
            )

    def choose_file(self, selector: str, path: Path) -> None:
        """Click a button that opens the file dialog, and choose a file there."""
        self.call("Page.setInterceptFileChooserDialog", enabled=True)
        self._chooser = None
        self.click(selector)
        end = time.monotonic() + DEADLINE_S
        while self._chooser is None:
            assert time.monotonic() < end, f"{selector} opens no file dialog"
            self.evaluate("1")
        self.call("DOM.setFileInputFiles", files=[str(path)], backendNodeId=self._chooser)

    def drop(self, path: Path) -> None:
        """Drag a file onto the middle of the page and drop it."""
        data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, x=600, y=400, data=data)

    def pick(self, selector: str, value: str) -> None:
        """Choose an option of a select. Its list is drawn by the system, where no mouse event reaches."""
        self.wait(f"document.querySelector({_js(selector)})")
        self.evaluate(f"""(() => {{
            const element = document.querySelector({_js(selector)});
            element.value = {_js(value)};
            element.dispatchEvent(new Event("change", {{ bubbles: true }}));
        }})()""")

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key."""
        code, text = KEYS[key]
        named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **named, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def picture(self, path: Path) -> None:
        """Store what is seen as PNG."""
        told = self.call("Page.captureScreenshot", format="png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(told["data"]))

    def barriers(self) -> list[str]:
        """Run axe-core; return what keeps people out: the serious and critical findings."""
        if not self.evaluate("!!window.axe"):
            source = resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
            self.call("Runtime.evaluate", expression=source)
        options = orjson.dumps({"runOnly": AXE_TAGS, "resultTypes": ["violations"]}).decode()
        found = self.evaluate(f"axe.run(document, {options}).then((told) => told.violations)")
        return [
            f"{each['id']} ({each['impact']}): {node['target']} {node['failureSummary']}"
            for each in found
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]

    def hear(self, event: dict[str, Any]) -> None:
        """Take notice of an event of the protocol."""
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                self.complaints.append(details.get("exception", {}).get("description", details["text"]))
            case "Log.entryAdded" if event["params"]["entry"]["level"] == "error":
                entry = event["params"]["entry"]
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
            case "Page.fileChooserOpened":
                self._chooser = event["params"]["backendNodeId"]


def _above_standard(descriptor: int) -> int:
    """The same out of the way of those that the browser expects."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


def _js(text: str) -> str:
    return orjson.dumps(text).decode()
