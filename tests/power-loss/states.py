#!/usr/bin/env python3
"""Builds what a disk may hold after power was lost, from the record of shim.c, and has each looked at.

What was synced is there. What was written since is there wholly, in part, torn, or not, by mode:
  strict    nothing of it
  prefix    the first writes of each file, the last of them torn at 512 bytes
  rand      each 4 KiB piece of each write by chance, some torn
  rand_len  as rand, and a file may have kept its old length
Creating, renaming and removing keep their order, as in a journaling file system: what came before the
last sync is there, of what came later the first ones (strict: none).

states.py LOG STATES SEED DIR LOOK...   LOOK is run with POWER_LOSS_LOOK=<dir of the state> and
POWER_LOSS_ACKS=<what was acknowledged before>; it exits 0 if all of that is there."""

import collections, os, random, shutil, struct, subprocess, sys

MODES = ["strict", "prefix", "rand", "rand_len"]
Event = collections.namedtuple("Event", "op path off data")


def read(path):
    events, head = [], struct.Struct("<cIQQ")
    with open(path, "rb") as log:
        while len(start := log.read(head.size)) == head.size:
            op, path_len, off, data_len = head.unpack(start)
            data_len = data_len if op in b"WR" else 0
            events.append(Event(op.decode(), log.read(path_len).decode(), off, log.read(data_len)))
    return events


class Inode:
    def __init__(self):
        self.durable, self.pending = bytearray(), []


def apply(image, event, data=None, off=None):
    if event.op == "T":
        del image[event.off:]
        image.extend(bytes(event.off - len(image)))
        return
    data, off = event.data if data is None else data, event.off if off is None else off
    if len(image) < off:
        image.extend(bytes(off - len(image)))
    image[off:off + len(data)] = data


def torn(data, rng):
    return data[:512 * rng.randint(0, len(data) // 512)]


def survived(inode, mode, rng):
    image = bytearray(inode.durable)
    if mode == "prefix":
        cut = rng.randint(0, len(inode.pending))
        for i, event in enumerate(inode.pending[:cut]):
            tear = event.op == "W" and i == cut - 1 and rng.random() < 0.7
            apply(image, event, torn(event.data, rng) if tear else None)
    elif mode.startswith("rand"):
        for event in inode.pending:
            if event.op == "T":
                apply(image, event)
                continue
            for start in range(0, len(event.data), 4096):
                if rng.random() < 0.5:
                    piece = event.data[start:start + 4096]
                    apply(image, event, torn(piece, rng) if rng.random() < 0.2 else piece, event.off + start)
        if mode == "rand_len" and rng.random() < 0.5:
            del image[len(inode.durable):]
    return bytes(image)


def disk_after(events, k, mode, rng):
    """The files, and the lines of acknowledgement, if power fails after event k."""
    last_sync = max((i for i in range(k) if events[i].op == "F"), default=-1)
    kept = last_sync + 1 if mode == "strict" else k if mode in ("prefix", "rand_len") else rng.randint(last_sync + 1, k)
    names, disk, acks = {}, {}, bytearray()
    for i, event in enumerate(events[:k]):
        if event.path.endswith("/acks"):
            acks += event.data
        elif event.op == "C":
            names[event.path] = Inode()
            if i < kept:
                disk[event.path] = names[event.path]
        elif event.op in "WT" and event.path in names:
            names[event.path].pending.append(event)
        elif event.op == "F" and event.path in names:
            inode = names[event.path]
            for write in inode.pending:
                apply(inode.durable, write)
            inode.pending = []
        elif event.op == "R" and event.path in names:
            names[event.data.decode()] = names.pop(event.path)
            if i < kept and event.path in disk:
                disk[event.data.decode()] = disk.pop(event.path)
        elif event.op == "U":
            names.pop(event.path, None)
            if i < kept:
                disk.pop(event.path, None)
    return {path: survived(inode, mode, rng) for path, inode in disk.items()}, bytes(acks)


def look(files, acks, root, room, command):
    shutil.rmtree(room, ignore_errors=True)
    os.makedirs(room)
    for path, data in files.items():
        path = os.path.join(room, os.path.relpath(path, root))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    with open(room + ".acks", "wb") as file:
        file.write(acks)
    env = dict(os.environ, POWER_LOSS_LOOK=room, POWER_LOSS_ACKS=room + ".acks", RUST_BACKTRACE="0")
    try:
        done = subprocess.run(command, env=env, capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "hung", b""
    text = done.stdout + done.stderr
    if done.returncode == 0 and b"1 passed" in text:
        return "survived", text
    return ("does not open" if b"does not open" in text else "lost or inconsistent"), text


def main():
    log, states, seed, room = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    events, rng, found = read(log), random.Random(seed), collections.Counter()
    root = os.environ["POWER_LOSS_DIR"]
    after_acks = [i + 1 for i, event in enumerate(events) if event.path.endswith("/acks") and event.op == "W"]
    for n in range(states):
        mode = MODES[n % len(MODES)]
        k = rng.choice(after_acks) if n % 8 < 4 else rng.randint(1, len(events))
        files, acks = disk_after(events, k, mode, rng)
        verdict, text = look(files, acks, root, room, sys.argv[5:])
        found[verdict] += 1
        if verdict != "survived" and found[verdict] <= 2 and os.environ.get("POWER_LOSS_VERBOSE"):
            print(f"seed {seed} state {n} mode {mode} event {k}: {verdict}\n{text.decode(errors='replace')[-1500:]}")
    print(f"{states} states, {len(after_acks)} acknowledgements, " + ", ".join(f"{n} {what}" for what, n in found.items()))
    sys.exit(0 if found["survived"] == states else 1)


main()
