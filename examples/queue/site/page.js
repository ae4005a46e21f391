"use strict";

const shown = 2500; // ms that a bar has room for
const svg = "http://www.w3.org/2000/svg";
const summary = document.getElementById("summary");
const crowds = document.getElementById("crowds");

const seconds = ms => (ms / 1000).toFixed(2) + "\u00a0s";

function element(name, className, text) {
  const e = document.createElement(name);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

// table makes an empty table for the requests of a user and returns its body.
function table(user) {
  const t = element("table");
  t.append(element("caption", "", "Requests of " + user));
  const head = t.createTHead().insertRow();
  for (const [name, className] of [["No.", "number"], ["Time", ""], ["In numbers", "text"]]) {
    const th = element("th", className, name);
    th.scope = "col";
    head.append(th);
  }
  const former = document.getElementById("of-" + user);
  t.id = "of-" + user;
  if (former) former.replaceWith(t); else crowds.append(t);
  return t.createTBody();
}

// words says how a request has ended.
function words(r) {
  if (r.status === 0) return "no answer: " + r.error;
  if (r.status === 429) return (r.took < 100 ? "denied at once" : "denied after " + seconds(r.took)) + " (429)";
  if (r.status !== 200) return "status " + r.status;
  return (r.waited > 0 ? "waited " + seconds(r.waited) + ", ran " : "ran at once, ") + seconds(r.ran);
}

// bar draws how a request has spent its time.
function bar(r) {
  const s = document.createElementNS(svg, "svg");
  s.setAttribute("viewBox", "0 0 " + shown + " 10");
  s.setAttribute("preserveAspectRatio", "none");
  s.setAttribute("aria-hidden", "true"); // the numbers stand beside it
  let at = r.sent;
  const part = (className, width) => {
    const rect = document.createElementNS(svg, "rect");
    rect.setAttribute("class", className);
    rect.setAttribute("x", at);
    rect.setAttribute("width", width);
    rect.setAttribute("height", 10);
    s.append(rect);
    at += width;
  };
  if (r.status === 200) {
    part("waited", r.waited);
    part("ran", r.ran);
  } else {
    part("denied", Math.max(r.took, 40));
  }
  return s;
}

// place puts a row where its number belongs.
function place(body, r) {
  const row = element("tr");
  row.dataset.number = r.number;
  const number = element("th", "number", r.number);
  number.scope = "row";
  const cell = element("td");
  cell.append(bar(r));
  row.append(number, cell, element("td", "text", words(r)));
  const next = [...body.rows].find(other => Number(other.dataset.number) > r.number);
  body.insertBefore(row, next || null);
}

// lines yields the lines of a response as they come.
async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const {value, done} = await reader.read();
    if (done) return;
    const all = (rest + value).split("\n");
    rest = all.pop();
    yield* all;
  }
}

async function send(user) {
  const body = table(user);
  const count = {once: 0, waited: 0, denied: 0, failed: 0};
  summary.textContent = "Sending 30 requests as " + user + ".";
  const response = await fetch("crowd", {method: "POST", body: new URLSearchParams({user})});
  if (!response.ok) throw new Error("status " + response.status);
  for await (const line of lines(response)) {
    const r = JSON.parse(line);
    place(body, r);
    if (r.status === 200) count[r.waited > 0 ? "waited" : "once"]++;
    else count[r.status === 429 ? "denied" : "failed"]++;
  }
  summary.textContent = `${user}: ${count.once} ran at once, ${count.waited} waited, ${count.denied} were denied` + (count.failed ? `, ${count.failed} failed.` : ".");
}

for (const button of document.querySelectorAll("button[data-user]")) {
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-disabled") === "true") return; // it keeps the focus while it is busy
    button.setAttribute("aria-disabled", "true");
    try {
      await send(button.dataset.user);
    } catch (e) {
      summary.textContent = "This has failed: " + e.message;
    }
    button.removeAttribute("aria-disabled");
  });
}
