#!/usr/bin/env python3
"""Runs the commands of the tutorials and writes their real output into the pages.

    docs/refresh-outputs.py docs/tutorials/*.md

For each page, all ```sh blocks run from top to bottom in one shell (`set -e`) in an empty folder, with `scribed` in
PATH. What a block prints (stdout and stderr) replaces the ```text block that follows it directly; a block without one
keeps its output to itself. The folder and the user of this machine are replaced by those of the tutorial.
"""
import getpass, os, re, subprocess, sys, tempfile

BLOCK = re.compile(r"^```sh\n(?P<code>.*?)^```\n(?P<gap>\n?)(?:```text\n(?P<output>.*?)^```\n)?", re.M | re.S)
MARK = "@@@ end of a block @@@"


def run(page):
    text = open(page).read()
    blocks = list(BLOCK.finditer(text))
    script = "set -e\n" + "".join(f"{b['code']}\necho '{MARK}'\n" for b in blocks)
    with tempfile.TemporaryDirectory(prefix="scribed-tutorial-") as folder:
        done = subprocess.run(["bash", "-c", script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, text=True, env={**os.environ, "NO_COLOR": "1"})
    outputs = [part.lstrip("\n") for part in done.stdout.split(MARK + "\n")]
    if done.returncode:
        sys.exit(f"{page}: exit code {done.returncode} after:\n{outputs[-1]}")
    user = f"{getpass.getuser()} (uid {os.getuid()})"
    parts, at = [], 0
    for block, output in zip(blocks, outputs):
        if block["output"] is None:
            continue
        output = output.replace(folder, "/home/ada/scribed").replace(user, "ada (uid 1000)").rstrip("\n")
        parts += [text[at:block.start("output")], output + "\n"]
        at = block.end("output")
    open(page, "w").write("".join(parts) + text[at:])


for page in sys.argv[1:]:
    run(page)
