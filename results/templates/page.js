// Draws the plots of every page in its look, sorts its tables, hides what is switched off and copies
// fragments. The page's policy (page.py) allows this script by its hash, Vega's bundle, and no other.
const specs = JSON.parse(document.getElementById("specs").textContent);
await document.fonts.load("600 15px Inter");
await document.fonts.load("400 15px Inter");
const actions = {export: {svg: true, png: true}, source: false, compiled: false, editor: false};
const options = {renderer: "svg", ast: true, actions};
const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const off = new Set();
const isOff = (about) => [...off].map((name) => name.toLowerCase()).some((name) =>
  about === name || about.startsWith(`${name},`) || about.startsWith(`${name} at `));
// A spec without the data of layouts that are switched off.
const without = (part) => {
  if (Array.isArray(part)) return part.map(without);
  if (part === null || typeof part !== "object") return part;
  return Object.fromEntries(Object.entries(part).map(([key, value]) =>
    [key, key === "values" && Array.isArray(value)
      ? value.filter((row) => !off.has(row?.layout)) : without(value)]));
};
// A screen reader is told what a picture shows, not its marks; the menu beside it has a name.
const describe = (plot) => {
  plot.dataset.label ??= plot.getAttribute("aria-label") ?? "";
  for (const name of ["role", "aria-label"]) plot.removeAttribute(name);
  plot.querySelector("summary")?.setAttribute("aria-label", "Save this picture");
  const picture = plot.querySelector("svg.marks");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", plot.dataset.label);
};
const draw = (within) => {
  const look = root.dataset.look;
  const plots = [...within.querySelectorAll(".plot")];
  const shown = plots.filter((plot) => !plot.closest("[hidden], details:not([open])"));
  return Promise.all(shown.map(async (plot) => {
    const {spec, config} = specs.panels[plot.dataset.spec];
    const drawn = {...(off.size ? without(spec) : spec), config: specs.configs[look][config]};
    plot.dataset.look = look;
    await window.vegaEmbed(plot, drawn, options);
    describe(plot);
  }));
};
const button = document.querySelector(".look");
// What scrolls sideways can be reached and scrolled by keyboard.
const letScroll = () => {
  for (const one of document.querySelectorAll(".scroll")) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0; else one.removeAttribute("tabindex");
  }
};
addEventListener("resize", letScroll);
// Drawings follow one another: a second one during the first would mix with it.
let drawing = Promise.resolve();
const redraw = (within = document) => {
  root.dataset.ready = "no";
  drawing = drawing.then(() => draw(within));
  const mine = drawing;
  return mine.then(() => { if (mine === drawing) { letScroll(); root.dataset.ready = "yes"; } });
};
// What is folded is drawn when it is opened, and opened when a link leads into it.
document.addEventListener("toggle", ({target}) => {
  if (target.open && target.querySelector(".plot, .cell")) redraw(target); else letScroll();
}, true);
const openTarget = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let fold = target; fold; fold = fold.parentElement?.closest("details")) {
    if (fold.tagName === "DETAILS") fold.open = true;
  }
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", openTarget);
const show = (look) => {
  root.dataset.look = look;
  button.textContent = look === "dark" ? "Light" : "Dark";
  return redraw();
};
button.hidden = false;
button.addEventListener("click", () => show(root.dataset.look === "dark" ? "light" : "dark"));
prefersDark.addEventListener("change", () => show(prefersDark.matches ? "dark" : "light"));
for (const field of document.querySelectorAll("[data-switches]")) {
  field.hidden = false;
  field.addEventListener("change", ({target}) => {
    if (target.checked) off.delete(target.value); else off.add(target.value);
    for (const one of document.querySelectorAll("[data-about], [data-layout]")) {
      one.hidden = isOff((one.dataset.about ?? "").toLowerCase()) || off.has(one.dataset.layout);
    }
    redraw();
  });
}
const drawn = show(prefersDark.matches ? "dark" : "light");
const compare = (x, y, numeric) =>
  numeric ? Number(x) - Number(y) : x.localeCompare(y, "en", {numeric: true});
const valueOf = (cell) => cell.dataset.value ?? cell.textContent;
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.querySelectorAll("thead th")];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((one) => one.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const numeric = head.classList.contains("num");
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [x, y] = [valueOf(a.cells[column]), valueOf(b.cells[column])];
      if (x === "" || y === "") return (x === "") - (y === "");
      return down ? -compare(x, y, numeric) : compare(x, y, numeric);
    });
    table.tBodies[0].append(...rows);
  }));
}
for (const copy of document.querySelectorAll(".copy")) {
  copy.addEventListener("click", async () => {
    const text = copy.nextElementSibling;
    try {
      await navigator.clipboard.writeText(text.textContent);
      copy.textContent = "Copied";
    } catch { // pages from a file may not have the clipboard: select the text, and try the old way
      getSelection().selectAllChildren(text);
      copy.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  });
}
await drawn;
openTarget();
