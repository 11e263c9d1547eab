// The page of the editor: what its controls do.

const byId = (id) => document.getElementById(id);
const page = byId("editor");
const { transcript: transcriptAddress, draft: draftAddress, job, role } = page.dataset;
const isReadOnly = role === "viewer";
const media = byId("media");
const editorId = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");

const MOST_STEPS = 1000;
const TYPING_PAUSE = 1000;
const SKIP = 2;
const LEAD_IN = 500;
const FOLLOW_AFTER = 3000;

let transcript = { cues: [], speakers: {} };
let rules = null;
let words = [];
let suspects = [];
let list = null;
let made = 0;
let typedAt = -Infinity;

const newId = () => `${editorId}-${(made += 1)}`;

// Messages. What a screen reader says at once is in `said`; the state of saving is not: it changes with each pause.

const say = (text) => {
  byId("said").textContent = text;
};

const showNotice = (id, text, ...buttons) => {
  const notice = byId(id);
  notice.hidden = !text;
  notice.replaceChildren(...(text ? [element("p", {}, text), ...buttons] : []));
};

const button = (text, act) => {
  const one = element("button", { type: "button", textContent: text });
  one.addEventListener("click", act);
  return one;
};

// Steps that can be undone. What is typed without a pause into one caption is one step.

const past = [];
const future = [];

const show = (next) => {
  transcript = next;
  list.update(transcript);
  byId("undo").disabled = past.length === 0;
  byId("redo").disabled = future.length === 0;
  showCounts();
};

const apply = (next, name, typedInto) => {
  if (next === transcript || isReadOnly) return;
  typedAt = performance.now();
  const last = past.at(-1);
  const now = performance.now();
  const isSameStep = typedInto !== undefined && last?.typedInto === typedInto && now - last.at < TYPING_PAUSE && future.length === 0;
  if (isSameStep) last.at = now;
  else past.push({ transcript, name, typedInto, at: now });
  if (past.length > MOST_STEPS) past.shift();
  future.length = 0;
  show(next);
  draft.changed();
};

const firstOther = (one, other) => {
  const before = new Map(other.cues.map((cue) => [cue.id, cue]));
  return one.cues.find((cue) => before.get(cue.id) !== cue)?.id ?? null;
};

const step = (from, to, words) => {
  const done = from.pop();
  if (!done) return say(`Nothing to ${words.toLowerCase()}.`);
  to.push({ ...done, transcript, at: 0 });
  const place = firstOther(done.transcript, transcript);
  show(done.transcript);
  draft.changed();
  if (place) list.focus(place);
  say(`${words}: ${done.name}.`);
};

const undo = () => step(past, future, "Undo");
const redo = () => step(future, past, "Redo");

// The player.

const position = () => Math.round(media.currentTime * 1000);
const play = () => media.play().catch(() => {});
const seek = (ms) => {
  media.currentTime = Math.max(0, ms / 1000);
  list.mark(ms, false);
};
const playFrom = (ms) => {
  seek(ms);
  play();
};
const toggle = () => {
  if (media.paused) play();
  else media.pause();
};
// Nobody wants the page to move while typing.
const follows = () => byId("follow").checked && !media.paused && performance.now() - typedAt > FOLLOW_AFTER;
const mark = () => list?.mark(position(), follows());
let frame = 0;
const tick = () => {
  mark();
  frame = media.paused ? 0 : requestAnimationFrame(tick);
};

const setUpPlayer = () => {
  media.addEventListener("play", () => {
    if (!frame) frame = requestAnimationFrame(tick);
  });
  media.addEventListener("seeked", mark);
  media.addEventListener("error", () => showNotice("no-media", "This browser cannot play the recording. The text can be edited without it."));
  byId("speed").addEventListener("change", (event) => {
    media.playbackRate = Number(event.target.value);
  });
};

// What can be done with the caption with the cursor.

const active = () => list.cursor();
const atCursor = (act) => {
  const cursor = active();
  if (cursor) act(cursor);
  else say("First put the cursor into a caption.");
};

const cueOf = (id) => transcript.cues[indexOf(transcript, id)];

const acts = {
  split: () => atCursor(({ id, from }) => {
    const second = newId();
    const next = split(transcript, id, from, words, rules.minimum_gap ?? 0, second);
    if (next === transcript) return say("Put the cursor between two words to split the caption there.");
    apply(next, "split a caption");
    list.focus(second, [0, 0]);
  }),
  join: () => atCursor(({ id }) => {
    const next = joined(transcript, id);
    if (next === transcript) return say("This is the last caption.");
    apply(next, "joined two captions");
    list.focus(id);
  }),
  insert: () => atCursor(({ id }) => {
    const added = newId();
    apply(ordered(inserted(transcript, id, added)), "added a caption");
    list.focus(added);
  }),
  remove: () => atCursor(({ id }) => {
    const at = indexOf(transcript, id);
    apply(removed(transcript, id), "removed a caption");
    const next = transcript.cues[Math.min(at, transcript.cues.length - 1)];
    if (next) list.focus(next.id);
    say("The caption is removed. Undo brings it back.");
  }),
  startHere: () => atCursor(({ id }) => apply(ordered(timed(transcript, id, { start: position() })), "set a start")),
  endHere: () => atCursor(({ id }) => apply(ordered(timed(transcript, id, { end: position() })), "set an end")),
  playCue: () => atCursor(({ id }) => playFrom(cueOf(id).start)),
  shift: () => atCursor(() => byId("shift-dialog").showModal()),
  neighbour: (way) => {
    const cursor = active();
    const at = cursor ? indexOf(transcript, cursor.id) + way : 0;
    const next = transcript.cues[at];
    if (next) list.focus(next.id, [0, 0]);
  },
};

const shiftNow = () => {
  const by = Math.round(Number(byId("shift-by").value));
  if (!Number.isFinite(by) || by === 0) return;
  const withFollowing = byId("shift-following").checked;
  atCursor(({ id }) => apply(ordered(shifted(transcript, id, by, withFollowing)), withFollowing ? "shifted captions" : "shifted a caption"));
};

const chooseSpeaker = (id, value) => {
  if (value !== "new") return apply(changed(transcript, id, { speaker: value === "" ? null : Number(value) }), "changed a speaker");
  const number = Math.max(-1, ...speakerNumbers(transcript)) + 1;
  apply(changed(transcript, id, { speaker: number }), "changed a speaker");
  openSpeakers(number);
};

const listActs = {
  type: (id, text) => apply(changed(transcript, id, { text }), "typed", id),
  lines: (id, text) => {
    apply(changed(transcript, id, { text }), "changed line breaks");
    say("The line breaks are changed. Undo takes it back.");
  },
  time: (id, times) => apply(ordered(timed(transcript, id, times)), "changed a time"),
  speaker: chooseSpeaker,
  play: playFrom,
  word: (cue, offset) => {
    const begin = cue.text.slice(0, offset).search(/\S+$/u);
    seek(timeAt(cue, begin < 0 ? offset : begin, words));
    if (byId("click-plays").checked) play();
  },
  entered: () => {},
  say,
};

// Speakers.

const speakerRow = (number) => {
  const count = transcript.cues.filter((cue) => cue.speaker === number).length;
  const id = `speaker-${number}`;
  const input = element("input", { id, type: "text", value: transcript.speakers[number] ?? "", placeholder: `Speaker ${number + 1}`, maxLength: 200, autocomplete: "off", readOnly: isReadOnly });
  const problem = element("p", { className: "why", attributes: { role: "alert" } });
  input.addEventListener("input", () => {
    const name = input.value.trim();
    const why = nameProblem(transcript, number, name);
    problem.textContent = why ?? "";
    input.setAttribute("aria-invalid", String(why !== null));
    if (!why) apply(renamed(transcript, number, name), "renamed a speaker", `speaker ${number}`);
  });
  const others = speakerNumbers(transcript).filter((other) => other !== number);
  const to = element("select", { disabled: isReadOnly, attributes: { "aria-label": `Give all captions of ${nameOf(transcript.speakers, number)} to` } },
    element("option", { value: "", textContent: "Give all to…" }),
    ...others.map((other) => element("option", { value: String(other), textContent: nameOf(transcript.speakers, other) })));
  to.addEventListener("change", () => {
    if (to.value === "") return;
    apply(given(transcript, number, Number(to.value)), "gave captions to another speaker");
    showSpeakers();
  });
  return element("li", {}, element("label", { htmlFor: id }, `Speaker ${number + 1} (${count} captions)`), input, to, problem);
};

const showSpeakers = () => {
  const rows = speakerNumbers(transcript).map(speakerRow);
  byId("speaker-list").replaceChildren(...(rows.length > 0 ? rows : [element("li", {}, "No caption has a speaker.")]));
};

const openSpeakers = (number) => {
  showSpeakers();
  byId("speakers-dialog").showModal();
  byId(`speaker-${number}`)?.focus();
};

// Find and replace.

let foundAt = -1;

const matches = () => found(transcript, byId("find-text").value, byId("match-case").checked);

const showFound = () => {
  const all = matches();
  if (foundAt >= all.length) foundAt = -1;
  const wanted = byId("find-text").value.trim();
  byId("found").textContent = wanted ? `${foundAt >= 0 ? `${foundAt + 1} of ` : ""}${all.length} found` : "";
  return all;
};

const findNext = (way) => {
  const all = matches();
  if (all.length === 0) return showFound();
  foundAt = foundAt < 0 && way < 0 ? all.length - 1 : (foundAt + way + all.length) % all.length;
  const { id, from, to } = all[foundAt];
  const { activeElement } = document;
  list.focus(id, [from, to]);
  if (activeElement?.closest("#find")) activeElement.focus({ preventScroll: true });
  showFound();
};

const replaceOne = () => {
  const all = matches();
  if (foundAt < 0 || !all[foundAt]) return findNext(1);
  apply(replacedAt(transcript, all[foundAt], byId("replace-text").value), "replaced a text");
  foundAt -= 1;
  findNext(1);
};

const replaceAll = () => {
  const count = matches().length;
  apply(replacedAll(transcript, byId("find-text").value, byId("match-case").checked, byId("replace-text").value), `replaced ${count} texts`);
  foundAt = -1;
  showFound();
  say(`${count} replaced.`);
};

const openFind = () => {
  byId("find").hidden = false;
  const cursor = active();
  const chosen = cursor ? cueOf(cursor.id).text.slice(cursor.from, cursor.to) : "";
  if (chosen) byId("find-text").value = chosen;
  byId("find-text").focus();
  byId("find-text").select();
  showFound();
};

const closeFind = () => {
  byId("find").hidden = true;
  foundAt = -1;
  if (list.active) list.focus(list.active.cue.id);
};

// Suspect passages, and captions that break a rule.

let suspectAt = -1;
const checked = new Set();
const checkedKey = `scribed.checked.${job}`;

const keyOf = ({ start, end, reason }) => `${start} ${end} ${reason}`;

const showCounts = () => {
  const left = suspects.filter((span) => !checked.has(keyOf(span))).length;
  const reason = suspectAt >= 0 ? ` ${clock(suspects[suspectAt].start)}: ${suspects[suspectAt].reason}` : "";
  const place = suspectAt >= 0 ? `Passage ${suspectAt + 1} of ${suspects.length}, ${left} left.${reason}` : `${left} of ${suspects.length} suspect passages left`;
  byId("suspects").textContent = suspects.length > 0 ? place : "No suspect passages";
  for (const id of ["suspect-next", "suspect-before"]) byId(id).disabled = suspects.length === 0;
  const count = list.faulty.length;
  byId("faulty").textContent = count > 0 ? `${count} of ${transcript.cues.length} captions break a rule` : "No caption breaks a rule";
  byId("faulty-next").disabled = count === 0;
};

// What the server says of the lines of these captions.
const showLines = (cues, lines) => {
  list.advise(linesByText(cues, lines));
  showCounts();
};

const toSuspect = (way) => {
  if (suspects.length === 0) return say("There are no suspect passages.");
  suspectAt = suspectAt < 0 && way < 0 ? suspects.length - 1 : (suspectAt + way + suspects.length) % suspects.length;
  const span = suspects[suspectAt];
  checked.add(keyOf(span));
  try {
    localStorage.setItem(checkedKey, JSON.stringify([...checked]));
  } catch {
    // Then the count begins again with the next visit.
  }
  const cue = transcript.cues.find((one) => one.end > span.start) ?? transcript.cues.at(-1);
  if (cue) list.focus(cue.id, [0, 0]);
  seek(span.start - LEAD_IN);
  if (byId("click-plays").checked) play();
  showCounts();
  say(byId("suspects").textContent);
};

const toFaulty = () => {
  const at = list.active?.cue ? indexOf(transcript, list.active.cue.id) : -1;
  const next = list.faulty.find((cue) => indexOf(transcript, cue.id) > at) ?? list.faulty[0];
  if (!next) return;
  list.focus(next.id, [0, 0]);
  say(list.problems(list.rows.get(next.id)).join(". "));
};
