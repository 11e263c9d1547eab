"use strict";
(() => {
  const media = document.getElementById("media");
  const lines = Array.from(document.querySelectorAll("p[data-t]"));
  const starts = lines.map((line) => Number(line.dataset.t));
  if (!media) return;

  const byId = (id) => document.getElementById(id);
  const speed = byId("speed");
  const follow = byId("follow");
  const shortcuts = byId("shortcuts");
  const reduced = matchMedia("(prefers-reduced-motion: reduce)");
  const SKIP = 5;
  const LOOK_BACK = 8;
  for (const id of ["controls", "keys"]) byId(id).hidden = false;

  // How many numbers of an ordered list are not above a value.
  const count = (list, value) => {
    let low = 0;
    let high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] <= value) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  // The words of a line: where each begins and ends in the text, and when.
  const wordsOf = (line) => {
    const numbers = line.dataset.w ? line.dataset.w.split(" ").map(Number) : [];
    const words = { from: [], to: [], start: [] };
    let at = 0;
    let time = Math.round(Number(line.dataset.t) * 100);
    for (let n = 0; n + 3 < numbers.length; n += 4) {
      words.from.push(at + numbers[n]);
      at += numbers[n] + numbers[n + 1];
      words.to.push(at);
      words.start.push((time + numbers[n + 2]) / 100);
      time += numbers[n + 2] + numbers[n + 3];
    }
    return words;
  };

  // Only the line that is spoken has an element for each word.
  let line = null;
  let spans = [];
  let times = [];
  let word = null;

  const leave = () => {
    if (!line) return;
    const text = line.querySelector("span");
    text.textContent = text.textContent;
    line.classList.remove("now");
    line.removeAttribute("aria-current");
    line = null;
    spans = [];
    times = [];
    word = null;
  };

  const enter = (next) => {
    leave();
    if (!next) return;
    line = next;
    const text = line.querySelector("span");
    const content = text.textContent;
    const words = wordsOf(line);
    const parts = [];
    let at = 0;
    words.from.forEach((from, n) => {
      const span = document.createElement("span");
      span.className = "w";
      span.textContent = content.slice(from, words.to[n]);
      span.dataset.t = String(words.start[n]);
      parts.push(content.slice(at, from), span);
      spans.push(span);
      at = words.to[n];
    });
    parts.push(content.slice(at));
    text.replaceChildren(...parts);
    times = words.start;
    line.classList.add("now");
    line.setAttribute("aria-current", "true");
  };

  const lineAt = (time) => {
    const last = count(starts, time + 0.005) - 1;
    if (last < 0) return null;
    for (let n = last; n >= 0 && n > last - LOOK_BACK; n -= 1) {
      if (Number(lines[n].dataset.e) >= time) return lines[n];
    }
    return lines[last];
  };

  const scrollToLine = () => {
    const box = line.getBoundingClientRect();
    const top = document.querySelector(".player").getBoundingClientRect().bottom;
    if (box.top >= top && box.bottom <= innerHeight) return;
    line.scrollIntoView({ block: "center", behavior: reduced.matches ? "auto" : "smooth" });
  };

  const mark = () => {
    const time = media.currentTime;
    const next = lineAt(time);
    if (next !== line) {
      enter(next);
      if (line && follow.checked && !media.paused) scrollToLine();
    }
    const now = spans[count(times, time + 0.005) - 1] || null;
    if (now === word) return;
    if (word) word.classList.remove("now");
    if (now) now.classList.add("now");
    word = now;
  };

  let frame = 0;
  const tick = () => {
    mark();
    frame = media.paused ? 0 : requestAnimationFrame(tick);
  };

  const play = () => media.play().catch(() => {});
  const seek = (time) => {
    media.currentTime = Math.max(0, time);
    mark();
  };

  const setSpeed = (value) => {
    media.playbackRate = Number(value);
  };
  const changeSpeed = (by) => {
    const index = Math.min(Math.max(speed.selectedIndex + by, 0), speed.options.length - 1);
    speed.selectedIndex = index;
    setSpeed(speed.value);
  };

  // The time of the word at a point of a line that has no elements for words.
  const timeAtPoint = (clicked, x, y) => {
    const range = document.caretPositionFromPoint ? document.caretPositionFromPoint(x, y) : document.caretRangeFromPoint(x, y);
    const node = range && (range.offsetNode || range.startContainer);
    if (!node || node.parentNode !== clicked.querySelector("span")) return null;
    const offset = "offset" in range ? range.offset : range.startOffset;
    const words = wordsOf(clicked);
    const n = count(words.from, offset) - 1;
    return n < 0 ? null : words.start[n];
  };

  const failed = () => {
    byId("problem").hidden = false;
    media.hidden = true;
    byId("controls").hidden = true;
    byId("keys").hidden = true;
    leave();
  };

  // The waveform: how far it is played, and a click on it plays there.
  const wave = byId("waveform");
  if (wave) {
    const played = wave.querySelector(".played");
    const picture = wave.querySelector("img");
    const draw = () => {
      played.style.width = media.duration > 0 ? `${(100 * media.currentTime) / media.duration}%` : "0";
    };
    wave.hidden = false;
    picture.addEventListener("error", () => {
      wave.hidden = true;
    });
    media.addEventListener("timeupdate", draw);
    media.addEventListener("seeked", draw);
    wave.addEventListener("click", (event) => {
      const box = wave.getBoundingClientRect();
      if (!(media.duration > 0)) return;
      seek(((event.clientX - box.left) / box.width) * media.duration);
      play();
    });
  }

  // A link to a moment: what is said there is marked and in view, and plays where the browser allows it.
  const showMoment = () => {
    seek(Number(media.src.split("#t=")[1]));
    if (line) scrollToLine();
  };
  if (media.src.includes("#t=") && media.preload === "none") {
    // Nothing is read before somebody plays it.
    showMoment();
  } else if (media.src.includes("#t=")) {
    media.addEventListener("loadedmetadata", () => {
      showMoment();
      play();
    }, { once: true });
  }

  media.addEventListener("play", () => {
    if (!frame) frame = requestAnimationFrame(tick);
  });
  media.addEventListener("seeked", mark);
  media.addEventListener("timeupdate", mark);
  media.addEventListener("ratechange", () => {
    const known = Array.from(speed.options).find((option) => Number(option.value) === media.playbackRate);
    if (known) speed.value = known.value;
  });
  media.addEventListener("loadedmetadata", () => {
    if (media.tagName === "VIDEO" && !media.videoHeight) media.classList.add("sound");
  });
  media.addEventListener("error", failed);
  if (media.error) failed();
  speed.addEventListener("change", () => setSpeed(speed.value));

  document.querySelector("main").addEventListener("click", (event) => {
    if (media.error || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    const timed = event.target.closest("a[data-t], .w");
    if (timed) {
      seek(Number(timed.dataset.t));
      play();
      return;
    }
    const clicked = event.target.closest("p[data-t]");
    if (!clicked || !getSelection().isCollapsed) return;
    const time = timeAtPoint(clicked, event.clientX, event.clientY);
    if (time === null) return;
    seek(time);
    play();
  });

  document.addEventListener("keydown", (event) => {
    if (!shortcuts.checked || media.error || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, audio, video")) return;
    if (event.key === " ") {
      if (event.target.closest("button, summary")) return;
      event.preventDefault();
      if (media.paused) play();
      else media.pause();
    } else if (event.key === "ArrowLeft") {
      seek(media.currentTime - SKIP);
    } else if (event.key === "ArrowRight") {
      seek(media.currentTime + SKIP);
    } else if (event.key === "<" || event.key === ",") {
      changeSpeed(-1);
    } else if (event.key === ">" || event.key === ".") {
      changeSpeed(1);
    }
  });
})();
