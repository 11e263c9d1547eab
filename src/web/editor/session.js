// The draft of this page: opening, saving, other editors, accepting and discarding.

const SAVE_WORDS = {
  changed: () => "Not saved yet…",
  saving: () => "Saving…",
  saved: ({ at }) => `Saved ${asText(at)}`,
  overtaken: () => "Not saved: somebody else saved meanwhile",
  failed: ({ why, isKept }) => `Not saved on the server: ${why}. ${isKept ? "Your changes are kept in this browser" : "This browser cannot keep them: leave this page open"}; scribed tries again`,
};

const showSaving = (told) => {
  const words = SAVE_WORDS[told.state](told);
  const state = byId("save-state");
  const wasFailed = state.dataset.state === "failed";
  state.dataset.state = told.state;
  state.textContent = words;
  const signIn = element("a", { href: page.dataset.signIn, target: "_blank", textContent: "Sign in again" });
  showNotice("signed-out", told.isSignedOut ? "Your session has ended. Sign in in another tab; this page then goes on." : "", signIn);
  if (told.state === "failed" && !wasFailed) say(words);
  if (told.state === "saved" && wasFailed) say("The connection is back; all changes are saved.");
  byId("discard").disabled = false;
};

const readTranscript = async () => {
  const answer = await fetch(`${transcriptAddress}?editor=${editorId}`, { signal: AbortSignal.timeout(60000) });
  if (!answer.ok) throw new Error(await problemOf(answer));
  const read = await answer.json();
  if (list) showLines(versionOf(read).cues, read.lines);
  return read;
};

// The draft if there is one, else the text of the job.
const versionOf = (read) => plain(read.draft ?? read);
const revisionsOf = (read) => ({ revision: read.revision, draftRevision: read.draft_revision, language: read.language });

const others = (editors = []) => editors.filter((one) => one.editor !== editorId);

const showOthers = (editors, newer) => {
  const names = [...new Set(others(editors).map((one) => one.name))];
  const words = `${names.join(" and ")} ${names.length > 1 ? "have" : "has"} this transcript open, too. Whoever saves second is asked what counts.`;
  const text = names.length > 0 ? words : "";
  if (byId("others").textContent !== text) {
    showNotice("others", text);
    if (text) say(text);
  }
  if (newer?.by) showNotice("newer", `${newer.by} saved another version at ${asText(newer.at)}.`, button("Show it", () => adopt()));
  else if (newer) showNotice("newer", "The draft was changed elsewhere.", button("Show it", () => adopt()));
  else if (newer === null) showNotice("newer", "");
};

// Shows what the server has; what was here can be brought back with Undo.
const adopt = async () => {
  const read = await readTranscript().catch((error) => say(`The draft cannot be read: ${error.message}.`));
  if (!read) return;
  const theirs = versionOf(read);
  apply(theirs, "showed the other version");
  draft.resume(theirs, revisionsOf(read), false);
  showNotice("newer", "");
};

// Somebody else has saved: the person decides. Neither version is lost: the other one is kept by the server, and the one
// that was here is a step that can be undone.
const meet = async () => {
  const read = await readTranscript().catch(() => null);
  if (!read) {
    setTimeout(meet, LAST_RETRY / 6);
    return;
  }
  const theirs = versionOf(read);
  // Captions of another text have other ids.
  const canMerge = read.revision === draft.baseRevision;
  const both = canMerge ? merged(draft.base, plain(transcript), theirs) : { conflicts: 0 };
  byId("conflict-merge").hidden = !canMerge;
  const dialog = byId("conflict-dialog");
  const who = read.draft ? `${read.draft.by} saved a draft at ${asText(read.draft.saved_at)}` : "Somebody else accepted or discarded the draft";
  byId("conflict-words").textContent = `${who}, while you were editing. Your changes are not lost: choose what counts.`;
  byId("conflict-merge-words").textContent = !canMerge ? "The versions cannot be merged: the text of the recording is another one now." : both.conflicts === 0 ? "No caption was changed by both." : `${both.conflicts} captions or names were changed by both: there yours count.`;
  const choose = (choice) => {
    dialog.close();
    if (choice === "theirs") apply(theirs, "took the other version");
    if (choice === "merge") apply(both.transcript, "merged two versions");
    draft.resume(theirs, revisionsOf(read), choice !== "theirs");
    say({ theirs: "The other version is shown. Undo brings yours back.", merge: "Both versions are merged.", mine: "Your version counts." }[choice]);
  };
  for (const choice of ["merge", "mine", "theirs"]) byId(`conflict-${choice}`).onclick = () => choose(choice);
  if (!dialog.open) dialog.showModal();
};

const draft = new Draft({
  address: draftAddress,
  job,
  editor: editorId,
  current: () => transcript,
  told: showSaving,
  met: meet,
  seen: showOthers,
  advised: showLines,
});

// What earlier tabs could not save is added, as a step that can be undone.
const recover = (base) => {
  for (const copy of isReadOnly ? [] : draft.copies.left()) {
    const canMerge = copy.revision === draft.baseRevision;
    const both = canMerge ? merged(copy.base, copy.mine, plain(transcript)).transcript : ordered(copy.mine);
    draft.abandoned.push(copy.key);
    if (isSame(plain(both), plain(transcript))) continue;
    apply(both, "added changes that this browser had kept");
    const what = canMerge ? "are added" : "are shown: they were made to an earlier text of the recording";
    const words = `Changes of ${asText(copy.at)} that were kept in this browser ${what}.`;
    showNotice("recovered", words, button("Undo", () => {
      undo();
      showNotice("recovered", "");
    }));
    say(words);
  }
  if (!draft.isUnsaved()) draft.copies.drop(draft.abandoned.splice(0));
};

const showPrevious = (previous) => {
  if (!previous || isReadOnly) return showNotice("previous", "");
  const words = `A draft of ${previous.by} (${asText(previous.saved_at)}) was set aside.`;
  showNotice("previous", words, button("Bring it back", restore), button("Close", () => showNotice("previous", "")));
};

const addFirst = () => {
  const added = newId();
  apply(inserted(transcript, null, added), "added a caption");
  list.focus(added);
  showNotice("empty", "");
};

const open = (read) => {
  ({ rules, words, suspects } = { ...read, suspects: read.suspects.toSorted((one, other) => one.start - other.start) });
  words = words.toSorted((one, other) => one.start - other.start);
  page.querySelector("#cues").lang = read.language ?? "";
  try {
    for (const key of JSON.parse(localStorage.getItem(checkedKey)) ?? []) checked.add(key);
  } catch {
    // Then none counts as checked.
  }
  list = new CueList({ root: byId("cues"), tools: byId("tools"), words, rules, doubt: read.doubt_below ?? 0.5, suspects, isReadOnly, acts: listActs });
  const base = versionOf(read);
  for (const id of ["replace-text", "replace-one", "replace-all"]) byId(id).disabled = isReadOnly;
  show(ordered(base));
  showLines(base.cues, read.lines);
  draft.begin(base, revisionsOf(read));
  byId("discard").disabled = isReadOnly || !read.draft;
  byId("accept").disabled = isReadOnly;
  byId("save-state").textContent = isReadOnly ? "You may read, but not change" : read.draft ? `Draft of ${read.draft.by}, saved ${asText(read.draft.saved_at)}` : "No changes yet";
  showOthers(read.editors);
  showPrevious(read.previous);
  if (base.cues.length === 0 && !isReadOnly) showNotice("empty", "There are no captions: the text of the recording has no times.", button("Add a caption", addFirst));
  if (read.draft?.is_outdated) showNotice("outdated", "The text of the recording is another one than when this draft began. Accepting the draft replaces it.", button("Close", () => showNotice("outdated", "")));
  recover(base);
};

const command = async (address, method, body) => {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(address, { method, headers, body: JSON.stringify(body), signal: AbortSignal.timeout(60000) });
  if (!answer.ok) throw new Error(await problemOf(answer));
  return answer.json();
};

const begin = (read) => {
  const base = versionOf(read);
  draft.resume(base, revisionsOf(read), false);
  byId("discard").disabled = !read.draft;
  showPrevious(read.previous);
  return base;
};

const accept = async () => {
  list.commit();
  byId("accept").disabled = true;
  // A text that nobody had to change can be accepted, too.
  if (byId("discard").disabled) draft.changed();
  try {
    if (!(await draft.settle())) throw new Error("not all changes are saved yet");
    const done = await command(`${draftAddress}/accept`, "POST", { base_revision: draft.baseRevision, draft_revision: draft.revision, editor: editorId });
    show(ordered(begin(await readTranscript())));
    byId("save-state").textContent = `Accepted ${asText(done.at)}`;
    const file = ({ path, change }) => element("li", { dir: "auto" }, `${path}: ${change}`);
    byId("accepted-files").replaceChildren(...done.files.map(file));
    byId("accepted-words").textContent = [`This is the text of the recording now, accepted by ${done.by}.`, done.note, done.problem].filter(Boolean).join(" ");
    byId("accepted-dialog").showModal();
  } catch (error) {
    say(`The text is not accepted: ${error.message}. Your draft stays.`);
    showNotice("failed", `The text is not accepted: ${error.message}. Your draft stays.`, button("Close", () => showNotice("failed", "")));
  } finally {
    byId("accept").disabled = isReadOnly;
  }
};

const discard = async () => {
  byId("discard-dialog").close();
  try {
    await draft.settle();
    await command(draftAddress, "DELETE", { draft_revision: draft.revision, editor: editorId });
    const read = await readTranscript();
    const base = versionOf(read);
    past.push({ transcript, name: "discarded the draft", at: 0 });
    show(ordered(base));
    begin(read);
    byId("save-state").textContent = "Draft discarded";
    say("The draft is discarded. It can be brought back.");
  } catch (error) {
    showNotice("failed", `The draft is not discarded: ${error.message}.`, button("Close", () => showNotice("failed", "")));
  }
};

const restore = async () => {
  try {
    await command(`${draftAddress}/restore`, "POST", { draft_revision: draft.revision, editor: editorId });
    const read = await readTranscript();
    past.push({ transcript, name: "brought a draft back", at: 0 });
    show(ordered(begin(read)));
    byId("save-state").textContent = "Draft brought back";
    say("The draft is back.");
  } catch (error) {
    showNotice("failed", `The draft is not brought back: ${error.message}.`, button("Close", () => showNotice("failed", "")));
  }
};

// Controls and keys.

const CLICKS = {
  undo, redo, accept, "open-find": openFind, "find-close": closeFind, "find-next": () => findNext(1), "find-before": () => findNext(-1),
  "replace-one": replaceOne, "replace-all": replaceAll, speakers: () => openSpeakers(), help: () => byId("help-dialog").showModal(),
  discard: () => byId("discard-dialog").showModal(), "discard-yes": discard, "suspect-next": () => toSuspect(1),
  "suspect-before": () => toSuspect(-1), "faulty-next": toFaulty, split: acts.split, join: acts.join, insert: acts.insert,
  remove: acts.remove, "start-here": acts.startHere, "end-here": acts.endHere, shift: acts.shift,
};

const withAlt = {
  n: () => toSuspect(1), p: () => toSuspect(-1), k: toggle, j: () => seek(position() - SKIP * 1000), l: () => seek(position() + SKIP * 1000),
  i: acts.startHere, o: acts.endHere, r: acts.playCue, x: toFaulty, h: () => byId("help-dialog").showModal(),
  ArrowUp: () => acts.neighbour(-1), ArrowDown: () => acts.neighbour(1),
};

const withControl = { z: undo, y: redo, f: openFind, s: () => draft.flush(), Enter: acts.split };
const withBoth = { z: redo, Enter: acts.join };

// A key by its letter; by its place where the layout or the Alt key makes it another character.
const letterOf = ({ key, code }) => (/^[a-z]$/i.test(key) ? key.toLowerCase() : /^Key[A-Z]$/.test(code) ? code.slice(3).toLowerCase() : key);

const pressed = (event) => {
  if (!list || event.isComposing || document.querySelector("dialog[open]") || event.getModifierState("AltGraph")) return;
  const isControl = event.ctrlKey || event.metaKey;
  const letter = letterOf(event);
  let act = null;
  if (event.altKey && !isControl) act = withAlt[letter];
  else if (isControl && !event.altKey) act = (event.shiftKey ? withBoth : withControl)[letter];
  else if (event.key === "Escape" && event.target.closest("#find")) act = closeFind;
  else if (event.key === "Enter" && event.target.id === "find-text") act = () => findNext(event.shiftKey ? -1 : 1);
  else if (event.key === " " && event.target === document.body) act = toggle;
  if (!act) return;
  event.preventDefault();
  list.commit();
  act();
};

const setUp = () => {
  for (const [id, act] of Object.entries(CLICKS)) byId(id).addEventListener("click", act);
  byId("find-text").addEventListener("input", () => {
    foundAt = -1;
    showFound();
  });
  byId("match-case").addEventListener("change", showFound);
  byId("shift-dialog").addEventListener("close", (event) => {
    if (event.target.returnValue === "shift") shiftNow();
    event.target.returnValue = "";
  });
  for (const close of page.querySelectorAll("dialog [data-close]")) close.addEventListener("click", () => close.closest("dialog").close());
  const conflict = byId("conflict-dialog");
  conflict.addEventListener("cancel", (event) => event.preventDefault());
  conflict.addEventListener("close", () => draft.isPaused && meet());
  document.addEventListener("keydown", pressed);
  // The history of the browser knows only what was typed.
  document.addEventListener("beforeinput", (event) => {
    const act = { historyUndo: undo, historyRedo: redo }[event.inputType];
    if (!act || !event.target.closest("#cues")) return;
    event.preventDefault();
    act();
  });
  // What is being typed into a time counts, too; this comes before the draft is kept.
  for (const [target, name] of [[window, "pagehide"], [document, "visibilitychange"]]) {
    target.addEventListener(name, () => list?.commit(), { capture: true });
  }
  setUpPlayer();
};

setUp();
readTranscript().then(open).catch((error) => {
  showNotice("failed", `The transcript cannot be read: ${error.message}. Load the page again.`);
  byId("save-state").textContent = "Not loaded";
});
