// A little script of our own. Every page works without it; with it, parts change in their place.
//   form[data-live="#id"]     a change of a field fetches the page again and replaces #id
//   [data-poll="seconds"]     an element with an id that fetches its page again until the mark is gone
//   [data-send="#form"]       an element with an id that sends a form to data-to, a moment after it came; what it leads to replaces it
//   input[data-filter="#id"]  hides the rows of a table or list that do not have the words
//   ol[data-order]            its items can be dragged, and moved by Alt + arrow keys
//   button[data-copy="#id"]   copies a text
"use strict";
(() => {
  document.documentElement.classList.add("script");
  const live = document.getElementById("live");
  const words = document.body.dataset; // the page has them in its language
  const say = (text) => { live.textContent = ""; requestAnimationFrame(() => { live.textContent = text; }); };

  // One request a place: a later one ends the earlier one, so that answers never arrive out of order.
  const under_way = new Map();
  const fetch_part = async (place, url, options) => {
    under_way.get(place)?.abort();
    const abort = new AbortController();
    under_way.set(place, abort);
    const response = await fetch(url, { ...options, signal: abort.signal, credentials: "same-origin" });
    if (response.status === 401) { location.reload(); return null; }
    const text = await response.text();
    return new DOMParser().parseFromString(text, "text/html");
  };

  const replace = (place, page) => {
    const fresh = page?.querySelector(place);
    const stale = document.querySelector(place);
    if (!fresh || !stale) return false;
    const focus = document.activeElement;
    const mark = stale.contains(focus) && focus.id ? focus.id : null;
    const open = [...stale.querySelectorAll("details[open] > summary")].map((s) => s.textContent);
    stale.replaceWith(document.adoptNode(fresh));
    for (const summary of fresh.querySelectorAll("details > summary"))
      if (open.includes(summary.textContent)) summary.parentElement.open = true;
    if (mark) document.getElementById(mark)?.focus();
    prepare(fresh);
    for (const input of document.querySelectorAll("input[data-filter]"))
      if (input.value && fresh.querySelector(input.dataset.filter)) input.dispatchEvent(new Event("input"));
    return true;
  };

  const live_form = (form) => {
    const place = form.dataset.live;
    let timer = 0;
    const change = async () => {
      const query = new URLSearchParams(new FormData(form));
      query.delete("csrf");
      const url = `${form.action}?${query}`;
      for (const [inside, abort] of under_way)
        if (inside !== place && document.querySelector(`${place} ${inside}`)) abort.abort();
      document.querySelector(place)?.setAttribute("aria-busy", "true");
      try {
        const page = await fetch_part(place, url);
        if (page && replace(place, page)) {
          history.replaceState(null, "", url);
          say(document.querySelector(`${place} .answer`)?.textContent ?? words.changed);
        }
        for (const other of page ? (form.dataset.also ?? "").split(" ").filter(Boolean) : []) replace(other, page);
      } catch (error) {
        if (error.name !== "AbortError") say(words.gone);
      }
    };
    form.addEventListener("change", () => {
      under_way.get(place)?.abort(); // its answer would undo what was just changed
      clearTimeout(timer);
      timer = setTimeout(change, 30);
    });
    form.addEventListener("submit", (event) => { event.preventDefault(); change(); });
  };

  const poll = (element) => {
    const wait = Number(element.dataset.poll) * 1000;
    const place = `#${CSS.escape(element.id)}`;
    setTimeout(async () => {
      if (!element.isConnected) return;
      try {
        const page = await fetch_part(place, location.href, { headers: { "X-Poll": "1" } });
        if (!page) return;
        const was = element.dataset.state;
        const now = page.querySelector(place)?.dataset.state;
        replace(place, page);
        if (was !== now && now) say(now);
      } catch (error) {
        if (error.name === "AbortError") return;
        say(words.gone);
        poll(element);
      }
    }, wait);
  };

  const send = (element) => {
    const place = `#${CSS.escape(element.id)}`;
    setTimeout(async () => {
      if (!element.isConnected || element.closest("[aria-busy]")) return; // a later change is under way
      const body = new URLSearchParams(new FormData(document.querySelector(element.dataset.send)));
      try {
        const page = await fetch_part(place, element.dataset.to, { method: "POST", body });
        if (page && element.isConnected) replace(place, page);
      } catch (error) {
        if (error.name !== "AbortError") say(words.gone);
      }
    }, 600);
  };

  const filter = (input) => {
    const change = () => { // looks for rows each time: a part that was fetched has others
      const rows = document.querySelectorAll(`${input.dataset.filter} [data-words]`);
      const count = document.querySelector(`${input.dataset.filter}-count`);
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const fits = wanted.every((word) => row.dataset.words.toLowerCase().includes(word));
        row.hidden = !fits;
        shown += fits;
      }
      if (count) count.textContent = `${shown} ${words.of} ${rows.length}`;
    };
    input.addEventListener("input", change);
    if (input.value) change();
  };

  const order = (list) => {
    let dragged = null;
    const drop = () => {
      for (const [i, item] of [...list.children].entries()) {
        const place = item.querySelector("input[data-place]");
        if (place) place.value = i + 1;
      }
      list.closest("form")?.dispatchEvent(new Event("change", { bubbles: true }));
    };
    for (const item of list.children) {
      item.draggable = true;
      item.addEventListener("dragstart", () => { dragged = item; });
      item.addEventListener("dragend", () => { item.classList.remove("over"); });
      item.addEventListener("dragover", (event) => { event.preventDefault(); item.classList.add("over"); });
      item.addEventListener("dragleave", () => { item.classList.remove("over"); });
      item.addEventListener("drop", (event) => {
        event.preventDefault();
        item.classList.remove("over");
        if (dragged && dragged !== item && dragged.parentElement === list) {
          const down = [...list.children].indexOf(dragged) < [...list.children].indexOf(item);
          item[down ? "after" : "before"](dragged);
          drop();
        }
      });
      item.addEventListener("keydown", (event) => {
        if (!event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
        event.preventDefault();
        const other = event.key === "ArrowUp" ? item.previousElementSibling : item.nextElementSibling;
        if (!other) return;
        other[event.key === "ArrowUp" ? "before" : "after"](item);
        event.target.focus();
        drop();
      });
    }
  };

  const copy = (button) => {
    button.addEventListener("click", async () => {
      const text = document.querySelector(button.dataset.copy)?.textContent ?? "";
      try { await navigator.clipboard.writeText(text); say(words.copied); button.textContent = words.copied; }
      catch { say(words.notCopied); }
    });
  };

  const prepare = (root) => {
    const each = (selector, act) => {
      if (root.matches?.(selector)) act(root);
      root.querySelectorAll(selector).forEach(act);
    };
    each("form[data-live]", live_form);
    each("[data-poll]", poll);
    each("[data-send]", send);
    each("input[data-filter]", filter);
    each("ol[data-order]", order);
    each("button[data-copy]", copy);
  };
  prepare(document);
})();
