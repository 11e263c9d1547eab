// Keeps what a person types: in this browser at once, and on the server soon after. A lost connection, a restarted server or
// a closed tab loses nothing; where somebody else has saved meanwhile, the person decides.

const SAVE_AFTER = 500;
const SAVE_WITHIN = 900;
const KEEP_AFTER = 250;
const PATIENCE = 15000;
const FIRST_RETRY = 1000;
const LAST_RETRY = 30000;
const LOOK_EVERY = 10000;

const asText = (at) => new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });

const plainCues = (cues) => cues.map(({ id, start, end, speaker, text }) => ({ id, start, end, speaker, text }));

const plain = ({ cues, speakers }) => ({ cues: plainCues(cues), speakers });

const isTranscript = (value) => {
  const isCue = (cue) => typeof cue?.id === "string" && typeof cue.text === "string" && Number.isFinite(cue.start) && Number.isFinite(cue.end);
  return Array.isArray(value?.cues) && value.cues.every(isCue) && typeof value.speakers === "object" && value.speakers !== null;
};

// The copies of drafts in this browser. Each tab has its own.
class BrowserCopies {
  constructor(job, editor) {
    this.prefix = `scribed.draft.${job}.`;
    this.own = this.prefix + editor;
  }

  keep(copy) {
    try {
      localStorage.setItem(this.own, JSON.stringify(copy));
      return true;
    } catch {
      return false;
    }
  }

  drop(keys = [this.own]) {
    try {
      for (const key of keys) localStorage.removeItem(key);
    } catch {
      // Without a storage there are no copies.
    }
  }

  // What earlier tabs could not save, the oldest first.
  left() {
    try {
      const keys = Object.keys(localStorage).filter((key) => key.startsWith(this.prefix) && key !== this.own);
      const copies = keys.flatMap((key) => {
        const copy = JSON.parse(localStorage.getItem(key));
        return isTranscript(copy?.mine) && isTranscript(copy.base) ? [{ key, ...copy }] : [];
      });
      return copies.sort((one, other) => one.at - other.at);
    } catch {
      return [];
    }
  }
}

const problemOf = async (answer) => {
  const body = await answer.json().catch(() => ({}));
  const words = typeof body.detail === "string" ? body.detail : `the server answered ${answer.status}`;
  if (answer.status === 401) return "your session has ended";
  return words;
};

class Draft {
  // `current` returns the transcript; `told` is called with the state of saving, `met` with a draft of somebody else, `advised`
  // with what the server says of the lines of a saved draft.
  constructor({ address, job, editor, current, told, met, seen, advised }) {
    Object.assign(this, { address, job, editor, current, told, met, seen, advised });
    this.copies = new BrowserCopies(job, editor);
    this.version = 0;
    this.saved = 0;
    this.revision = 0;
    this.isKept = true;
    this.isSending = false;
    this.isPaused = false;
    // Whether the next save replaces a draft of another tab, which the server then keeps.
    this.replaces = false;
    this.retryWait = FIRST_RETRY;
    this.abandoned = [];
    addEventListener("online", () => this.flush());
    addEventListener("pagehide", () => this.keepNow());
    addEventListener("beforeunload", (event) => {
      this.keepNow();
      if (this.isUnsaved() && !this.isKept) event.preventDefault();
    });
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.flush();
      else this.look();
    });
  }

  // What the server has now.
  begin(base, { revision, draftRevision, language }) {
    this.base = plain(base);
    this.baseRevision = revision;
    this.language = language;
    this.revision = draftRevision;
    if (!this.looking) this.looking = setInterval(() => this.look(), LOOK_EVERY);
  }

  isUnsaved() {
    return this.saved < this.version;
  }

  changed() {
    this.version += 1;
    const now = performance.now();
    if (!this.isPaused && !this.retryAt) this.told({ state: "changed" });
    if (!this.keepTimer) this.keepTimer = setTimeout(() => this.keepNow(), KEEP_AFTER);
    if (this.isPaused) return;
    this.firstChange ??= now;
    if (this.retryAt) return;
    clearTimeout(this.saveTimer);
    this.saveTimer = setTimeout(() => this.save(), Math.max(0, Math.min(SAVE_AFTER, this.firstChange + SAVE_WITHIN - now)));
  }

  keepNow() {
    clearTimeout(this.keepTimer);
    this.keepTimer = 0;
    if (!this.isUnsaved()) return;
    this.isKept = this.copies.keep({ at: Date.now(), revision: this.baseRevision, base: this.base, mine: plain(this.current()) });
  }

  flush() {
    this.keepNow();
    this.retryAt = 0;
    if (this.isUnsaved() && !this.isPaused) this.save();
  }

  // Resolves when all is saved or saving has failed; true if all is saved.
  async settle() {
    this.flush();
    while (this.isSending || (this.isUnsaved() && !this.isPaused && !this.retryAt)) {
      await new Promise((resume) => setTimeout(resume, 50));
    }
    return !this.isUnsaved();
  }

  async save() {
    if (this.isSending || this.isPaused) return;
    clearTimeout(this.saveTimer);
    this.isSending = true;
    this.firstChange = undefined;
    this.retryAt = 0;
    this.told({ state: "saving" });
    const [version, sent] = [this.version, plain(this.current())];
    try {
      const body = JSON.stringify({ base_revision: this.baseRevision, draft_revision: this.revision, editor: this.editor, language: this.language, replaces: this.replaces, ...sent });
      const headers = { "content-type": "application/json" };
      const answer = await fetch(this.address, { method: "PUT", headers, body, signal: AbortSignal.timeout(PATIENCE) });
      if (answer.ok) this.wasSaved(await answer.json(), version, sent);
      else if (answer.status === 409) this.wasOvertaken();
      else this.failed(await problemOf(answer), answer.status);
    } catch {
      this.failed("the server does not answer", 0);
    } finally {
      this.isSending = false;
    }
    if (this.isUnsaved() && !this.isPaused && !this.retryAt) this.saveTimer = setTimeout(() => this.save(), SAVE_AFTER);
  }

  wasSaved({ draft_revision: revision, saved_at: at, editors, lines }, version, sent) {
    this.revision = revision;
    this.replaces = false;
    this.base = sent;
    this.saved = version;
    this.retryWait = FIRST_RETRY;
    this.copies.drop(this.abandoned.splice(0));
    if (!this.isUnsaved()) {
      this.copies.drop();
      this.isKept = true;
    }
    this.told(this.isUnsaved() ? { state: "changed" } : { state: "saved", at });
    this.seen(editors);
    this.advised(sent.cues, lines);
  }

  failed(why, status) {
    this.keepNow();
    const wait = this.retryWait;
    this.retryWait = Math.min(LAST_RETRY, wait * 2);
    this.retryAt = performance.now() + wait;
    this.told({ state: "failed", why, isKept: this.isKept, isSignedOut: status === 401, wait });
    clearTimeout(this.saveTimer);
    this.saveTimer = setTimeout(() => this.save(), wait);
  }

  wasOvertaken() {
    this.keepNow();
    this.isPaused = true;
    this.told({ state: "overtaken" });
    this.met();
  }

  // Goes on after somebody else's draft, with the person's choice as the current transcript.
  resume(base, revisions, isUnsaved) {
    this.begin(base, revisions);
    this.isPaused = false;
    this.retryAt = 0;
    if (isUnsaved) {
      this.replaces = true;
      this.version += 1;
      this.save();
    } else {
      this.saved = this.version;
      this.copies.drop();
      this.copies.drop(this.abandoned.splice(0));
      this.told({ state: "saved", at: Date.now() });
    }
  }

  // Asks who else is here, and whether somebody else has saved.
  async look() {
    if (document.hidden || this.isPaused) return;
    try {
      const answer = await fetch(`${this.address}?editor=${this.editor}`, { signal: AbortSignal.timeout(PATIENCE) });
      if (!answer.ok) return;
      const { draft_revision: revision, saved_at: at, by, editors } = await answer.json();
      if (this.retryAt) this.flush();
      const isNewer = revision !== this.revision && !this.isSending && !this.isUnsaved();
      this.seen(editors, isNewer ? { by, at } : null);
    } catch {
      // Saving tells of a lost connection.
    }
  }
}
