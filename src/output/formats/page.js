"use strict";
(() => {
  const media = document.getElementById("media");
  const lines = Array.from(document.querySelectorAll("p[data-start]"));
  const starts = lines.map((line) => Number(line.dataset.start));
  const buttons = Array.from(document.querySelectorAll("button[data-start]"));
  let shown = null;
  const mark = () => {
    let low = 0;
    let high = starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= media.currentTime + 0.05) low = middle + 1;
      else high = middle;
    }
    const line = low > 0 ? lines[low - 1] : null;
    if (line === shown) return;
    if (shown) {
      shown.classList.remove("now");
      shown.removeAttribute("aria-current");
    }
    if (line) {
      line.classList.add("now");
      line.setAttribute("aria-current", "true");
    }
    shown = line;
  };
  const failed = () => {
    media.hidden = true;
    document.getElementById("problem").hidden = false;
    for (const button of buttons) button.disabled = true;
  };
  if (!media) {
    for (const button of buttons) button.disabled = true;
    return;
  }
  media.addEventListener("timeupdate", mark);
  media.addEventListener("error", failed);
  if (media.error) failed();
  for (const button of buttons) {
    button.addEventListener("click", () => {
      media.currentTime = Number(button.dataset.start);
      media.play().catch(() => {});
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target !== document.body && event.key === " ") return;
    if (event.target === media) return;
    if (event.key === " ") {
      event.preventDefault();
      if (media.paused) media.play().catch(() => {});
      else media.pause();
    } else if (event.key === "ArrowLeft") {
      media.currentTime = Math.max(0, media.currentTime - 5);
    } else if (event.key === "ArrowRight") {
      media.currentTime += 5;
    }
  });
})();
