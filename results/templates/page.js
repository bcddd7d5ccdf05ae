// Draws the plots of every page, sorts its tables and copies fragments. The page's policy
// (page.py) allows this script by its hash, Vega's bundle, and no other.
const specs = JSON.parse(document.getElementById("specs").textContent);
await document.fonts.load("600 15px Inter");
await document.fonts.load("400 15px Inter");
const actions = {export: {svg: true, png: true}, source: false, compiled: false, editor: false};
const options = {renderer: "svg", ast: true, actions};
const drawn = [...document.querySelectorAll(".plot, .cell")].map((plot) => {
  const own = plot.className === "cell" ? {...options, actions: false} : options;
  return window.vegaEmbed(plot, specs[plot.dataset.spec], own);
});
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
for (const button of document.querySelectorAll(".copy")) {
  button.addEventListener("click", async () => {
    const text = button.nextElementSibling;
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch { // pages from a file may not have the clipboard: select the text, and try the old way
      getSelection().selectAllChildren(text);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
await Promise.all(drawn);
document.documentElement.dataset.ready = "yes";
