// What of a page's text is cut off or lies on other text. For `page.execute_script`.
const limit = document.documentElement.clientWidth;
const hidden = (one) => !one.checkVisibility({visibilityProperty: true});
const outside = [], clipped = new Set(), texts = [], over = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const [node, host] = [walker.currentNode, walker.currentNode.parentElement];
  if (!node.data.trim() || ["SCRIPT", "STYLE"].includes(host.tagName) || hidden(host)) continue;
  const words = node.data.trim().slice(0, 40);
  const scrolls = host.closest(".scroll, pre");
  const free = scrolls && getComputedStyle(scrolls).overflowX !== "visible";
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const box of range.getClientRects()) {
    if (box.width < 1 || box.height < 1) continue;
    texts.push({box, words, host});
    if (!free && box.right > limit + 1) outside.push(`${words}: ${Math.round(box.right)} px`);
  }
  for (let up = host; up; up = up.parentElement) {
    const cut = getComputedStyle(up).overflowX === "hidden" && up.scrollWidth > up.clientWidth + 1;
    if (cut) clipped.add(words);
  }
}
texts.sort((a, b) => a.box.top - b.box.top);
for (const [n, {box, words, host}] of texts.entries()) {
  for (const other of texts.slice(n + 1)) {
    if (other.box.top > box.bottom) break;
    const wide = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
    const high = Math.min(box.bottom, other.box.bottom) - other.box.top;
    // Boxes of lines are some pixels higher than their letters.
    const apart = host === other.host || host.contains(other.host) || other.host.contains(host);
    if (!apart && wide > 3 && high > 7) over.push(`${words} / ${other.words}`);
  }
}
return {texts: texts.length, outside, clipped: [...clipped], over};
