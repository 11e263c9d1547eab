"use strict";
// Renews the page when something happened in the queue, while somebody looks at it: after some seconds at first, then less
// and less often until somebody touches the page again. A page that nobody sees asks nothing.
(() => {
  const SHORTEST = 5000;
  const LONGEST = 60000;
  const RENEWALS = "scribed-renewals";
  const address = document.currentScript ? document.currentScript.dataset.events : null;
  if (!address) return;
  const loaded = Date.now();
  let renewals = Number(sessionStorage.getItem(RENEWALS)) || 0;
  const least = () => Math.min(LONGEST, SHORTEST * 1.3 ** renewals);
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
    else {
      sessionStorage.setItem(RENEWALS, String(renewals + 1));
      location.reload();
    }
  };
  const later = (wait) => {
    if (timer) return;
    timer = setTimeout(renew, wait);
  };
  const changed = () => later(Math.max(0, least() - (Date.now() - loaded)));
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
  for (const touched of ["pointerdown", "keydown"]) {
    addEventListener(touched, () => {
      renewals = 0;
      sessionStorage.removeItem(RENEWALS);
    }, { passive: true });
  }
  addEventListener("pagehide", close);
  setTimeout(() => later(0), LONGEST);
  open();
})();
