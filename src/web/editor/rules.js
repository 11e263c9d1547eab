// The rules for captions, as `scribed captions check` has them. What needs the layout (where lines are broken) the server
// says with each draft that it saves. A rule that is null does not hold.

const INVISIBLE = /^[\p{Cc}\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+$/u;
const WIDE = /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const ROUNDING = 1;
// A gap that is longer by up to a frame counts as closed.
const FRAME = 42;

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

const counted = (row, unit) => {
  let sum = 0;
  for (const { segment } of segmenter.segment(row)) {
    if (INVISIBLE.test(segment)) continue;
    sum += unit === "full_width" && !WIDE.test(segment) ? 0.5 : 1;
  }
  return sum;
};

const wordCount = (row) => row.split(/\s+/u).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

const rounded = (number) => String(Math.round(number * 1000) / 1000);
const inSeconds = (ms) => rounded(ms / 1000);

const rowFaults = (rows, rules) => {
  const words = [];
  rows.forEach((row, at) => {
    const length = counted(row, rules.unit);
    if (rules.characters_per_line !== null && length > rules.characters_per_line) {
      words.push(`Line ${at + 1} has ${rounded(length)} characters, at most ${rounded(rules.characters_per_line)}`);
    }
  });
  if (rules.lines !== null && rows.length > rules.lines) words.push(`${rows.length} lines, at most ${rules.lines}`);
  return words;
};

const timeFaults = (cue, rows, rules) => {
  const shown = cue.end - cue.start;
  const words = rows.reduce((sum, row) => sum + wordCount(row), 0);
  const longest = Math.max(1, rules.maximum_duration ?? Infinity);
  const least = Math.min(longest, Math.max(rules.minimum_duration ?? 0, (rules.minimum_duration_per_word ?? 0) * words));
  const faults = [];
  if (shown + ROUNDING < least) faults.push(`Shown for ${inSeconds(shown)} s, at least ${inSeconds(least)} s`);
  if (shown > longest + ROUNDING) faults.push(`Shown for ${inSeconds(shown)} s, at most ${inSeconds(longest)} s`);
  const length = rows.reduce((sum, row) => sum + counted(row, rules.unit), 0);
  const speeds = [[length, rules.characters_per_second, "characters a second"], [words * 60, rules.words_per_minute, "words a minute"]];
  for (const [amount, limit, unit] of speeds) {
    if (limit !== null && (amount * 1000) / (shown + ROUNDING) > limit) {
      faults.push(`${((amount * 1000) / shown).toFixed(1)} ${unit}, at most ${rounded(limit)}`);
    }
  }
  return faults;
};

const neighbourFaults = (cue, before, next, rules) => {
  const faults = [];
  if (before && cue.start < before.start) faults.push(`It begins ${inSeconds(before.start - cue.start)} s before the previous caption`);
  if (!next || next.start < cue.start) return faults;
  const [gap, least, open] = [next.start - cue.end, rules.minimum_gap ?? 0, rules.open_gap ?? 0];
  if (gap < 0) faults.push(`It ends ${inSeconds(-gap)} s after the next caption begins`);
  else if (gap + ROUNDING < least) faults.push(`${inSeconds(gap)} s to the next caption, at least ${inSeconds(least)} s`);
  else if (gap > least + FRAME && gap + ROUNDING < open) {
    faults.push(`${inSeconds(gap)} s to the next caption, ${inSeconds(least)} s or at least ${inSeconds(open)} s`);
  }
  return faults;
};

// What of a caption is not as the rules demand, in words.
const faultsOf = (cue, before, next, rules) => {
  const rows = cue.text.split("\n").filter((row) => row.trim());
  if (rows.length === 0) return ["There is no text: the caption is left out"];
  return [...rowFaults(rows, rules), ...timeFaults(cue, rows, rules), ...neighbourFaults(cue, before, next, rules)];
};

const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);

// What the server says of the lines of captions, by their text: other lines are another text.
const linesByText = (cues, lines = []) => {
  const texts = new Map(cues.map((cue) => [cue.id, cue.text]));
  return new Map(lines.map(({ id, problems, warnings, better }) =>
    [texts.get(id), { problems: problems.map(sentence), warnings: warnings.map(sentence), better }]));
};
