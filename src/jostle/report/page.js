(() => {
  "use strict";
  const keyOf = (row, column) => row.cells[column].dataset.sort;
  const isMissing = (key) => key === "" || key === "nan";
  const before = (a, b, numeric) =>
    numeric ? Number(a) - Number(b) : a.localeCompare(b, undefined, { numeric: true, sensitivity: "base" });

  function sort(table, column, direction, numeric) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    rows.sort((x, y) => {
      const [a, b] = [keyOf(x, column), keyOf(y, column)];
      if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b); // last, whatever the direction
      return direction * before(a, b, numeric);
    });
    body.append(...rows);
  }

  for (const table of document.querySelectorAll("table")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "Sort by this column";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const wasAscending = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", wasAscending ? "descending" : "ascending");
        sort(table, column, wasAscending ? -1 : 1, head.classList.contains("number"));
      });
    });
  }

  // A finger cannot point at a square or a word: a tap writes its hint below.
  const said = document.createElement("p");
  said.className = "said";
  said.setAttribute("role", "status");
  document.addEventListener("click", (event) => {
    const hinted = event.target.closest(".squares i[title], .passage [title], .card rect:has(> title)");
    const hint = hinted?.title || hinted?.querySelector?.(":scope > title")?.textContent;
    if (hint) {
      said.textContent = hint;
      hinted.closest(".squares, .passage, .card").after(said);
    } else {
      said.remove();
    }
  });
})();
