// Tables: numbers on the right, columns that can be sorted. On a phone the rows of a wide one become cards.

import { fill, h } from "../dom.js";

// With more columns than this, rows become cards on a phone.
const NARROW = 4;

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} name The heading.
 * @property {(row: Row) => any} show Text or an element.
 * @property {(row: Row) => any} [value] What to sort by; without it the column is not sorted.
 * @property {boolean} [right] Whether it holds numbers.
 */

/**
 * @template Row
 * @param {string} caption For those who cannot see where the table stands.
 * @param {Column<Row>[]} columns
 * @param {Row[]} rows
 * @param {{ rowClass?: (row: Row) => string, sorted?: { column: number, up: boolean }, cards?: boolean }} [options]
 */
export function table(caption, columns, rows, { rowClass = () => "", sorted = undefined, cards = columns.length > NARROW } = {}) {
  // Cards are no table to the browser any more: the roles keep it one for those who listen.
  const body = h("tbody", { role: "rowgroup" });
  const head = h("tr", { role: "row" });
  let order = sorted;

  function draw() {
    fill(head, ...columns.map((column, i) => h("th", {
      scope: "col", role: "columnheader", class: column.right ? "right" : "",
      "aria-sort": order?.column === i ? (order.up ? "ascending" : "descending") : null,
    }, column.value
      ? h("button", { type: "button", class: "sort", onclick: () => sortBy(i) },
        column.name, h("span", { "aria-hidden": "true" }, order?.column === i ? (order.up ? " ▲" : " ▼") : ""))
      : column.name)));
    fill(body, ...arranged().map((row) => h("tr", { role: "row", class: rowClass(row) },
      ...columns.map((column) => h("td", { role: "cell", class: column.right ? "right" : "", "data-name": column.name },
        column.show(row))))));
  }

  function arranged() {
    if (order === undefined) return rows;
    const { value } = columns[order.column];
    const sign = order.up ? 1 : -1;
    return [...rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x == null || y == null) return Number(x == null) - Number(y == null);
      return sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y)));
    });
  }

  function sortBy(column) {
    // Numbers are first sorted from the largest.
    order = { column, up: order?.column === column ? !order.up : !columns[column].right };
    draw();
    head.querySelectorAll("th")[column].querySelector("button")?.focus();
  }

  draw();
  const made = h("table", { role: "table", class: cards ? "cards" : "" },
    h("caption", { class: "unseen" }, caption), h("thead", { role: "rowgroup" }, head), body);
  return scrolling(caption, made);
}

/** A box that scrolls sideways, also by keyboard. */
export function scrolling(label, content) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, content);
}

/** Names and values below each other. */
export function facts(entries) {
  return h("dl", { class: "facts" }, ...entries.filter(Boolean).map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}
