// The captions as a list. Only those near the window have controls, so that a recording of hours stays quick; the others
// are plain text, which the browser finds and screen readers read.

const FILL_MARGIN = "1200px 0px";
const ROW_HEIGHT = 26;

const element = (name, properties = {}, ...children) => {
  const { attributes = {}, ...own } = properties;
  const made = Object.assign(document.createElement(name), own);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const setIfOther = (target, key, value) => {
  if (target[key] !== value) target[key] = value;
};

class CueList {
  // `acts`: what the controls of a caption do. `tools`: the controls that stand in the caption with the cursor.
  constructor({ root, tools, words, rules, doubt, suspects, isReadOnly, acts }) {
    Object.assign(this, { root, tools, words, rules, doubt, suspects, isReadOnly, acts });
    this.rows = new Map();
    // What the server says of lines, by the text of a caption.
    this.advice = new Map();
    this.active = null;
    this.now = null;
    this.nowWord = null;
    this.observer = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: FILL_MARGIN });
    root.addEventListener("focusin", (event) => this.enter(this.rowOf(event.target)));
    root.addEventListener("input", (event) => this.typed(event.target));
    root.addEventListener("change", (event) => this.chosen(event.target));
    root.addEventListener("keydown", (event) => this.nudged(event));
    root.addEventListener("click", (event) => this.clicked(event));
  }

  rowOf(target) {
    return this.rows.get(target.closest("li.cue")?.dataset.id);
  }

  update(transcript) {
    const hasOtherSpeakers = this.transcript?.speakers !== transcript.speakers;
    this.transcript = transcript;
    this.numbers = speakerNumbers(transcript);
    const speakersKey = JSON.stringify([this.numbers, transcript.speakers]);
    const isOther = hasOtherSpeakers || speakersKey !== this.speakersKey;
    this.speakersKey = speakersKey;
    const { cues } = transcript;
    const ids = new Set(cues.map((cue) => cue.id));
    for (const [id, row] of this.rows) if (!ids.has(id)) this.drop(id, row);
    let place = this.root.firstElementChild;
    cues.forEach((cue, at) => {
      const row = this.rows.get(cue.id) ?? this.add(cue);
      if (row.li === place) place = place.nextElementSibling;
      else this.root.insertBefore(row.li, place);
      this.set(row, cue, cues[at - 1], cues[at + 1], isOther);
    });
    this.countFaulty();
  }

  countFaulty() {
    this.faulty = this.transcript.cues.filter((cue) => this.problems(this.rows.get(cue.id)).length > 0);
  }

  // The rules that a caption breaks, in words.
  problems({ cue, faults }) {
    const problems = this.advice.get(cue.text)?.problems ?? [];
    return problems.length > 0 ? [...faults, ...problems] : faults;
  }

  advise(advice) {
    const former = this.advice;
    this.advice = advice;
    for (const row of this.rows.values()) {
      const { text } = row.cue;
      if (row.isFilled && !isSame(former.get(text), advice.get(text))) this.show(row, false);
    }
    this.countFaulty();
  }

  add(cue) {
    const li = element("li", { className: "cue" });
    li.dataset.id = cue.id;
    const row = { li, isFilled: false, faults: [] };
    this.rows.set(cue.id, row);
    this.observer.observe(li);
    return row;
  }

  drop(id, row) {
    this.observer.unobserve(row.li);
    if (this.active === row) {
      this.tools.remove();
      this.active = null;
    }
    if (this.now === row) this.now = null;
    row.li.remove();
    this.rows.delete(id);
  }

  set(row, cue, before, next, isOther) {
    const isSameCue = row.cue === cue;
    if (isSameCue && row.before === before && row.next === next && !isOther) return;
    const faults = isSameCue && row.before === before && row.next === next ? row.faults : faultsOf(cue, before, next, this.rules);
    Object.assign(row, { cue, before, next, faults });
    if (row.isFilled) this.show(row, isOther);
    else if (!isSameCue || isOther) this.empty(row);
  }

  seen(entries) {
    for (const { target, isIntersecting } of entries) {
      const row = this.rows.get(target.dataset.id);
      if (!row) continue;
      if (isIntersecting) this.fill(row);
      else if (row.isFilled && !target.contains(document.activeElement) && this.active !== row) {
        target.style.minHeight = `${target.offsetHeight}px`;
        this.empty(row);
      }
    }
  }

  // The caption as text.
  empty(row) {
    const { cue, li } = row;
    row.isFilled = false;
    if (!li.style.minHeight) li.style.minHeight = `${70 + ROW_HEIGHT * cue.text.split("\n").length}px`;
    const speaker = cue.speaker === null ? "" : ` ${nameOf(this.transcript.speakers, cue.speaker)}`;
    li.replaceChildren(element("p", { className: "muted", dir: "auto" }, `${clock(cue.start)}${speaker}`),
      element("p", { className: "plain", dir: "auto" }, cue.text));
  }

  fill(row) {
    if (row.isFilled) return;
    row.isFilled = true;
    row.li.style.minHeight = "";
    const labelled = (label) => ({ "aria-label": label });
    const time = (label) => element("input", { type: "text", className: "time", inputMode: "decimal", autocomplete: "off", spellcheck: false, readOnly: this.isReadOnly, title: `${label}; arrow keys change it by a tenth of a second`, attributes: labelled(label) });
    const parts = {
      group: element("div", { attributes: { role: "group" } }),
      play: element("button", { type: "button", className: "play", title: "Play from here" }),
      start: time("Start"),
      end: time("End"),
      speaker: element("select", { disabled: this.isReadOnly, attributes: labelled("Speaker") }),
      marks: element("div", { className: "marks", dir: "auto", attributes: { "aria-hidden": "true" } }),
      text: element("textarea", { rows: 1, dir: "auto", readOnly: this.isReadOnly, attributes: labelled("Text") }),
      review: element("p", { className: "suspect" }),
      faults: element("ul", { className: "faults" }),
      warnings: element("ul", { className: "warnings" }),
      better: element("p", { className: "better" }),
      lines: element("span", { className: "lines", dir: "auto" }),
      take: element("button", { type: "button", textContent: "Use these line breaks", hidden: this.isReadOnly }),
    };
    parts.better.append("Better: ", parts.lines, parts.take);
    parts.start.dataset.part = "start";
    parts.end.dataset.part = "end";
    row.parts = parts;
    const head = element("div", { className: "head" }, parts.play, parts.start, element("span", { attributes: { "aria-hidden": "true" } }, "–"), parts.end, parts.speaker);
    const field = element("div", { className: "field" }, parts.marks, parts.text);
    parts.group.append(head, field, parts.review, parts.faults, parts.warnings, parts.better);
    row.li.replaceChildren(parts.group);
    if (this.active === row) parts.group.append(this.tools);
    this.show(row, true);
  }

  show(row, isOther) {
    const { cue, parts } = row;
    parts.group.setAttribute("aria-label", `Caption at ${clock(cue.start)}`);
    parts.play.setAttribute("aria-label", `Play from ${clock(cue.start)}`);
    setIfOther(parts.play, "textContent", "▶");
    for (const part of ["start", "end"]) {
      if (parts[part] !== document.activeElement || milliseconds(parts[part].value) !== cue[part]) setIfOther(parts[part], "value", clock(cue[part]));
      parts[part].removeAttribute("aria-invalid");
    }
    if (parts.text.value !== cue.text) parts.text.value = cue.text;
    if (isOther) this.showSpeakers(row);
    setIfOther(parts.speaker, "value", cue.speaker === null ? "" : String(cue.speaker));
    this.showMarks(row);
    this.showProblems(row);
    const reasons = this.suspects.filter((span) => span.start < cue.end && span.end > cue.start).map((span) => span.reason);
    parts.review.textContent = reasons.length > 0 ? `Compare with the recording: ${reasons.join("; ")}` : "";
    parts.review.hidden = reasons.length === 0;
  }

  showProblems(row) {
    const { cue, parts } = row;
    const { warnings = [], better = null } = this.advice.get(cue.text) ?? {};
    const listed = (all) => all.map((words) => element("li", {}, words));
    parts.faults.replaceChildren(...listed(this.problems(row)));
    parts.warnings.replaceChildren(...listed(warnings));
    setIfOther(parts.lines, "textContent", better ?? "");
    parts.better.hidden = better === null;
  }

  showSpeakers({ parts }) {
    const option = (value, text) => element("option", { value: String(value), textContent: text });
    const known = this.numbers.map((number) => option(number, nameOf(this.transcript.speakers, number)));
    parts.speaker.replaceChildren(option("", "No speaker"), ...known, option("new", "New speaker…"));
  }

  // The text with its marks lies behind the field: words in doubt are underlined, the one that is said is marked.
  showMarks(row) {
    const { cue, parts } = row;
    const places = placed(cue.text, wordsOf(cue, this.words));
    const pieces = [];
    let at = 0;
    for (const { from, to, word } of places) {
      const isNow = word === this.nowWord;
      const isDoubtful = word.confidence < this.doubt;
      if (!isNow && !isDoubtful) continue;
      const className = [isNow && "said", isDoubtful && "unsure"].filter(Boolean).join(" ");
      pieces.push(cue.text.slice(at, from), element("span", { className, textContent: cue.text.slice(from, to) }));
      at = to;
    }
    // The space keeps the height of an empty last line.
    parts.marks.replaceChildren(...pieces, `${cue.text.slice(at)} `);
    row.doubts = places.filter(({ word }) => word.confidence < this.doubt).map(({ from, to }) => cue.text.slice(from, to));
    parts.text.title = row.doubts.length > 0 ? `In doubt: ${row.doubts.join(", ")}` : "";
  }

  enter(row) {
    if (!row || this.active === row) return;
    this.active?.li.classList.remove("active");
    this.active = row;
    row.li.classList.add("active");
    this.tools.hidden = this.isReadOnly;
    if (row.parts && !this.isReadOnly) row.parts.group.append(this.tools);
    this.acts.entered(row.cue.id);
  }

  typed(target) {
    const row = this.rowOf(target);
    if (row && target === row.parts.text) this.acts.type(row.cue.id, target.value);
  }

  chosen(target) {
    const row = this.rowOf(target);
    if (!row || !row.parts) return;
    if (target === row.parts.speaker) this.acts.speaker(row.cue.id, target.value);
    if (target.dataset.part) this.commitTime(row, target);
  }

  // Takes over a time that is being typed.
  commitTime(row, input) {
    const part = input.dataset.part;
    const value = milliseconds(input.value);
    if (value === null) {
      input.value = clock(row.cue[part]);
      this.acts.say(`That is no time: ${clock(row.cue[part])} stays. Write it as 0:01:02.500.`);
    } else if (value !== row.cue[part]) this.acts.time(row.cue.id, { [part]: value });
    else input.value = clock(value);
  }

  commit() {
    const input = document.activeElement;
    const row = input && this.rowOf(input);
    if (row && input.dataset.part) this.commitTime(row, input);
  }

  nudged(event) {
    const { target, key } = event;
    const row = this.rowOf(target);
    if (!row || !target.dataset.part || this.isReadOnly || event.altKey) return;
    if (key === "Enter") this.commitTime(row, target);
    const way = { ArrowUp: 1, ArrowDown: -1 }[key];
    if (!way) return;
    event.preventDefault();
    const value = milliseconds(target.value) ?? row.cue[target.dataset.part];
    this.acts.time(row.cue.id, { [target.dataset.part]: Math.max(0, value + way * (event.shiftKey ? 1000 : 100)) });
  }

  clicked({ target }) {
    const row = this.rowOf(target);
    if (!row) return;
    if (!row.isFilled) this.focus(row.cue.id);
    else if (target === row.parts.play) this.acts.play(row.cue.start);
    else if (target === row.parts.take) this.take(row);
    else if (target === row.parts.text && target.selectionStart === target.selectionEnd) this.acts.word(row.cue, target.selectionStart);
  }

  // Takes over the better lines. The button goes away with them, so that the text gets the cursor.
  take({ cue }) {
    const better = this.advice.get(cue.text)?.better;
    if (!better) return;
    this.acts.lines(cue.id, better);
    this.focus(cue.id);
  }

  // Brings a caption into view, with the cursor in its text.
  focus(id, selection) {
    const row = this.rows.get(id);
    if (!row) return;
    this.fill(row);
    this.enter(row);
    row.parts.text.focus({ preventScroll: true });
    if (selection) row.parts.text.setSelectionRange(...selection);
    this.reveal(row);
  }

  reveal({ li }) {
    const box = li.getBoundingClientRect();
    const fixed = ["#bar", "#bar .player"].map((what) => document.querySelector(what).getBoundingClientRect().bottom);
    const top = Math.max(0, ...fixed);
    if (box.top >= top && box.bottom <= innerHeight) return;
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    li.scrollIntoView({ block: "center", behavior: isStill || Math.abs(box.top) > 3000 ? "auto" : "smooth" });
  }

  cursor() {
    const text = this.active?.parts?.text;
    return text ? { id: this.active.cue.id, from: text.selectionStart, to: text.selectionEnd } : null;
  }

  // Marks what is said at a time.
  mark(time, follows) {
    const { cues } = this.transcript;
    const last = countUpTo(cues, time, (cue) => cue.start) - 1;
    const cue = cues[last] && time < cues[last].end ? cues[last] : null;
    const row = cue ? this.rows.get(cue.id) : null;
    const word = this.words[countUpTo(this.words, time, (one) => one.start) - 1] ?? null;
    const isOtherWord = word !== this.nowWord;
    this.nowWord = word;
    if (row !== this.now) {
      const former = this.now;
      former?.li.classList.remove("now");
      former?.li.removeAttribute("aria-current");
      this.now = row;
      row?.li.classList.add("now");
      row?.li.setAttribute("aria-current", "true");
      if (former?.isFilled) this.showMarks(former);
      if (row && follows) this.reveal(row);
    }
    if (isOtherWord && row?.isFilled) this.showMarks(row);
  }
}
