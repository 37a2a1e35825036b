/* codegen/kernels/sample.c -- LS_K_SAMPLE: images read at computed places, and the gradients by
 * image and place.
 *
 * Operands are row-major. Forward, and in the gradient by the places, a lane computes one place for
 * all channels. In the gradient by the image a lane has one channel of one image, and goes through
 * all places in their order: places may meet in any element, and sums do not depend on how work is
 * shared out. */
#include "codegen/kernels/loop_nest.h"
#include "codegen/kernels/roi_bins.h"

#include <inttypes.h>

typedef struct Sample {
    const LsKernelText *k;
    LsEmit *e;
    const LsSampleAttr *at;
    int axes, taps;             /* spatial axes; taps of a filter along one of them */
    int64_t images, channels, rows, places;     /* places: of a row */
    int64_t x[LS_MAX_SPATIAL], pixels;
    int of;                     /* operand with the images' numbers; -1: none */
} Sample;

static Sample sample_new(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    int first = node->op == LS_OP_SAMPLE_DAT ? 2 : 1;
    const LsShape *at = ls_in_shape(k->g, k->n, first),
                  *x = node->op == LS_OP_SAMPLE_DX ? &node->attr.sample.x
                                                   : ls_in_shape(k->g, k->n, first - 1);
    Sample s = {.k = k,
                .e = k->e,
                .at = &node->attr.sample,
                .axes = x->rank - 2,
                .images = x->dim[0],
                .channels = x->dim[1],
                .rows = at->dim[0],
                .pixels = 1,
                .of = ls_is(ls_in(k->g, k->n, first + 1)) ? first + 1 : -1};
    s.taps = s.at->mode == LS_SAMPLE_NEAREST ? 1 : s.at->mode == LS_SAMPLE_LINEAR ? 2 : 4;
    s.places = ls_count(at) / s.rows / s.axes;
    for (int d = 0; d < s.axes; d++) {
        s.x[d] = x->dim[2 + d];
        s.pixels *= s.x[d];
    }
    return s;
}

static int64_t all_taps(const Sample *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->axes; d++)
        n *= s->taps;
    return n;
}

/* Where place q has its coordinate along axis d. */
static const char *coordinate(const Sample *s, int d)
{
    return ls_arena_printf(s->k->g->arena, "q * %d + %d", s->axes,
                           s->at->last_first ? s->axes - 1 - d : d);
}

/* Declares the taps around place q along every axis. */
static void find_taps(const Sample *s)
{
    static const char *const filter[] = {"nearest", "linear", "cubic"};
    static const char *const edge[] = {"LS_EDGE_NOTHING", "LS_EDGE_CLAMP", "LS_EDGE_MIDDLE",
                                       "LS_EDGE_BORDER"};
    for (int d = 0; d < s->axes; d++) {
        ls_emit_line(s->e, "int64_t tap%d[%d];", d, s->taps);
        ls_emit_line(s->e, "real by%d[%d], slope%d[%d];", d, s->taps, d, s->taps);
        ls_emit_line(s->e, "ls_taps_%s(at[%s], " LS_N64 ", %s, tap%d, by%d, slope%d);",
                     filter[s->at->mode], coordinate(s, d), s->x[d], edge[s->at->beyond], d, d, d);
    }
}

/* Opens the loops over the taps inside of the image: k0, k1, ... */
static void open_taps(const Sample *s)
{
    for (int d = 0; d < s->axes; d++) {
        ls_emit_line(s->e, "for (int k%d = 0; k%d < %d; k%d++) {", d, d, s->taps, d);
        ls_emit_line(s->e, "if (tap%d[k%d] < 0)", d, d);
        ls_emit_line(s->e, "    continue;");
    }
}

/* The product of the taps' weights, that along axis `slope` replaced by its slope. */
static const char *weight(const Sample *s, int slope)
{
    const char *text = "";
    for (int d = 0; d < s->axes; d++)
        text = ls_arena_printf(s->k->g->arena, "%s%s%s%d[k%d]", text, d > 0 ? " * " : "",
                               d == slope ? "slope" : "by", d, d);
    return text;
}

/* The tap's pixel in a plane. */
static const char *pixel(const Sample *s)
{
    const char *text = "tap0[k0]";
    for (int d = 1; d < s->axes; d++)
        text =
            ls_arena_printf(s->k->g->arena, "(%s) * " LS_N64 " + tap%d[k%d]", text, s->x[d], d, d);
    return text;
}

/* Declares `image`, that of row r. */
static void find_image(const Sample *s)
{
    if (s->of >= 0)
        ls_emit_line(s->e, "const int64_t image = of[r];");
    else
        ls_emit_line(s->e, "const int64_t image = r;");
}

/* Places that make a worthwhile unit. */
static int64_t group_of(const Sample *s) { return ls_line_group(s->k, s->channels * all_taps(s)); }

static LsGrid places_part(const Sample *s)
{
    int64_t group = group_of(s);
    const LsGrid part = {"part", ls_ceil_div(s->rows * s->places, group), ls_threads(group, 256),
                         1};
    ls_emit_part(s->k, &part);
    if (s->of >= 0)
        ls_emit_operand(s->k, "of", s->of);
    return part;
}

/* Opens the loop over the places q of a unit; p: the place in channel 0 of the result or its
 * gradient, from: where its image begins. */
static void open_places(const Sample *s)
{
    int64_t group = group_of(s);
    ls_emit_line(s->e, "LS_LANES(q, lo * " LS_INNER64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {",
                 group, group, s->rows * s->places);
    ls_emit_line(s->e, "const int64_t r = q / " LS_N64 ", p = r * " LS_N64 " + q %% " LS_N64 ";",
                 s->places, s->channels * s->places, s->places);
    find_image(s);
    ls_emit_line(s->e, "const bool is = image >= 0 && image < " LS_N64 ";", s->images);
    ls_emit_line(s->e, "const int64_t from = is ? image * " LS_N64 " : 0;",
                 s->channels * s->pixels);
    find_taps(s);
}

static void forward(const Sample *s)
{
    const LsGrid part = places_part(s);
    ls_emit_operand(s->k, "x", 0);
    ls_emit_operand(s->k, "at", 1);
    ls_emit_result(s->k, "y", 0);
    open_places(s);
    ls_emit_line(s->e, "for (int64_t c = 0; c < " LS_N64 "; c++) {", s->channels);
    ls_emit_line(s->e, "real sum = is ? 0 : NAN;");
    open_taps(s);
    ls_emit_line(s->e, "sum += %s * x[from + c * " LS_N64 " + %s];", weight(s, -1), s->pixels,
                 pixel(s));
    ls_emit_close(s->e, s->axes);
    ls_emit_line(s->e, "y[p + c * " LS_N64 "] = sum;", s->places);
    ls_emit_close(s->e, 3);
    ls_emit_launch(s->k, &part, 1);
}

static void gradient_of_places(const Sample *s)
{
    const LsGrid part = places_part(s);
    ls_emit_operand(s->k, "dy", 0);
    ls_emit_operand(s->k, "x", 1);
    ls_emit_operand(s->k, "at", 2);
    ls_emit_result(s->k, "dat", 0);
    open_places(s);
    for (int d = 0; d < s->axes; d++)
        ls_emit_line(s->e, "real sum%d = is ? 0 : NAN;", d);
    ls_emit_line(s->e, "for (int64_t c = 0; c < " LS_N64 "; c++) {", s->channels);
    open_taps(s);
    ls_emit_line(s->e, "const real v = dy[p + c * " LS_N64 "] * x[from + c * " LS_N64 " + %s];",
                 s->places, s->pixels, pixel(s));
    for (int d = 0; d < s->axes; d++)
        ls_emit_line(s->e, "sum%d += v * (%s);", d, weight(s, d));
    ls_emit_close(s->e, s->axes + 1);
    for (int d = 0; d < s->axes; d++)
        ls_emit_line(s->e, "dat[%s] = sum%d;", coordinate(s, d), d);
    ls_emit_close(s->e, 2);
    ls_emit_launch(s->k, &part, 1);
}

static void gradient_of_image(const Sample *s)
{
    LsEmit *e = s->e;
    int64_t planes = s->images * s->channels;
    int64_t group = ls_line_group(
        s->k, s->rows * s->places * all_taps(s) / (s->of >= 0 ? s->images : 1) + s->pixels);
    const LsGrid part = {"part", ls_ceil_div(planes, group), ls_threads(group, 256), 1};
    ls_emit_part(s->k, &part);
    ls_emit_operand(s->k, "dy", 0);
    ls_emit_operand(s->k, "at", 1);
    if (s->of >= 0)
        ls_emit_operand(s->k, "of", s->of);
    ls_emit_result(s->k, "dx", 0);
    ls_emit_line(e, "LS_LANES(l, lo * " LS_INNER64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {",
                 group, group, planes);
    ls_emit_line(e, "const int64_t b = l / " LS_N64 ", c = l %% " LS_N64 ", to = l * " LS_N64 ";",
                 s->channels, s->channels, s->pixels);
    ls_emit_line(e, "for (int64_t i = 0; i < " LS_N64 "; i++)", s->pixels);
    ls_emit_line(e, "    dx[to + i] = 0;");
    if (s->of >= 0) {
        ls_emit_line(e, "for (int64_t r = 0; r < " LS_N64 "; r++) {", s->rows);
        find_image(s);
        ls_emit_line(e, "if (image != b)");
        ls_emit_line(e, "    continue;");
    } else {
        ls_emit_line(e, "{");
        ls_emit_line(e, "const int64_t r = b;");
    }
    ls_emit_line(e, "for (int64_t p = 0; p < " LS_N64 "; p++) {", s->places);
    ls_emit_line(e, "const int64_t q = r * " LS_N64 " + p;", s->places);
    find_taps(s);
    ls_emit_line(e, "const real v = dy[(r * " LS_N64 " + c) * " LS_N64 " + p];", s->channels,
                 s->places);
    open_taps(s);
    ls_emit_line(e, "dx[to + %s] += %s * v;", pixel(s), weight(s, -1));
    ls_emit_close(e, s->axes + 4);
    ls_emit_launch(s->k, &part, 1);
}

static void sample_emit(const LsKernelText *k)
{
    const LsOpCode op = (LsOpCode)k->g->node[k->n.i].op;
    if (op == LS_OP_ROI_MEAN || op == LS_OP_ROI_MEAN_DX) {
        ls_roi_emit(k);
        return;
    }
    const Sample s = sample_new(k);
    switch (op) {
    case LS_OP_SAMPLE:    forward(&s); break;
    case LS_OP_SAMPLE_DX: gradient_of_image(&s); break;
    default:              gradient_of_places(&s); break;
    }
}

const LsEmitter ls_emitter_sample = {.emit = sample_emit};
