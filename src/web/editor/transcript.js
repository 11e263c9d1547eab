// The transcript as data. An operation returns a new transcript and leaves the old one as it is, so that it can be undone;
// captions that it does not change stay the same objects. Times are whole milliseconds of the recording.

const LEAST = 1;

const clock = (ms) => {
  const whole = Math.max(0, Math.round(ms));
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes, seconds] = [Math.floor(whole / 3600000), Math.floor(whole / 60000) % 60, Math.floor(whole / 1000) % 60];
  return `${hours}:${two(minutes)}:${two(seconds)}.${String(whole % 1000).padStart(3, "0")}`;
};

// Reads 12.5, 1:02.5 or 0:01:02,500; null for anything else.
const milliseconds = (text) => {
  const read = /^(?:(?:(\d{1,4}):)?(\d{1,2}):)?(\d{1,6})(?:[.,](\d{1,3}))?$/.exec(text.trim());
  if (!read) return null;
  const [, hours = "0", minutes = "0", seconds, fraction = ""] = read;
  if (read[2] !== undefined && Number(seconds) > 59) return null;
  return (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000 + Number(fraction.padEnd(3, "0"));
};

const nameOf = (speakers, number) => speakers[number] || `Speaker ${Number(number) + 1}`;

const indexOf = (transcript, id) => transcript.cues.findIndex((cue) => cue.id === id);

const withCues = (transcript, cues) => ({ ...transcript, cues });

const changed = (transcript, id, change) =>
  withCues(transcript, transcript.cues.map((cue) => (cue.id === id ? { ...cue, ...change } : cue)));

// What stands at the start of the recording cannot be moved before it.
const shifted = (transcript, id, by, withFollowing) => {
  const at = indexOf(transcript, id);
  const moves = (index) => (withFollowing ? index >= at : index === at);
  const first = Math.min(...transcript.cues.filter((_, index) => moves(index)).map((cue) => cue.start));
  const step = Math.max(by, -first);
  const move = (cue) => ({ ...cue, start: cue.start + step, end: cue.end + step });
  return withCues(transcript, transcript.cues.map((cue, index) => (moves(index) ? move(cue) : cue)));
};

// A caption with these times; the other one of the two moves, if they would not be in order.
const timed = (transcript, id, times) => {
  const cue = transcript.cues[indexOf(transcript, id)];
  let { start, end } = { ...cue, ...times };
  if (end < start + LEAST && times.start !== undefined) end = start + Math.max(LEAST, cue.end - cue.start);
  if (end < start + LEAST) start = Math.max(0, end - LEAST);
  end = Math.max(end, start + LEAST);
  return changed(transcript, id, { start, end });
};

const split = (transcript, id, offset, words, gap, newId) => {
  const at = indexOf(transcript, id);
  const cue = transcript.cues[at];
  const parts = [cue.text.slice(0, offset).trim(), cue.text.slice(offset).trim()];
  if (!parts[0] || !parts[1] || cue.end - cue.start < 2 * LEAST) return transcript;
  const start = Math.min(Math.max(timeAt(cue, offset, words), cue.start + LEAST), cue.end - LEAST);
  const end = Math.max(cue.start + LEAST, start - gap);
  const both = [{ ...cue, end, text: parts[0] }, { ...cue, id: newId, start, text: parts[1] }];
  return withCues(transcript, transcript.cues.toSpliced(at, 1, ...both));
};

const joined = (transcript, id) => {
  const at = indexOf(transcript, id);
  const [cue, next] = transcript.cues.slice(at, at + 2);
  if (!next) return transcript;
  const text = [cue.text, next.text].filter((part) => part.trim()).join("\n");
  const whole = { ...cue, end: Math.max(cue.end, next.end), text, speaker: cue.speaker ?? next.speaker };
  return withCues(transcript, transcript.cues.toSpliced(at, 2, whole));
};

const removed = (transcript, id) => withCues(transcript, transcript.cues.filter((cue) => cue.id !== id));

// A new caption behind another one, or at the start: it lasts two seconds, or until the next one.
const inserted = (transcript, id, newId) => {
  const at = indexOf(transcript, id);
  const [before, next] = [transcript.cues[at], transcript.cues[at + 1]];
  const start = before ? before.end : 0;
  const end = Math.max(start + LEAST, Math.min(start + 2000, next ? next.start : Infinity));
  const cue = { id: newId, start, end, speaker: before ? before.speaker : null, text: "" };
  return withCues(transcript, transcript.cues.toSpliced(at + 1, 0, cue));
};

const ordered = (transcript) => withCues(transcript, transcript.cues.toSorted((one, other) => one.start - other.start));

const isOrdered = (transcript) => transcript.cues.every((cue, at) => at === 0 || transcript.cues[at - 1].start <= cue.start);

const renamed = (transcript, number, name) => {
  const speakers = { ...transcript.speakers };
  if (name) speakers[number] = name;
  else delete speakers[number];
  return { ...transcript, speakers };
};

// All that one speaker says becomes another one's.
const given = (transcript, from, to) =>
  withCues(transcript, transcript.cues.map((cue) => (cue.speaker === from ? { ...cue, speaker: to } : cue)));

const speakerNumbers = (transcript) => {
  const named = Object.keys(transcript.speakers).map(Number);
  const used = transcript.cues.map((cue) => cue.speaker).filter((speaker) => speaker !== null);
  return [...new Set([...named, ...used])].sort((one, other) => one - other);
};

// Why a text cannot be the name of a speaker, as the server says it; null if it can.
const nameProblem = (transcript, number, name) => {
  if (!name) return null;
  if ([...name].length > 100) return "A name has at most 100 characters.";
  if (/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u.test(name)) return "A name is one line, without control characters.";
  if (name.startsWith("Speaker ")) return "A name must not begin with “Speaker ”: speakers without a name are called so.";
  const other = Object.entries(transcript.speakers).find(([known, called]) => Number(known) !== number && called === name);
  return other ? "Another speaker has this name: give that one the captions instead." : null;
};

// Finding: white space in what is looked for is any white space, so that a line break does not hide a text.

const pattern = (wanted, matchCase) => {
  const parts = wanted.trim().split(/\s+/u).map((part) => part.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  return parts[0] ? new RegExp(parts.join("\\s+"), matchCase ? "gu" : "giu") : null;
};

const found = (transcript, wanted, matchCase) => {
  const looked = pattern(wanted, matchCase);
  if (!looked) return [];
  return transcript.cues.flatMap((cue) =>
    Array.from(cue.text.matchAll(looked), (match) => ({ id: cue.id, from: match.index, to: match.index + match[0].length })));
};

const replacedAt = (transcript, { id, from, to }, text) => {
  const cue = transcript.cues[indexOf(transcript, id)];
  return changed(transcript, id, { text: cue.text.slice(0, from) + text + cue.text.slice(to) });
};

const replacedAll = (transcript, wanted, matchCase, text) => {
  const looked = pattern(wanted, matchCase);
  const replace = (cue) => {
    const next = cue.text.replace(looked, () => text);
    return next === cue.text ? cue : { ...cue, text: next };
  };
  return looked ? withCues(transcript, transcript.cues.map(replace)) : transcript;
};

// Merging two versions that began as `base`, caption by caption. Where both changed one, mine counts, and is counted.

const isSame = (one, other) =>
  one === other || (one !== undefined && other !== undefined && JSON.stringify(one) === JSON.stringify(other));

const mergedMaps = (base, mine, theirs) => {
  const result = new Map();
  let conflicts = 0;
  for (const key of new Set([...theirs.keys(), ...mine.keys()])) {
    const [was, ours, other] = [base.get(key), mine.get(key), theirs.get(key)];
    const isConflict = !isSame(ours, was) && !isSame(other, was) && !isSame(ours, other);
    const kept = isSame(ours, was) ? other : ours ?? (isConflict ? other : undefined);
    if (isConflict) conflicts += 1;
    if (kept !== undefined) result.set(key, kept);
  }
  return { result, conflicts };
};

const merged = (base, mine, theirs) => {
  const byId = (transcript) => new Map(transcript.cues.map(({ id, start, end, speaker, text }) => [id, { id, start, end, speaker, text }]));
  const names = (transcript) => new Map(Object.entries(transcript.speakers));
  const cues = mergedMaps(byId(base), byId(mine), byId(theirs));
  const speakers = mergedMaps(names(base), names(mine), names(theirs));
  const transcript = ordered({ cues: [...cues.result.values()], speakers: Object.fromEntries(speakers.result) });
  return { transcript, conflicts: cues.conflicts + speakers.conflicts };
};

// The recognised words of a caption, where its text still has them.

const SLACK = 150;
const LOOK_AHEAD = 80;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const LETTER = /[\p{L}\p{N}\p{M}]/u;

// How many items of an ordered list have a value that is not above `limit`.
const countUpTo = (list, limit, value) => {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (value(list[middle]) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
};

const letters = (text) => {
  const plain = [];
  let at = 0;
  for (const c of text) {
    if (LETTER.test(c)) for (const low of c.toLowerCase()) plain.push({ c: low, at, end: at + c.length });
    at += c.length;
  }
  return plain;
};

const wordsOf = (cue, words) => {
  const first = Math.max(0, countUpTo(words, cue.start - SLACK, (word) => word.start) - 8);
  const last = countUpTo(words, cue.end + SLACK, (word) => word.start);
  const isWithin = (word) => (word.start + word.end) / 2 >= cue.start - SLACK && (word.start + word.end) / 2 <= cue.end + SLACK;
  return words.slice(first, last).filter(isWithin);
};

// Where in a text the recognised words stand: `from`, `to`, and the word.
const placed = (text, words) => {
  const plain = letters(text);
  const flat = plain.map((letter) => letter.c).join("");
  // Letters beyond the basic plane have two units; then the places in `flat` are not those in `plain`.
  if (flat.length !== plain.length) return [];
  const isBoundary = (at) => {
    if (at <= 0 || at >= plain.length || plain[at - 1].end !== plain[at].at) return true;
    return UNSPACED.test(plain[at - 1].c) || UNSPACED.test(plain[at].c);
  };
  const places = [];
  let at = 0;
  for (const word of words) {
    const key = letters(word.text).map((letter) => letter.c).join("");
    let begin = key ? flat.indexOf(key, at) : -1;
    while (begin >= 0 && !(isBoundary(begin) && isBoundary(begin + key.length))) begin = flat.indexOf(key, begin + 1);
    if (begin < 0 || begin > at + LOOK_AHEAD) continue;
    at = begin + key.length;
    places.push({ from: plain[begin].at, to: plain[at - 1].end, word });
  }
  return places;
};

// When what follows a place in a text is said: by the recognised words, else by the share of the text.
const timeAt = (cue, offset, words) => {
  const rest = cue.text.slice(offset);
  const begin = offset + rest.length - rest.trimStart().length;
  const places = placed(cue.text, wordsOf(cue, words));
  const exact = places.find((place) => place.from <= begin && begin < place.to);
  if (exact) return exact.word.start;
  const before = places.findLast((place) => place.to <= begin);
  const after = places.find((place) => place.from >= begin);
  const [from, start] = before ? [before.to, before.word.end] : [0, cue.start];
  const [to, end] = after ? [after.from, after.word.start] : [cue.text.length, cue.end];
  const share = to > from ? (begin - from) / (to - from) : 1;
  return Math.round(start + Math.max(0, end - start) * share);
};
