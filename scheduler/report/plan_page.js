// The script of the page of a plan: the step under the pointer, the table of nodes. Reads the
// JSON of the element "data" (plan_page.c) and writes text nodes only, so that no name can become
// markup.
'use strict';
(() => {
const by = id => document.getElementById(id);
const D = JSON.parse(by('data').textContent);
const OWNER = ['kept', 'on their way', 'recomputed', 'gradients', 'workspace'];
const KIND = ['forward', 'backward', 'optimizer'];
const svg = by('memory'), cursor = by('cursor'), now = by('now');
let at = D.peak;

function size(b) {
    const unit = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let u = 0;
    for (; b >= 1024 && u < 4; u++) b /= 1024;
    return (u === 0 ? b : b < 10 ? b.toFixed(2) : b.toFixed(1)) + ' ' + unit[u];
}
const share = cost => (100 * cost / D.base).toFixed(3) + ' % of a step';
const tensor = t => D.tensors[t][0] + ' (' + size(D.tensors[t][1]) + ')';

function line(word, text) {
    const p = document.createElement('p'), b = document.createElement('span');
    b.className = 'soft';
    b.textContent = word + ' ';
    p.append(b, text);
    return p;
}

/* The largest tensors that are there while run i works. */
function largest(i, most) {
    const live = new Set();
    for (let k = 0; k <= i; k++) {
        for (const t of D.nodes[D.runs[k][0]][5]) live.add(t);
        if (k < i) for (const t of D.runs[k][7]) live.delete(t);
    }
    const list = [...live].sort((a, b) => D.tensors[b][1] - D.tensors[a][1]);
    const rest = list.length - most;
    return list.slice(0, most).map(tensor).join(', ') + (rest > 0 ? ' and ' + rest + ' more' : '');
}

function show(i) {
    at = Math.max(0, Math.min(D.runs.length - 1, i));
    const r = D.runs[at], n = D.nodes[r[0]], held = r.slice(2, 7);
    const x = D.left + (at + 0.5) * (D.right - D.left) / D.runs.length;
    cursor.setAttribute('x1', x);
    cursor.setAttribute('x2', x);
    const head = document.createElement('p'), name = document.createElement('b');
    name.textContent = n[0];
    head.append('run ' + (at + 1) + ' of ' + D.runs.length + ': ', name, ' ' + n[1] + ', '
        + KIND[n[2]] + (r[1] ? ', run again' : '') + ', ' + share(n[3]));
    const made = n[5].map(tensor).join(', '), freed = r[7].map(tensor).join(', ');
    now.replaceChildren(head,
        line('live', size(held.reduce((a, b) => a + b, 0)) + ': ' + held
            .map((b, k) => [b, OWNER[k]]).filter(o => o[0] > 0)
            .map(o => size(o[0]) + ' ' + o[1]).join(', ')),
        line('makes', made || 'nothing'), line('then frees', freed || 'nothing'),
        line('largest', largest(at, 6)));
}

function state(n) {
    return n[4] > 1 ? (n[2] > 0 ? KIND[n[2]] + ', ' : '') + 'recomputed'
        : n[2] > 0 ? KIND[n[2]] : n[4] === 0 ? 'not run' : n[6] === 0 ? 'kept' : 'not needed again';
}

/* What runs again first, dearest first; then by size. */
const made = n => n[5].reduce((sum, t) => sum + D.tensors[t][1], 0);
const order = D.nodes.map((n, k) => k).sort((a, b) => {
    const x = D.nodes[a], y = D.nodes[b];
    return (y[4] - 1) * y[3] * (y[4] > 1) - (x[4] - 1) * x[3] * (x[4] > 1)
        || made(y) - made(x) || a - b;
});
function list() {
    const MOST = 200, want = by('filter').value.toLowerCase(), rows = [];
    let found = 0;
    for (const k of order) {
        const n = D.nodes[k], what = state(n);
        if (![n[0], n[1], what].some(s => s.toLowerCase().includes(want))) continue;
        if (++found > MOST) continue;
        const row = document.createElement('tr');
        [n[0], n[1], what, size(made(n)), (100 * n[3] / D.base).toFixed(3) + ' %',
            n[4]].forEach((text, j) => {
            const cell = document.createElement('td');
            cell.textContent = text;
            cell.className = j === 0 ? 'l name' : j < 3 ? 'l' : '';
            if (j === 0) cell.title = text;
            row.append(cell);
        });
        rows.push(row);
    }
    by('nodes').replaceChildren(...rows);
    by('found').textContent = found > MOST ? 'the first ' + MOST + ' of ' + found : found;
}

svg.addEventListener('pointermove', e => {
    const box = svg.getBoundingClientRect();
    const x = (e.clientX - box.left) / box.width * D.width;
    if (x >= D.left && x < D.right)
        show(Math.floor((x - D.left) / (D.right - D.left) * D.runs.length));
});
addEventListener('keydown', e => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[e.key];
    if (!by || e.target.tagName === 'INPUT') return;
    e.preventDefault();
    show(at + by);
});
by('filter').addEventListener('input', list);
if (D.runs.length > 0) show(at);
list();
})();
