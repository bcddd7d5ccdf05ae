const at = (id) => document.getElementById(id);
const frame = at("report");
let shown = 0;
let lines = "";

const bytes = (rate) => {
  const units = ["B", "kB", "MB", "GB"];
  let place = 0;
  while (rate >= 1000 && place < units.length - 1) { rate /= 1000; place += 1; }
  return `${rate.toFixed(rate < 10 && place ? 1 : 0)} ${units[place]}/s`;
};

const time = (seconds) => {
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const two = (number) => String(number).padStart(2, "0");
  const rest = two(Math.floor(seconds % 60));
  return hours ? `${hours}:${two(minutes % 60)}:${rest}` : `${minutes}:${rest}`;
};

const figure = (id, number, words) => {
  const bold = document.createElement("b");
  bold.textContent = number;
  at(id).replaceChildren(...(number ? [bold, ` ${words}`] : []));
};

const show = (now) => {
  document.title = `${now.step}/${now.steps} · Weighbridge`;
  at("doing").textContent = now.doing;
  figure("step", now.step ? `${now.step} of ${now.steps}` : "", "steps");
  const load = now.progress;
  figure("rates", load ? `${Math.round(load.operations_per_s).toLocaleString("en")} op/s` : "",
    load ? `${bytes(load.bytes_per_s)}, ${load.phase}${load.errors ? `, ${load.errors} errors` : ""}` : "");
  figure("left", now.state === "running" ? time(now.left_s) : "", "left");
  const part = load && load.total ? load.done / load.total : 0;
  at("all").value = now.state === "running" ? Math.max(0, now.step - 1 + part) / Math.max(1, now.steps) : 1;
  const last = JSON.stringify(now.lines);
  if (last !== lines) {
    lines = last;
    at("lines").replaceChildren(...now.lines.toReversed().map((line) => {
      const item = document.createElement("li");
      const when = document.createElement("span");
      when.textContent = line.at;
      item.append(when, line.text);
      return item;
    }));
  }
  if (now.report !== shown) {
    shown = now.report;
    const down = frame.contentWindow?.scrollY ?? 0;
    frame.onload = () => frame.contentWindow.scrollTo(0, down);
    frame.src = `report?${shown}`;
    frame.hidden = false;
    at("none").hidden = true;
  }
};

const ended = (words) => {
  at("doing").textContent = words;
  at("rates").replaceChildren();
  at("left").replaceChildren();
  at("stop").disabled = true;
};

at("stop").addEventListener("click", async () => {
  if (!confirm("Stop the run? What is measured is kept, and the run can be resumed.")) return;
  at("stop").disabled = true;
  await fetch("stop", { method: "POST", keepalive: true }).catch(() => {});
});

for (;;) {
  let now;
  try {
    now = await (await fetch("now")).json();
  } catch {
    ended("the run has ended, or its page cannot be reached: see the terminal it was started in");
    break;
  }
  show(now);
  if (now.state === "ended") {
    ended(now.doing);
    break;
  }
  await new Promise((done) => setTimeout(done, 500));
}
