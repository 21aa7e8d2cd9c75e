#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the pages of reports in a headless browser at phone and desktop width, in light and in
dark; then seeds errors, which it must find. Without CHROMIUM or a page it is skipped, or fails if
COMPLETE is ON.

page.py CHROMIUM FOLDER COMPLETE
FOLDER  where the test conformance_report_files leaves its pages
"""

import html
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Loads page.html of its folder into a frame of ?WIDTH pixels, and lists what a reader would see.
PROBE = """<!DOCTYPE html><meta charset="utf-8"/><iframe id="frame" height="900" style="border:0">
</iframe><pre id="measured"></pre><script>
const frame = document.getElementById("frame");
frame.width = location.search.slice(1);
frame.onload = () => {
    const page = frame.contentDocument, view = frame.contentWindow;
    const all = (part, selector, use) => [...part.querySelectorAll(selector)].map(use);
    const box = part => part.getBoundingClientRect(), style = part => view.getComputedStyle(part);
    const heading = part => part.closest("section").querySelector("h2").textContent;
    document.getElementById("measured").textContent = JSON.stringify({
        inner: view.innerWidth, scroll: page.documentElement.scrollWidth, title: page.title,
        scripts: page.querySelectorAll("script").length,
        requests: view.performance.getEntriesByType("resource").length,
        background: style(page.body).backgroundColor, ink: style(page.body).color,
        quiet: all(page, "p", part => style(part).color).concat(style(page.body).color)[0],
        sections: all(page, "section", part => [heading(part), box(part).width, box(part).height]),
        texts: all(page, "figure svg text", text => box(text).height),
        rows: all(page, "tbody tr", row => row.cells[0].textContent)});
};
frame.src = "page.html";
</script>"""


def contrast(*colours):
    """The contrast of two colours "rgb(r, g, b)", as WCAG defines it."""
    parts = [int(part) / 255 for colour in colours for part in re.findall(r"\d+", colour)[:3]]
    light = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    a, b = (0.05 + 0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (light[:3], light[3:]))
    return max(a, b) / min(a, b)


def of_every_page(facts, width, scheme):
    background = facts["background"]
    yield facts["inner"] != width, f"the frame is {facts['inner']} wide"
    yield facts["scroll"] > width, f"the page is {facts['scroll']} wide"
    yield facts["scripts"] != 0, f"{facts['scripts']} scripts"
    yield facts["requests"] != 0, f"{facts['requests']} requests"
    dark = contrast(background, "rgb(0, 0, 0)") < 5
    yield dark != (scheme == "dark"), f"the background is not {scheme}: {background}"
    for what in ("ink", "quiet"):
        yield contrast(facts[what], background) < 4.5, f"{what} is hard to read: {facts[what]}"
    for name, wide, high in facts["sections"]:
        yield wide < width / 2 or high < 20, f"section {name}: {wide} x {high}"
    yield min([9, *facts["texts"]]) < 9, "text in a figure is less than 9 high"


def of_report(facts, least):
    yield not facts["title"].startswith("vkrope: "), f"the title is {facts['title']}"
    yield len(facts["sections"]) < least, f"{len(facts['sections'])} sections"
    yield not facts["rows"], "no rows"


def problems_of(text, width, scheme, rules):
    with tempfile.TemporaryDirectory() as site:
        Path(site, "probe.html").write_text(PROBE)
        Path(site, "page.html").write_text(text)
        sandbox = [] if os.getuid() else ["--no-sandbox"]  # Chromium refuses a sandbox as root
        shown = subprocess.run(
            [chromium, *sandbox, "--disable-gpu", f"--user-data-dir={site}/profile",
             "--allow-file-access-from-files", "--hide-scrollbars", "--enable-logging=stderr",
             f"--blink-settings=preferredColorScheme={int(scheme == 'light')}",
             "--window-size=1600,1200", "--dump-dom", f"file://{site}/probe.html?{width}"],
            capture_output=True, text=True)
    measured = re.search(r'<pre id="measured">(.+?)</pre>', shown.stdout, re.DOTALL)
    if not measured:
        return ["nothing was measured"]
    facts = json.loads(html.unescape(measured[1]))
    problems = [problem for bad, problem in (*of_every_page(facts, width, scheme), *rules(facts))
                if bad]
    return [line for line in shown.stderr.splitlines() if "CONSOLE" in line] + problems


chromium, folder, complete = sys.argv[1:]
pages = {"report": lambda facts: of_report(facts, 4), "many": lambda facts: of_report(facts, 7)}
image = '<img alt="" src="http://127.0.0.1:9/seeded.png"/>'
seeds = [("the page is .* wide", "</h1>", '</h1><div style="width:500px">wide</div>', "light"),
         ("^1 scripts", "</h1>", "</h1><script></script>", "light"),
         ("^1 requests", "</h1>", "</h1>" + image, "light"),
         ("not dark", "prefers-color-scheme:dark", "prefers-color-scheme:none", "dark"),
         ("quiet is hard to read", "--quiet:#555555", "--quiet:#cccccc", "light")]
for needed in (chromium, *(f"{folder}/{page}.html" for page in pages)):
    if not Path(needed).is_file():
        print(f"there is no {needed or 'headless Chromium'}")
        sys.exit(1 if complete == "ON" else 77)

failed = False
texts = {page: Path(folder, f"{page}.html").read_text() for page in pages}
for page, width, scheme in itertools.product(pages, (360, 1200), ("light", "dark")):
    problems = problems_of(texts[page], width, scheme, pages[page])
    print(page, width, scheme, problems)
    failed |= problems != []
page = next(iter(pages))
for wanted, pattern, seed, scheme in seeds:
    problems = problems_of(re.sub(pattern, seed, texts[page]), 360, scheme, pages[page])
    if not re.search(wanted, "\n".join(problems), re.MULTILINE):
        print("it is not seen:", seed)
        failed = True
sys.exit(failed)
