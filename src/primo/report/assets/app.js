// Wire the numbers to the page.
const { outcomes, features, cells, tested } = data;
const wide = features.name.length;  // features per outcome on this page
// Where most intervals are not to be trusted, there is little evidence to colour by.
const mostlyTrusted = tested && 2 * cells.flags.filter((flag) => flag & 1).length <= cells.flags.length;
const state = { outcome: 0, cell: null, measure: mostlyTrusted ? 'z' : 'shrunk' };
const outcomeOf = (i) => Math.floor(i / wide);
const featureOf = (i) => i % wide;
const cellAt = (f, o) => o * wide + f;
const effect = (i, value) => (value === null ? null : tested ? value * cells.effect.features[featureOf(i)] * cells.effect.outcomes[outcomeOf(i)] : value);
const all = (to) => Array.from({ length: to }, (_, i) => i);
const percent = `${Math.round(100 * data.level)}\u202f%`;
const rate = `${100 * data.fdr}\u202f%`;
const doubtful = (i) => Boolean(cells.flags[i] & 1);
const strongest = (list) => list.reduce((best, i) => (Math.abs(strength(i)) > Math.abs(strength(best)) ? i : best), list[0]);
const strength = (i) => (tested ? cells.z[i] ?? 0 : cells.shrunk[i]);
const cellsOf = (o) => all(wide).map((f) => cellAt(f, o));
const everyCell = cells ? all(data.detailed * wide) : [];

function cellWords(i) {
  const head = `${features.name[featureOf(i)]} → ${outcomes.name[outcomeOf(i)]}`;
  if (!tested) return `${head}\nshrunk ${number(cells.shrunk[i])}`;
  return `${head}\n${number(cells.estimate[i])} (${interval(cells.lower[i], cells.upper[i])})\np ${probability(exponent(cells.z[i]))}, q ${tiny(cells.q[i])}`;
}

// Theme: as the system, then light, then dark.
const themes = ['auto', 'light', 'dark'];
const systemDark = window.matchMedia('(prefers-color-scheme: dark)');
const printing = window.matchMedia('print');
const isDark = () => !printing.matches && (document.documentElement.dataset.theme === 'dark' || (document.documentElement.dataset.theme !== 'light' && systemDark.matches));
function setTheme(name) {
  if (name === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  byId('theme').textContent = `Colours: ${name}`;
  byId('theme').setAttribute('aria-label', `Colours: ${name === 'auto' ? 'as the system' : name}. Change`);
  redraw();
  legend();
}
byId('theme').addEventListener('click', () => {
  const now = document.documentElement.dataset.theme || 'auto';
  setTheme(themes[(themes.indexOf(now) + 1) % themes.length]);
});
systemDark.addEventListener('change', () => { redraw(); legend(); });
printing.addEventListener('change', redraw);
let waiting = 0;
window.addEventListener('resize', () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(redraw); });

// The part of the page in view is marked in the contents.
const links = new Map([...document.querySelectorAll('nav.contents a')].map((a) => [a.hash.slice(1), a]));
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) links.get(entry.target.id).classList.toggle('here', entry.isIntersecting);
}, { rootMargin: '-15% 0px -80% 0px' });
document.querySelectorAll('main > section').forEach((section) => watcher.observe(section));

// Outcomes.
function showOutcomes() {
  byId('outcomes').hidden = false;
  const many = all(outcomes.name.length);
  const open = (i) => { if (cells && i < data.detailed) { setOutcome(i); byId('coefficients').scrollIntoView(); } };
  const widest = Math.max(0.1, ...outcomes.upper);
  if (outcomes.name.length > 1) rangeChart(byId('outcome-chart'), { outcomes, pick: open });
  else byId('outcome-chart').parentNode.hidden = true;
  const kinds = [make('span', { class: 'key signal' }), ' signal found, ', make('span', { class: 'key noise' }), ' not distinguishable from noise'];
  byId('outcome-caption').append(`R² with its ${percent} interval: `, ...kinds);
  if (outcomes.trusted.includes(0)) byId('outcome-caption').append(', ', make('span', { class: 'key doubt' }), ' R² not determined (0 to 1)');
  byId('outcome-caption').append('.');
  if (outcomes.name.length < data.l) {
    byId('outcome-caption').append(` Shown are the ${count(outcomes.name.length)} outcomes with the strongest evidence; ${count(data.l - outcomes.name.length)} more are in outcomes.tsv of the release bundle.`);
  }
  const weak = (i) => (outcomes.trusted[i] ? '' : 'weak');
  dataTable(byId('outcome-table'), {
    label: 'outcomes',
    rows: many,
    search: (i) => outcomes.name[i],
    order: { column: 'statistic', down: true },
    empty: 'No outcome matches.',
    filters: [
      { name: 'all', title: 'all outcomes' },
      { name: 'found', title: 'signal found', keep: (i) => outcomes.found[i] },
      { name: 'not', title: 'not distinguishable from noise', keep: (i) => !outcomes.found[i] },
      { name: 'doubt', title: 'not determined', keep: (i) => !outcomes.trusted[i] },
    ],
    columns: [
      { name: 'name', title: 'Outcome', heading: true, value: (i) => outcomes.name[i].toLowerCase(), cell: (i) => (cells && i < data.detailed ? make('button', { class: 'link', type: 'button', title: 'Show its coefficients', on: { click: () => open(i) } }, named(outcomes.name[i])) : named(outcomes.name[i])) },
      { name: 'r2', title: 'R²', number: true, value: (i) => outcomes.r2[i], cell: (i) => make('span', { class: weak(i) }, outcomes.trusted[i] ? outcomes.r2[i].toFixed(3) : 'not determined') },
      { name: 'interval', title: `${percent} interval`, value: (i) => outcomes.lower[i], cell: (i) => make('span', { class: `span ${weak(i)}` }, outcomes.trusted[i] ? `${outcomes.lower[i].toFixed(3)} to ${outcomes.upper[i].toFixed(3)}` : '0 to 1', intervalBar(outcomes.lower[i], outcomes.r2[i], outcomes.upper[i], 0, widest, !outcomes.trusted[i])) },
      { name: 'published', title: 'Published, new rows', number: true, value: (i) => outcomes.published[i], cell: (i) => (outcomes.published[i] === null ? make('span', { class: 'weak' }, 'not determined') : outcomes.published[i].toFixed(2)) },
      { name: 'found', title: 'Verdict', value: (i) => -outcomes.found[i], cell: (i) => make('span', { class: outcomes.found[i] ? 'verdict found' : 'verdict' }, outcomes.found[i] ? 'signal found' : 'not distinguishable from noise') },
      { name: 'p', title: 'p', number: true, value: (i) => outcomes.p[i], cell: (i) => tiny(outcomes.p[i]) },
      { name: 'q', title: 'q', number: true, value: (i) => outcomes.q[i], cell: (i) => tiny(outcomes.q[i]) },
      { name: 'statistic', title: `χ² (${data.d})`, number: true, value: (i) => outcomes.statistic[i], cell: (i) => number(outcomes.statistic[i]) },
    ],
  });
}

// Coefficients.
const draw = {};
let table = null;

function setCell(i) {
  state.cell = i;
  if (outcomeOf(i) !== state.outcome) setOutcome(outcomeOf(i), i);
  detail();
  for (const one of Object.values(draw)) one();
}

function setOutcome(o, cell) {
  state.outcome = o;
  byId('outcome').value = String(o);
  state.cell = cell ?? strongest(cellsOf(o));
  if (table && !byId('table-all').checked) table.setRows(cellsOf(o));
  words();
  detail();
  for (const one of Object.values(draw)) one();
}

function detail() {
  const i = state.cell;
  const f = featureOf(i);
  const fact = (name, value) => make('div', {}, make('dt', {}, name), make('dd', {}, value));
  const facts = [];
  if (features.about[f]) facts.push(fact('Variant', named(features.about[f])));
  if (tested) {
    facts.push(
      fact('Estimate', number(cells.estimate[i])),
      fact(`${percent} interval${doubtful(i) ? ' (wide, see doubts)' : ''}`, interval(cells.lower[i], cells.upper[i])),
      fact('Standard error', number(cells.error[i])),
      fact('z, p', `${number(cells.z[i])}, ${probability(exponent(cells.z[i]))}`),
      fact('q over all coefficients', tiny(cells.q[i])),
      fact(`Shrunk, ${percent} interval${cells.flags[i] & 2 ? ' (rests on the prior)' : ''}`, `${number(cells.shrunk[i])} ± ${number(cells.half[i], 2)}`));
  } else facts.push(fact('Shrunk, scaled units', number(cells.shrunk[i])));
  byId('detail').replaceChildren(
    make('h3', {}, named(features.name[f]), ' → ', named(outcomes.name[outcomeOf(i)])),
    make('dl', { class: 'facts' }, ...facts));
}

function words() {
  if (!tested) return;
  const name = outcomes.name[state.outcome];
  const line = data.threshold === null
    ? `No coefficient passes a false discovery rate of ${rate} over all ${count(data.d * data.l)}.`
    : `Above the dashed line coefficients pass a false discovery rate of ${rate} over all ${count(data.d * data.l)} (p ≤ ${probability(data.threshold)}).`;
  const hollow = cells.flags.some((flag) => flag & 1) ? ' Hollow dots are uncertain: see the doubts.' : '';
  const selected = `Point at a dot, or use the arrow keys, for its numbers.${hollow}`;
  byId('position-words').textContent = `${name}: evidence for each feature, ${data.genomic ? 'by position on the genome' : 'in the order of the data'}. ${line} ${selected}`;
  byId('volcano-words').textContent = `${byId('volcano-all').checked ? 'All outcomes on this page, effects in scaled units' : name}: size of the effect against the evidence for it. Bars are ${percent} intervals, of the selected coefficient and, where there is room, of those above the line. ${line} ${selected}`;
}

function legend() {
  if (!cells) return;
  const stops = [-1, -0.5, 0, 0.5, 1].map((v) => diverging(v, isDark())).join(',');
  const bar = make('i');
  bar.style.background = `linear-gradient(90deg, ${stops})`;
  const most = number(mapLimit(), 2);
  byId('legend').replaceChildren(`−${most}`, bar, `+${most}`);
}

let mapCells = { features: [], outcomes: [] };
const mapValue = (f, o) => { const i = cellAt(f, o); return state.measure === 'z' ? cells.z[i] ?? 0 : effect(i, cells.shrunk[i]) ?? 0; };
function mapLimit() {
  if (state.measure === 'z') return 6;
  let most = 0;
  for (const f of mapCells.features) for (const o of mapCells.outcomes) most = Math.max(most, Math.abs(mapValue(f, o)));
  return most || 1;
}

function showMap() {
  const shown = all(Math.min(data.detailed, MOST_COLUMNS));
  let rows = all(wide);
  if (wide > MOST_ROWS) {
    const best = rows.map((f) => Math.max(...shown.map((o) => Math.abs(strength(cellAt(f, o))))));
    rows = rows.sort((a, b) => best[b] - best[a] || a - b).slice(0, MOST_ROWS).sort((a, b) => a - b);
  }
  mapCells = { features: rows, outcomes: shown };
  const measures = tested ? [['z', 'evidence (z-score)'], ['shrunk', 'shrunk coefficient, scaled units']] : [['shrunk', 'shrunk coefficient, scaled units']];
  byId('measure').replaceChildren(...measures.map(([value, title]) => make('option', { value }, title)));
  byId('measure').value = state.measure;
  byId('measure').addEventListener('change', () => { state.measure = byId('measure').value; draw.map(); legend(); });
  draw.map = heatMap(byId('map'), {
    ...mapCells,
    value: mapValue,
    limit: mapLimit,
    mark: (f, o) => tested && cells.q[cellAt(f, o)] <= data.fdr,
    words: (f, o) => cellWords(cellAt(f, o)),
    pick: (f, o) => setCell(cellAt(f, o)),
    picked: () => [featureOf(state.cell), outcomeOf(state.cell)],
    isDark,
  });
  const part = [shown.length < data.detailed ? `the first ${shown.length} outcomes` : '', rows.length < wide ? `the ${rows.length} features with the strongest evidence` : ''].filter(Boolean).join(' and ');
  byId('map-words').textContent = `Features in rows, outcomes in columns, the most significant outcome first${part ? `; ${part}` : ''}. ${tested ? `A dot marks coefficients that pass a false discovery rate of ${rate}.` : ''} Blue is negative, orange positive.`;
}

function showPlots() {
  const top = (list) => Math.max(2, data.threshold ?? 0, ...list.map((point) => point.y)) * 1.08;
  const line = () => (data.threshold === null ? [] : [{ y: data.threshold, words: `FDR ${rate}` }]);
  const shared = { words: cellWords, pick: setCell, picked: () => state.cell };
  draw.position = pointChart(byId('position'), {
    ...shared,
    describe() {
      const colour = colours();
      const points = cellsOf(state.outcome).map((i) => {
        const f = featureOf(i);
        const passed = cells.q[i] <= data.fdr;
        return { i, x: features.place[f], y: exponent(cells.z[i] ?? 0), size: passed ? 4 : 3, hollow: doubtful(i), colour: passed ? colour.warm : features.stretch[f] % 2 ? colour.soft : colour.signal };
      });
      return { points, x: [0, 1], y: [0, top(points)], xTicks: placeTicks(), xTitle: placeTitle(), yTitle: '−log₁₀ p', lines: line(), label: `Evidence for each feature of ${outcomes.name[state.outcome]}.` };
    },
  });
  draw.volcano = pointChart(byId('volcano'), {
    ...shared,
    describe() {
      const colour = colours();
      const every = byId('volcano-all').checked;
      const unit = (i, value) => (every ? effect(i, value) : value);
      const points = (every ? everyCell : cellsOf(state.outcome)).map((i) => {
        const passed = cells.q[i] <= data.fdr;
        return { i, x: unit(i, cells.estimate[i]) ?? 0, y: exponent(cells.z[i] ?? 0), size: passed ? 3.5 : 2.5, colour: passed ? colour.warm : colour.signal, hollow: doubtful(i), bar: [unit(i, cells.lower[i]), unit(i, cells.upper[i])] };
      });
      const passed = points.filter((point) => cells.q[point.i] <= data.fdr);
      const bars = passed.length <= 60 ? passed.filter((point) => !point.hollow).map((point) => ({ y: point.y, low: point.bar[0], high: point.bar[1] })) : [];
      // Estimates that are not to be trusted do not stretch the axis; beyond it they stand at its end.
      const solid = points.filter((point) => !point.hollow);
      const selected = solid.find((point) => point.i === state.cell);
      const reach = 1.08 * extent((solid.length ? solid : points).map((point) => point.x).concat(selected ? selected.bar : [], bars.flatMap((bar) => [bar.low, bar.high])));
      for (const point of points) point.x = Math.max(-reach, Math.min(reach, point.x));
      const ticks = roundTicks(-reach, reach, 9).map((at) => ({ at, words: minus(String(at)) }));
      const highest = points.reduce((most, point) => Math.max(most, point.y), Math.max(2, data.threshold ?? 0)) * 1.08;
      return { points, bars, zero: true, x: [-reach, reach], y: [0, highest], xTicks: ticks, xTitle: every ? 'estimate in scaled units' : 'estimate', yTitle: '−log₁₀ p', lines: line(), label: 'Effects against the evidence for them.' };
    },
  });
  byId('volcano-all').addEventListener('change', () => { words(); draw.volcano(); });
}

function placeTicks() {
  if (!data.genomic) {
    const shown = wide < data.d ? all(0) : roundTicks(1, data.d, 8).filter((v) => Number.isInteger(v) && v >= 1);
    return shown.map((v) => ({ at: (v - 0.5) / data.d, words: String(v) }));
  }
  if (data.stretches.length > 1) return data.stretches.map((s) => ({ at: (s.start + s.end) / 2, words: s.label }));
  const [only] = data.stretches;
  const place = (bp) => 0.02 + 0.96 * (bp - only.first) / (only.last - only.first || 1);
  return roundTicks(only.first / 1e6, only.last / 1e6, 6).map((mb) => ({ at: place(mb * 1e6), words: String(mb) }));
}

function placeTitle() {
  if (!data.genomic) return 'feature, in the order of the data';
  return data.stretches.length > 1 ? 'chromosome' : `position on chromosome ${data.stretches[0].label} (Mb)`;
}

function showCellTable() {
  const reach = () => extent((byId('table-all').checked ? everyCell : cellsOf(state.outcome)).flatMap((i) =>
    (doubtful(i) ? [] : [effect(i, cells.lower[i]), effect(i, cells.upper[i])])));
  const name = { name: 'feature', title: 'Feature', heading: true, value: (i) => featureOf(i), cell: (i) => make('button', { class: 'link', type: 'button', title: 'Select', on: { click: () => setCell(i) } }, named(features.name[featureOf(i)])) };
  const outcome = { name: 'outcome', title: 'Outcome', value: (i) => outcomeOf(i), cell: (i) => named(outcomes.name[outcomeOf(i)]) };
  const shrunk = { name: 'shrunk', title: tested ? 'Shrunk' : 'Shrunk, scaled', number: true, value: (i) => cells.shrunk[i], cell: (i) => number(cells.shrunk[i]) };
  const bar = (i) => intervalBar(effect(i, cells.lower[i]), effect(i, cells.estimate[i]), effect(i, cells.upper[i]), -scale, scale, doubtful(i), true);
  let scale = tested ? reach() : 1;
  const columns = !tested ? [name, outcome, shrunk] : [
    name, outcome,
    { name: 'estimate', title: 'Estimate', number: true, value: (i) => cells.estimate[i], cell: (i) => make('span', {}, number(cells.estimate[i]), doubtful(i) ? make('span', { class: 'mark', title: 'wide or unbounded interval, conservative p-value' }, ' !') : '') },
    { name: 'interval', title: `${percent} interval`, number: true, value: (i) => cells.lower[i], cell: (i) => interval(cells.lower[i], cells.upper[i]) },
    { name: 'bar', title: 'Scaled units', value: (i) => Math.abs(effect(i, cells.estimate[i]) ?? 0), cell: bar },
    { name: 'p', title: 'p', number: true, value: (i) => -Math.abs(cells.z[i] ?? 0), cell: (i) => probability(exponent(cells.z[i] ?? 0)) },
    { name: 'q', title: 'q', number: true, value: (i) => cells.q[i], cell: (i) => tiny(cells.q[i]) },
    shrunk,
  ];
  table = dataTable(byId('cell-table'), {
    label: 'coefficients',
    rows: cellsOf(state.outcome),
    search: (i) => `${features.name[featureOf(i)]} ${outcomes.name[outcomeOf(i)]} ${features.about[featureOf(i)]}`,
    order: tested ? { column: 'p', down: false } : { column: 'shrunk', down: true },
    empty: 'No coefficient matches.',
    columns,
  });
  const plain = table;
  table = { setRows(rows) { scale = tested ? reach() : 1; plain.setRows(rows); } };
  byId('table-all').addEventListener('change', () => table.setRows(byId('table-all').checked ? everyCell : cellsOf(state.outcome)));
}

// Tabs, as the ARIA authoring practices have them.
function showTabs(names, first) {
  const tabs = names.map((name) => byId(`tab-${name}`));
  for (const tab of document.querySelectorAll('[role="tab"]')) tab.hidden = !tabs.includes(tab);
  function select(tab, focus) {
    for (const panel of document.querySelectorAll('[role="tabpanel"]')) panel.hidden = panel.id !== tab.getAttribute('aria-controls');
    for (const other of tabs) {
      other.setAttribute('aria-selected', String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
    }
    if (focus) tab.focus();
    for (const one of Object.values(draw)) one();
  }
  tabs.forEach((tab, at) => {
    tab.addEventListener('click', () => select(tab));
    tab.addEventListener('keydown', (event) => {
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      select(tabs[(to + tabs.length) % tabs.length], true);
    });
  });
  select(byId(`tab-${first}`));
}

if (tested) showOutcomes();
if (cells) {
  byId('cells').hidden = false;
  byId('outcome').append(...all(data.detailed).map((o) => make('option', { value: o }, outcomes.name[o])));
  byId('outcome').addEventListener('change', () => setOutcome(Number(byId('outcome').value)));
  state.cell = strongest(cellsOf(0));
  byId('tab-position').textContent = data.genomic ? 'Manhattan' : 'By feature';
  showMap();
  if (tested) showPlots();
  showCellTable();
  showTabs(tested ? ['map', 'position', 'volcano', 'table'] : ['map', 'table'], tested && data.l === 1 ? 'position' : 'map');
  setOutcome(0);
  legend();
}
