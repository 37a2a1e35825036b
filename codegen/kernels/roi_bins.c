/* codegen/kernels/roi_bins.c -- means of the samples in the bins of boxes, whose number depends on
 * the boxes, and the gradient by the image.
 *
 * Forward, a lane computes one bin for all channels. In the gradient a lane has one channel of one
 * image and goes through all bins in their order, so that sums do not depend on how work is shared
 * out. Both loops visit the same samples. */
#include "codegen/kernels/roi_bins.h"

#include "codegen/kernels/loop_nest.h"

#include <inttypes.h>

typedef struct Boxes {
    const LsKernelText *k;
    LsEmit *e;
    /* size: of an image; bins: of a box, `wide` in a row */
    int64_t images, channels, size[2], boxes, bins, wide;
} Boxes;

static Boxes boxes_new(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    const LsShape *x = node->op == LS_OP_ROI_MEAN ? ls_in_shape(k->g, k->n, 0) : &node->attr.roi.x;
    return (Boxes){.k = k,
                   .e = k->e,
                   .images = x->dim[0],
                   .channels = x->dim[1],
                   .size = {x->dim[2], x->dim[3]},
                   .boxes = ls_in_shape(k->g, k->n, 1)->dim[0],
                   .bins = node->attr.roi.height * node->attr.roi.width,
                   .wide = node->attr.roi.width};
}

/* Declares the bin's axes `down` and `along` for bin p of box r, `is`: they are numbers, and
 * `share`: of a sample. */
static void find_bin(const Boxes *s)
{
    ls_emit_line(s->e, "LsBin down, along;");
    ls_emit_line(s->e, "const real tall = box[r * 4 + 3], wide = box[r * 4 + 2];");
    ls_emit_line(s->e,
                 "const int is_down = ls_bin(box[r * 4 + 1] + (real)(p / " LS_N64
                 ") * tall, tall, " LS_N64 ", &down);",
                 s->wide, s->size[0]);
    ls_emit_line(s->e,
                 "const int is_along = ls_bin(box[r * 4] + (real)(p %% " LS_N64
                 ") * wide, wide, " LS_N64 ", &along);",
                 s->wide, s->size[1]);
    ls_emit_line(s->e, "const real samples = down.count * along.count, share = samples > 0 ? 1 / "
                       "samples : LS_R(0);");
}

/* Opens the loops over the samples inside of the image, and over the four elements around each:
 * `pixel`, `by`. */
static int open_samples(const Boxes *s)
{
    ls_emit_line(s->e, "for (int64_t i = down.lo; i < down.hi; i++) {");
    ls_emit_line(s->e, "int64_t row[2], column[2];");
    ls_emit_line(s->e, "real by_row[2], by_column[2];");
    ls_emit_line(s->e, "if (!ls_bin_tap(&down, i, " LS_N64 ", row, by_row))", s->size[0]);
    ls_emit_line(s->e, "    continue;");
    ls_emit_line(s->e, "for (int64_t j = along.lo; j < along.hi; j++) {");
    ls_emit_line(s->e, "if (!ls_bin_tap(&along, j, " LS_N64 ", column, by_column))", s->size[1]);
    ls_emit_line(s->e, "    continue;");
    ls_emit_line(s->e, "for (int t = 0; t < 4; t++) {");
    ls_emit_line(s->e, "const int64_t pixel = row[t / 2] * " LS_N64 " + column[t %% 2];",
                 s->size[1]);
    ls_emit_line(s->e, "const real by = by_row[t / 2] * by_column[t %% 2] * share;");
    return 3;
}

static void forward(const Boxes *s)
{
    enum { WORK = 32 };         /* per channel: not known, as the number of samples */
    const int64_t group = ls_line_group(s->k, s->channels * WORK), pixels = s->size[0] * s->size[1];
    const LsGrid part = {"part", ls_ceil_div(s->boxes * s->bins, group), ls_threads(group, 256), 1};
    ls_emit_part(s->k, &part);
    ls_emit_operand(s->k, "x", 0);
    ls_emit_operand(s->k, "box", 1);
    ls_emit_operand(s->k, "of", 2);
    ls_emit_result(s->k, "y", 0);
    ls_emit_line(s->e, "LS_LANES(q, lo * " LS_INNER64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {",
                 group, group, s->boxes * s->bins);
    ls_emit_line(s->e,
                 "const int64_t r = q / " LS_N64 ", p = q %% " LS_N64 ", to = r * " LS_N64
                 " + p, image = of[r];",
                 s->bins, s->bins, s->channels * s->bins);
    find_bin(s);
    ls_emit_line(s->e, "const bool is = image >= 0 && image < " LS_N64 " && is_down && is_along;",
                 s->images);
    ls_emit_line(s->e, "for (int64_t c = 0; c < " LS_N64 "; c++)", s->channels);
    ls_emit_line(s->e, "    y[to + c * " LS_N64 "] = is ? 0 : NAN;", s->bins);
    ls_emit_line(s->e, "if (!is)");
    ls_emit_line(s->e, "    continue;");
    int open = open_samples(s);
    ls_emit_line(s->e, "for (int64_t c = 0; c < " LS_N64 "; c++)", s->channels);
    ls_emit_line(s->e,
                 "    y[to + c * " LS_N64 "] += by * x[(image * " LS_N64 " + c) * " LS_N64
                 " + pixel];",
                 s->bins, s->channels, pixels);
    ls_emit_close(s->e, open + 2);
    ls_emit_launch(s->k, &part, 1);
}

static void gradient(const Boxes *s)
{
    LsEmit *e = s->e;
    enum { WORK = 32 };
    const int64_t planes = s->images * s->channels, pixels = s->size[0] * s->size[1];
    const int64_t group = ls_line_group(s->k, s->boxes * s->bins * WORK / s->images + pixels);
    const LsGrid part = {"part", ls_ceil_div(planes, group), ls_threads(group, 256), 1};
    ls_emit_part(s->k, &part);
    ls_emit_operand(s->k, "dy", 0);
    ls_emit_operand(s->k, "box", 1);
    ls_emit_operand(s->k, "of", 2);
    ls_emit_result(s->k, "dx", 0);
    ls_emit_line(e, "LS_LANES(l, lo * " LS_INNER64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {",
                 group, group, planes);
    ls_emit_line(e, "const int64_t b = l / " LS_N64 ", c = l %% " LS_N64 ", to = l * " LS_N64 ";",
                 s->channels, s->channels, pixels);
    ls_emit_line(e, "for (int64_t i = 0; i < " LS_N64 "; i++)", pixels);
    ls_emit_line(e, "    dx[to + i] = 0;");
    ls_emit_line(e, "for (int64_t r = 0; r < " LS_N64 "; r++) {", s->boxes);
    ls_emit_line(e, "if (of[r] != b)");
    ls_emit_line(e, "    continue;");
    ls_emit_line(e, "for (int64_t p = 0; p < " LS_N64 "; p++) {", s->bins);
    find_bin(s);
    ls_emit_line(e, "if (!is_down || !is_along)");
    ls_emit_line(e, "    continue;");
    ls_emit_line(e, "const real v = dy[(r * " LS_N64 " + c) * " LS_N64 " + p];", s->channels,
                 s->bins);
    int open = open_samples(s);
    ls_emit_line(e, "dx[to + pixel] += by * v;");
    ls_emit_close(e, open + 4);
    ls_emit_launch(s->k, &part, 1);
}

void ls_roi_emit(const LsKernelText *k)
{
    const Boxes s = boxes_new(k);
    if (k->g->node[k->n.i].op == LS_OP_ROI_MEAN)
        forward(&s);
    else
        gradient(&s);
}
