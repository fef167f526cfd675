// A table that can be searched, filtered, sorted and paged; only one page of rows is in the document.
const PAGE = 25;

// columns: {name, title, number, value(i) to sort by, cell(i) a node or words, heading}
function dataTable(host, { label, columns, rows, search, filters = [], order, empty }) {
  const state = { query: '', filter: 'all', column: order.column, down: order.down, page: 0, rows };
  const body = make('tbody');
  const headers = new Map();
  const head = make('tr');
  for (const column of columns) {
    const button = make('button', { type: 'button', on: { click: () => sortBy(column.name) } }, column.title);
    const header = make('th', { scope: 'col', class: column.number ? 'num' : null }, button);
    headers.set(column.name, header);
    head.append(header);
  }
  const status = make('span', { role: 'status', 'aria-live': 'polite' });
  const previous = make('button', { type: 'button', on: { click: () => turn(-1) } }, 'Previous');
  const next = make('button', { type: 'button', on: { click: () => turn(1) } }, 'Next');
  const find = make('input', { type: 'search', 'aria-label': `Search ${label}`, placeholder: 'part of a name', on: { input: () => { state.query = find.value; refresh(); } } });
  const controls = make('div', { class: 'controls' }, make('label', {}, 'Search', find));
  if (filters.length) {
    const choice = make('select', { on: { change: () => { state.filter = choice.value; refresh(); } } },
      ...filters.map((filter) => make('option', { value: filter.name }, filter.title)));
    controls.append(make('label', {}, 'Show', choice));
  }
  host.replaceChildren(
    controls,
    make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Table of ${label}` }, make('table', { class: 'data', 'aria-label': label }, make('thead', {}, head), body)),
    make('div', { class: 'pager' }, previous, next, status));

  let shown = [];
  function sortBy(name) {
    const column = columns.find((c) => c.name === name);
    state.down = state.column === name ? !state.down : Boolean(column.number && column.name !== 'p' && column.name !== 'q');
    state.column = name;
    refresh();
  }
  function refresh() {
    const query = state.query.trim().toLowerCase();
    const filter = filters.find((f) => f.name === state.filter);
    shown = state.rows.filter((i) => (!query || search(i).toLowerCase().includes(query)) && (!filter || !filter.keep || filter.keep(i)));
    const { value } = columns.find((c) => c.name === state.column);
    const sign = state.down ? -1 : 1;
    const keys = new Map(shown.map((i) => [i, value(i)]));
    // What is unbounded or not known comes last, whichever way.
    shown.sort((a, b) => {
      const [x, y] = [keys.get(a), keys.get(b)];
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return (x < y ? -sign : x > y ? sign : 0) || a - b;
    });
    state.page = 0;
    for (const [name, header] of headers) {
      if (name === state.column) header.setAttribute('aria-sort', state.down ? 'descending' : 'ascending');
      else header.removeAttribute('aria-sort');
    }
    fill();
  }
  function fill() {
    const from = state.page * PAGE;
    body.replaceChildren(...shown.slice(from, from + PAGE).map((i) => make('tr', {},
      ...columns.map((column) => column.heading
        ? make('th', { scope: 'row' }, column.cell(i))
        : make('td', { class: column.number ? 'num' : null }, column.cell(i))))));
    if (!shown.length) body.append(make('tr', {}, make('td', { colspan: columns.length }, empty)));
    status.textContent = shown.length
      ? `${count(from + 1)}–${count(Math.min(from + PAGE, shown.length))} of ${count(shown.length)}`
      : '0';
    previous.disabled = state.page === 0;
    next.disabled = from + PAGE >= shown.length;
    previous.hidden = next.hidden = shown.length <= PAGE;
  }
  function turn(by) { state.page += by; fill(); }
  refresh();
  return { setRows(newRows) { state.rows = newRows; refresh(); } };
}

// A small bar of an interval on a common scale; an unbounded end runs to the edge.
function intervalBar(low, middle, high, from, to, doubtful, zero) {
  const width = 120;
  const x = (v) => 2 + Math.min(1, Math.max(0, (v - from) / (to - from || 1))) * (width - 4);
  const bar = svg('svg', { class: 'bar', width, height: 14, viewBox: `0 0 ${width} 14`, 'aria-hidden': 'true' });
  if (zero && from < 0 && to > 0) bar.append(svg('line', { class: 'zero', x1: x(0), x2: x(0), y1: 0, y2: 14 }));
  bar.append(svg('line', { class: doubtful ? 'range doubt' : 'range', x1: low === null ? 0 : x(low), x2: high === null ? width : x(high), y1: 7, y2: 7 }));
  if (middle !== null) bar.append(svg('circle', { class: 'mid', cx: x(middle), cy: 7, r: 3 }));
  return bar;
}
