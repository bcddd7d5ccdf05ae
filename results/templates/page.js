// What draws the plots of every page and sorts its tables. Its page lets this program run and no other: page.py tells it which.
const specs = JSON.parse(document.getElementById("specs").textContent);
await document.fonts.load("600 15px Inter"); await document.fonts.load("400 15px Inter");
const options = {renderer: "svg", ast: true, actions: {export: {svg: true, png: true}, source: false, compiled: false, editor: false}};
const drawn = [...document.querySelectorAll(".plot, .cell")].map((plot) => window.vegaEmbed(plot, specs[plot.dataset.spec], plot.className === "cell" ? {...options, actions: false} : options));
const compare = (x, y, numeric) => numeric ? Number(x) - Number(y) : x.localeCompare(y, "en", {numeric: true});
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
await Promise.all(drawn);
document.documentElement.dataset.ready = "yes";
