"use strict";
// Renews the page when something happened in the queue, at most every few seconds, while somebody looks at it. A page that
// nobody sees asks nothing.
(() => {
  const SHORTEST = 5000;
  const LONGEST = 60000;
  const address = document.currentScript ? document.currentScript.dataset.events : null;
  if (!address) return;
  const loaded = Date.now();
  let events = null;
  let timer = 0;

  const isBusy = () => {
    const element = document.activeElement;
    return (element && element.matches("input, select, textarea, summary")) || document.querySelector("details[open], dialog[open]");
  };
  const renew = () => {
    timer = 0;
    if (document.hidden) return;
    if (isBusy()) later(SHORTEST);
    else location.reload();
  };
  const later = (wait) => {
    if (timer) return;
    timer = setTimeout(renew, wait);
  };
  const changed = () => later(Math.max(0, SHORTEST - (Date.now() - loaded)));
  const open = () => {
    if (events || document.hidden) return;
    events = new EventSource(address);
    events.addEventListener("step", changed);
    events.addEventListener("missed", changed);
  };
  const close = () => {
    if (events) events.close();
    events = null;
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else if (Date.now() - loaded > SHORTEST) renew();
    else open();
  });
  addEventListener("pagehide", close);
  setTimeout(() => later(0), LONGEST);
  open();
})();
