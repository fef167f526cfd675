// Features in rows, outcomes in columns, the most significant outcome first.
const MOST_COLUMNS = 60;
const MOST_ROWS = 60;

// Blue for negative, orange for positive: distinguishable with any colour vision, on either paper.
function diverging(share, dark) {
  const [r, g, b] = share < 0 ? (dark ? [93, 165, 232] : [24, 92, 158]) : (dark ? [240, 146, 82] : [190, 84, 22]);
  const [r0, g0, b0] = dark ? [33, 40, 47] : [246, 245, 241];
  const t = Math.min(1, Math.abs(share)) ** 0.8;
  const mix = (from, to) => Math.round(from + (to - from) * t);
  return `rgb(${mix(r0, r)},${mix(g0, g)},${mix(b0, b)})`;
}

// value(f, o), limit() for full colour, mark(f, o) for a dot, words(f, o), pick(f, o), picked() -> [f, o]
function heatMap(host, { features, outcomes, value, limit, mark, words, pick, picked, isDark }) {
  const canvas = make('canvas', { tabindex: '0', role: 'img' });
  host.replaceChildren(canvas);
  let grid = null;

  function draw() {
    const room = host.clientWidth - 2;
    if (room <= 0) return;
    const narrow = room < 500;
    const measure = canvas.getContext('2d');
    measure.font = font(11);
    const longest = (list, names, most) => Math.min(most, list.reduce((w, k) => Math.max(w, measure.measureText(names[k].slice(0, 40)).width), 0) + 18);
    const left = longest(features, data.features.name, narrow ? 90 : 160);
    const top = longest(outcomes, data.outcomes.name, narrow ? 90 : 130);
    const wide = Math.max(13, Math.min(30, Math.floor((room - left - 8) / outcomes.length)));
    const high = features.length > 80 ? 14 : 18;
    const width = Math.max(room, left + wide * outcomes.length + 8);
    const pen = sharp(canvas, width, top + high * features.length + 8);
    const colour = colours();
    const dark = isDark();
    const most = limit();
    grid = { left, top, wide, high };
    pen.font = font(11);
    pen.fillStyle = colour.soft;
    pen.textBaseline = 'middle';
    pen.textAlign = 'right';
    features.forEach((f, row) => pen.fillText(cut(pen, data.features.name[f], left - 12), left - 6, top + (row + 0.5) * high));
    pen.textAlign = 'left';
    outcomes.forEach((o, column) => {
      pen.save();
      pen.translate(left + (column + 0.5) * wide, top - 6);
      pen.rotate(-Math.PI / 2);
      pen.fillText(cut(pen, data.outcomes.name[o], top - 12), 0, 0);
      pen.restore();
    });
    features.forEach((f, row) => outcomes.forEach((o, column) => {
      pen.fillStyle = diverging(value(f, o) / most, dark);
      pen.fillRect(left + column * wide, top + row * high, wide - 1, high - 1);
      if (mark(f, o)) dot(pen, left + (column + 0.5) * wide - 0.5, top + (row + 0.5) * high - 0.5, 1.6, colour.ink);
    }));
    const [f, o] = picked();
    const [row, column] = [features.indexOf(f), outcomes.indexOf(o)];
    if (row >= 0 && column >= 0) {
      pen.strokeStyle = colour.ink;
      pen.lineWidth = 2;
      pen.strokeRect(left + column * wide - 0.5, top + row * high - 0.5, wide, high);
    }
    canvas.setAttribute('aria-label', `Heat map of ${features.length} features by ${outcomes.length} outcomes. Arrow keys move from cell to cell.`);
  }
  function cell(event) {
    if (!grid) return null;
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - grid.left) / grid.wide);
    const row = Math.floor((event.clientY - box.top - grid.top) / grid.high);
    return row >= 0 && column >= 0 && row < features.length && column < outcomes.length ? [features[row], outcomes[column]] : null;
  }
  canvas.addEventListener('pointermove', (event) => { const at = cell(event); showTip(event, at && words(...at)); });
  canvas.addEventListener('pointerleave', (event) => showTip(event, null));
  canvas.addEventListener('click', (event) => { const at = cell(event); if (at) pick(...at); });
  canvas.addEventListener('keydown', (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    const [f, o] = picked();
    const row = Math.min(features.length - 1, Math.max(0, features.indexOf(f) + step[0]));
    const column = Math.min(outcomes.length - 1, Math.max(0, outcomes.indexOf(o) + step[1]));
    pick(features[row], outcomes[column]);
    host.scrollTo({ left: Math.max(0, grid.left + column * grid.wide - host.clientWidth / 2), top: Math.max(0, grid.top + row * grid.high - host.clientHeight / 2) });
  });
  drawings.push(draw);
  return draw;
}

function cut(pen, words, room) {
  if (pen.measureText(words).width <= room) return words;
  let short = words.slice(0, 40);
  while (short && pen.measureText(`${short}…`).width > room) short = short.slice(0, -1);
  return `${short}…`;
}
