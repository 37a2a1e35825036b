/* codegen/program/program_text.c -- the C file of a program: kernels, the tables of steps
 * (phase_tables.c), state, inputs, and the LsProgram that names them all. */
#include "codegen/program/program_text.h"

#include "codegen/program/adapter_tables.h"

#include "base/heap.h"
#include "build_config.h"
#include "codegen/fusion/gradient_in_update.h"
#include "codegen/program/cuda_program_text.h"
#include "codegen/program/packed_tables.h"
#include "codegen/program/phase_tables.h"
#include "codegen/program/rank_tables.h"
#include "codegen/program/stage_tables.h"
#include "compiler/updates/trained_share.h"
#include "runtime/base/attached_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void print_state(const LsAddresses *a, LsEmit *e)
{
    static const char *const kind[] = {"LS_STATE_PARAM", "LS_STATE_FROZEN", "LS_STATE_STAT",
                                       "LS_STATE_MOMENT", "LS_STATE_AVERAGE", "LS_STATE_SUM"};
    ls_emit_line(e, "static const LsStateTensor state[] = {");
    for (uint32_t k = 0; k < a->nstate; k++) {
        const LsStateTensor *row = &a->state[k].row;
        fprintf(e->to, "    {");
        ls_tensor_print(e->to, &row->t);
        fprintf(e->to, ", %s, NULL, %" PRId64 "},\n", kind[row->kind], row->onnx_offset);
    }
    ls_emit_line(e, "{.onnx_offset = -1}");
    ls_emit_line(e, "};");
    ls_packed_tables_print(a, e);
}

static bool any_stopped(const LsAddresses *a)
{
    bool any = false;
    for (uint32_t k = 0; k < a->nstate; k++)
        any |= a->state[k].g->value[a->state[k].v.i].stopped;
    return any;
}

static void print_stopped(const LsAddresses *a, LsEmit *e)
{
    if (!any_stopped(a))
        return;
    fprintf(e->to, "static const uint8_t stopped[] = {");
    for (uint32_t k = 0; k < a->nstate; k++)
        fprintf(e->to, "%s%d",
                k == 0        ? ""
                : k % 32 == 0 ? ",\n    "
                              : ", ",
                a->state[k].g->value[a->state[k].v.i].stopped);
    fprintf(e->to, "};\n");
}

static bool any_further(const LsAddresses *a)
{
    bool any = false;
    for (uint32_t k = 0; k < a->nstate; k++)
        any |= a->state[k].further > 0;
    return any;
}

static void print_further(const LsAddresses *a, LsEmit *e)
{
    if (!any_further(a))
        return;
    fprintf(e->to, "static const int64_t further[] = {");
    for (uint32_t k = 0; k < a->nstate; k++)
        fprintf(e->to, "%s%" PRId64, k == 0 ? "" : k % 12 == 0 ? ",\n    " : ", ",
                a->state[k].further);
    fprintf(e->to, "};\n");
}

/* The length of the axis that operand 1 of node n indexes; 0: it is no index. */
static int64_t indexed_length(const LsGraph *g, LsNodeId n)
{
    const LsGatherAttr *at = &g->node[n.i].attr.gather;
    switch (g->node[n.i].op) {
    case LS_OP_GATHER: case LS_OP_GATHER_EACH: return ls_in_shape(g, n, 0)->dim[at->axis];
    case LS_OP_SCATTER: case LS_OP_SCATTER_EACH: return at->x.dim[at->axis];
    default: return 0;
    }
}

/* Rows of the smallest table that v indexes; 0: v indexes none. */
static int64_t indexed_rows(const LsGraph *g, LsValueId v)
{
    int64_t rows = 0;
    for (uint32_t i = 1; i < g->nnode; i++) {
        int64_t dim = indexed_length(g, (LsNodeId){i});
        if (dim == 0 || ls_viewed(g, ls_in(g, (LsNodeId){i}, 1)).i != v.i)
            continue;
        rows = rows == 0 || dim < rows ? dim : rows;
    }
    return rows;
}

/* Classes that the k-th input, a target, chooses from; 0: they are in LsLossTarget.classes, or
 * there are none. */
static int64_t further_classes(const LsGraph *g, uint32_t k)
{
    const LsValueId label = g->input[k];
    LsNodeId loss = ls_find_cross_entropy_of(g, label);
    if (k < g->ninput - g->objective.nlabel || label.i == g->objective.label.i || loss.i == 0)
        return 0;
    return ls_classes_of(g, loss);
}

static bool is_read(const LsGraph *g, LsValueId v)
{
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++)
            if (ls_in(g, (LsNodeId){i}, k).i == v.i)
                return true;
    return false;
}

/* Masks and positions of tokens, by the names that all exporters give them: a LsUsual. */
static const char *usual(const LsGraph *g, LsValueId v)
{
    const LsValue *x = &g->value[v.i];
    if (x->type == LS_REAL || x->shape.rank != 2)
        return "LS_USUAL_NONE";
    if (strcmp(x->name, "attention_mask") == 0)
        return is_read(g, v) ? "LS_USUAL_ONES" : "LS_USUAL_LENGTH";
    return strcmp(x->name, "position_ids") == 0 ? "LS_USUAL_COUNT" : "LS_USUAL_NONE";
}

static void print_inputs(const LsGraph *g, LsEmit *e)
{
    ls_emit_line(e, "static const LsInput input[] = {");
    for (uint32_t k = 0; k < g->ninput; k++) {
        LsTensor t = ls_address_tensor(g, g->input[k], (LsAddress){LS_AT_INPUT, k});
        fprintf(e->to, "    {");
        ls_tensor_print(e->to, &t);
        int64_t rows = indexed_rows(g, g->input[k]);
        const int64_t classes = further_classes(g, k);
        const bool label = k >= g->ninput - g->objective.nlabel;
        fprintf(e->to, ", %s, %" PRId64 ", %" PRId64 ", %s},\n", label ? "true" : "false",
                classes > 0 ? 0 : -rows, classes > 0 ? classes : rows,
                label ? "LS_USUAL_NONE" : usual(g, g->input[k]));
    }
    ls_emit_line(e, "{.is_label = false}");
    ls_emit_line(e, "};");
}

static void print_segments(const LsGraph *g, LsEmit *e)
{
    for (uint32_t k = 0; k < g->ninput && ls_is(g->segments); k++)
        if (g->input[k].i == g->segments.i)
            ls_emit_line(e, ".segments = %u,", k + 1);
}

static void print_string_field(LsEmit *e, const char *field, const char *s)
{
    fprintf(e->to, "    .%s = ", field);
    ls_emit_string(e->to, s);
    fprintf(e->to, ",\n");
}

static void print_classes(const LsGraph *g, LsEmit *e)
{
    LsNodeId loss = ls_find_cross_entropy(g);
    const LsNodeId soft = ls_find_soft_scores(g);
    if (soft.i != 0) {
        const int axis = g->node[soft.i].attr.axis.axis;
        ls_emit_line(e,
                     ".target.classes = %" PRId64 ", .target.class_axis = %d, .target.soft = true,",
                     ls_in_shape(g, soft, 0)->dim[axis], axis);
    }
    if (loss.i == 0)
        return;
    const LsLossAttr *at = &g->node[loss.i].attr.loss;
    ls_emit_line(e,
                 ".target.classes = %" PRId64
                 ", .target.class_axis = %d, .target.has_ignore = %s, .target.ignore = %" PRId64
                 ",",
                 ls_classes_of(g, loss), at->axis,
                 at->has_ignore ? "true" : "false", at->has_ignore ? at->ignore : 0);
}

/* The node that made the loss; of a loss of parts, the last one. */
static LsNodeId loss_maker(const LsGraph *g)
{
    const LsNodeId n = g->value[g->objective.loss.i].def;
    return g->node[n.i].op == LS_OP_XENT_END ? g->value[ls_in(g, n, 0).i].def : n;
}

static void print_loss(const LsGraph *g, LsEmit *e)
{
    const LsNodeId n = loss_maker(g);
    const LsOpCode op = g->node[n.i].op;
    const bool weighs = n.i != 0 && g->node[n.i].nin > 2 && ls_is(ls_in(g, n, 2));
    if (g->objective.over == LS_OVER_SUM)
        ls_emit_line(e, ".target.sums = true,");
    if (n.i != 0 && (op == LS_OP_XENT || op == LS_OP_NLL || op == LS_OP_XENT_SUM
                   || op == LS_OP_XENT_PART) && !weighs
        && g->node[n.i].attr.loss.smoothing == 0
        && g->node[n.i].attr.loss.reduction == LS_LOSS_MEAN)
        ls_emit_line(e, ".target.plain = true,");
}

/* The output whose elements the loss compares with those of the target. Outputs are the first
 * watches. */
static void print_compared(const LsGraph *g, LsEmit *e)
{
    for (uint32_t i = 1; g != NULL && i < g->nnode; i++) {
        const LsNodeId n = {i};
        if (g->node[i].op != LS_OP_REGRESSION_LOSS
            || ls_viewed(g, ls_in(g, n, 1)).i != g->objective.label.i)
            continue;
        for (uint32_t k = 0; k < g->noutput; k++)
            if (g->output[k].i == ls_in(g, n, 0).i) {
                ls_emit_line(e, ".target.compared = %u, .target.bits = %s,", k + 1,
                             g->node[i].attr.loss.regression == LS_REG_LOGIT ? "true" : "false");
                return;
            }
    }
}

/* What is not right for a batch that copies of its samples fill up. Kernels of GPUs take the
 * statistics of all samples. */
static void print_short_batch(LsEmit *e, const LsGraph *g, const char *field, bool gpu)
{
    const LsMixing *m = &g->mixing;
    const char *by = m->by;
    if (by == NULL && gpu && m->norm != NULL)
        by = ls_arena_printf(g->arena, "batch norm '%s' takes statistics of all samples on a GPU",
                             m->norm);
    if (by == NULL && (m->loss || (gpu && g->objective.of_file)))
        by = "the model computes its own loss, over all samples of a batch";
    if (by != NULL)
        print_string_field(e, field, by);
}

static void print_short_batches(LsEmit *e, const LsGraph *train, const LsGraph *eval, bool gpu)
{
    print_short_batch(e, train, "mixing.train", gpu);
    if (eval != NULL)
        print_short_batch(e, eval, "mixing.eval", gpu);
    if (train->mixing.norm == NULL)
        return;
    print_string_field(e, "mixing.norm", train->mixing.norm);
    ls_emit_line(e, ".mixing.each = %" PRId64 ",", train->mixing.each);
}

static void print_scaling(LsAddresses *a, const LsGraph *g, LsEmit *e)
{
    if (ls_is(g->scaling.scale))
        ls_emit_line(e, ".scaling = {S(%" PRId64 "), S(%" PRId64 "), S(%" PRId64 "), %.9g},",
                     ls_address_source(a, g, g->scaling.scale).offset,
                     ls_address_source(a, g, g->scaling.counter).offset,
                     ls_address_source(a, g, g->scaling.skips).offset,
                     (double)*(const float *)g->value[g->scaling.scale.i].data);
}

static void print_privacy(const LsGraph *g, LsEmit *e)
{
    if (g->privacy.on)
        ls_emit_line(e, ".privacy = {%.17g, %.17g, %.17g, %.17g},", g->privacy.clip,
                     g->privacy.noise, g->privacy.delta, g->privacy.expected);
}

static void print_ensemble(const LsGraph *g, LsEmit *e)
{
    if (g->ensemble.members > 0)
        ls_emit_line(e, ".ensemble = {%" PRId64 ", %" PRId64 ", %s, %s},", g->ensemble.members,
                     g->ensemble.lanes, g->ensemble.own_batches ? "true" : "false",
                     g->ensemble.same_draws ? "true" : "false");
}

/* Stages of a pipeline follow the other phases: the first plan of each, then the second one of
 * each. */
enum { ONCE, TRAIN, LAST, UPDATE, EVAL, NPHASES };

typedef struct Text {           /* the program while it is printed */
    const LsCode *c;
    const LsGraph *g;           /* of training */
    const LsKernelSet *set;
    LsPhaseText *phase; int nphase;
} Text;

static bool is_printed(const Text *x, int k)
{
    return x->phase[k].plan != NULL || (k == TRAIN && x->c->cut == NULL) || k == EVAL;
}

static int64_t arena_bytes(const Text *x)
{
    int64_t arena = 0, stages = 0;
    for (int k = 0; k < NPHASES; k++)
        if (x->phase[k].plan != NULL && x->phase[k].plan->arena > arena)
            arena = x->phase[k].plan->arena;
    for (uint32_t k = 0; x->c->cut != NULL && k < x->c->cut->k; k++)
        stages = x->c->stage[k].at + ls_align(x->c->stage[k].plan->layout.arena, LS_ALIGNMENT);
    arena = stages > arena ? stages : arena;
    return arena * (x->g->ensemble.members > 0 ? x->g->ensemble.lanes : 1);
}

static double overhead(const LsCode *c)
{
    double cost = 0, base = 0;
    if (c->cut == NULL)
        return ls_plan_overhead(c->train.plan);
    for (uint32_t k = 0; k < c->cut->k; k++) {
        cost += ls_pipe_cost(&c->stage[k].plan->layout, (uint32_t)c->parts);
        base += c->stage[k].plan->layout.of[LS_PIPE_USUAL].plan.base_cost;
    }
    return base > 0 ? cost / base - 1 : 0;
}

static void print_words(const LsCode *c, LsEmit *e)
{
    print_string_field(e, "about.model", c->model);
    print_string_field(e, "about.plan_hash", c->plan_hash);
    print_string_field(e, "about.strategy", c->strategy);
    print_string_field(e, "about.loss", c->loss);
    print_string_field(e, "about.optimizer", c->optimizer);
    print_string_field(e, "about.version", LS_VERSION);
    if (c->schedule != NULL)
        print_string_field(e, "defaults.schedule", c->schedule);
}

static void print_predicted(const LsPredicted *p, LsEmit *e)
{
    if (p->n == 0)
        return;
    print_string_field(e, "about.predicted.machine", p->machine);
    ls_emit_line(e, ".about.predicted.n = %d,", p->n);
    for (int k = 0; k < p->n; k++)
        ls_emit_line(e, ".about.predicted.ns[%d] = %.4g,", k, p->ns[k]);
}

static void print_program(const Text *x, LsEmit *e)
{
    static const char *const field[NPHASES] = {"phase.once", "phase.train", "phase.last",
                                               "phase.update", "phase.eval"};
    const LsCode *c = x->c;
    ls_emit_line(e, "const LsProgram ls_program = {");
    print_words(c, e);
    ls_emit_line(e, ".real_bytes = %d, .division = {%" PRId64 ", %d, %d},",
                 c->target->real_bytes, x->g->batch, c->parts > 1 ? c->parts : 0, c->accumulate);
    if (c->precision != NULL)
        print_string_field(e, "about.precision", c->precision);
    if (ls_kernel_set_has_dots(x->set))
        ls_emit_line(e, ".about.bf16_sums = LS_DOT16_TILES ? \"tiles\" : \"pairs\",");
    ls_emit_line(e, ".bytes.budget = %" PRId64 ", .bytes.state = %" PRId64 ",", c->budget,
                 c->addresses->state_bytes);
    ls_emit_line(e, ".bytes.mapped = %" PRId64 ",", c->addresses->mapped_bytes);
    ls_emit_line(e, ".bytes.arena = %" PRId64 ", .bytes.constants = %u,", arena_bytes(x),
                 c->addresses->nconst);
    ls_emit_line(e, ".about.overhead = %.6f, .napplied = %u, .defaults.lr = %.17g,", overhead(c),
                 ls_applied(x->g), c->default_lr);
    print_predicted(&c->predicted, e);
    ls_emit_line(e, ".state = state, .nstate = %u, .input = input, .ninput = %u,",
                 c->addresses->nstate, x->g->ninput);
    if (ls_trained_share(x->g).of_tensors > 0)
        ls_emit_line(e, ".about.trains = \"%s\",", ls_trained_share_text(x->g));
    if (any_stopped(c->addresses))
        ls_emit_line(e, ".stopped = stopped,");
    if (any_further(c->addresses))
        ls_emit_line(e, ".further = further,");
    for (int k = 0; k < NPHASES; k++)
        if (is_printed(x, k))
            ls_phase_print_entry(&x->phase[k], field[k], e);
    if (c->cut != NULL)
        ls_emit_line(e, ".pipeline = {stage, %u, state_stage}, .bytes.ring = %u,", c->cut->k,
                     c->ring);
    if (c->ranks != NULL)
        ls_emit_line(e, ".ranks = &ranks,");
    if (c->mpi)
        ls_emit_line(e, ".comm = &ls_comm_mpi,");
    print_segments(x->g, e);
    print_classes(x->g, e);
    print_loss(x->g, e);
    print_compared(c->eval.problem != NULL ? c->eval.problem->g : NULL, e);
    print_short_batches(e, x->g, c->eval.problem != NULL ? c->eval.problem->g : NULL,
                        c->target->kind == LS_TARGET_CUDA);
    print_scaling(c->addresses, x->g, e);
    print_privacy(x->g, e);
    print_ensemble(x->g, e);
    ls_emit_line(
        e, ".argument = {address, element_count, element_type},");
    ls_emit_line(e, ".constant = ls_constant_data, .file = {%s, %zu, %zu, %zu},",
                 c->onnx_attached ? "NULL" : "ls_onnx_data", c->onnx_bytes, c->onnx_tail,
                 c->onnx_shift);
    ls_packed_tables_entry(c->addresses, e);
    if (c->adapters != NULL)
        ls_adapter_tables_entry(c, e);
    if (c->target->kind == LS_TARGET_CUDA)
        ls_emit_line(e, ".accelerator = {&ls_cuda_device, &cuda, %s, %s},",
                     c->ranks != NULL ? "&ls_cuda_ranks" : "NULL", c->library ? "true" : "false");
    ls_emit_line(e, "};");
}

static void print_stage_arena(const LsPipeLayout *l, uint32_t number, FILE *to)
{
    fprintf(to, " * stage %-3u %" PRId64 " bytes:", number, l->arena);
    for (uint32_t k = 0; k < l->nregion; k++)
        fprintf(to, "%s %u times %" PRId64, k > 0 ? "," : "", l->region[k].copies,
                l->region[k].bytes);
    fputc('\n', to);
}

static void print_arenas(const LsCode *c, FILE *to)
{
    if (c->cut == NULL)
        fprintf(to,
                " * arena     %" PRId64 " bytes for all that a step computes (live peak %" PRId64
                ")\n",
                c->train.plan->arena, c->train.plan->live_peak);
    for (uint32_t k = 0; c->cut != NULL && k < c->cut->k; k++)
        print_stage_arena(&c->stage[k].plan->layout, k, to);
}

static void print_head(const LsCode *c, FILE *to)
{
    fprintf(to, "/* Training program of ");
    ls_emit_comment(to, c->model);
    fprintf(to, ", written by lowerset.\n *\n");
    fprintf(to, " * plan      %s, strategy %s", c->plan_hash, c->strategy);
    if (c->cut == NULL)
        fprintf(to, ", %u steps", c->train.plan->nstep);
    fprintf(to,
            "\n * state     %" PRId64 " bytes: parameters, running statistics, optimizer moments\n",
            c->addresses->state_bytes);
    print_arenas(c, to);
    if (c->budget > 0)
        fprintf(to, " * budget    %" PRId64 " bytes\n", c->budget);
    fprintf(to, " * recompute %.2f %% of a step's predicted cost\n */\n", 100 * overhead(c));
}

static void print_width(const LsCode *c, FILE *to)
{
    fprintf(to, "%s", c->target->real_bytes == 8 ? "#define LS_F64\n" : "");
}

/* Prints all text after the kernels, and completes the constants. */
static void print_rest(const Text *x, LsEmit *e)
{
    const LsCode *c = x->c;
    LsPhaseText **printed = ls_arena_alloc(x->g->arena, (size_t)x->nphase, sizeof *printed);
    int n = 0;
    for (int k = 0; k < x->nphase; k++)
        if (is_printed(x, k))
            printed[n++] = &x->phase[k];
    ls_phase_print_tables(printed, n, e);
    if (c->cut != NULL)
        ls_stages_print(c, &x->phase[NPHASES], e);
    ls_emit_line(e, "\n/* ---- state, inputs, program ---- */");
    print_state(c->addresses, e);
    print_stopped(c->addresses, e);
    print_further(c->addresses, e);
    if (c->cut != NULL)
        ls_state_stages_print(c, &x->phase[NPHASES], e);
    print_inputs(x->g, e);
    if (c->ranks != NULL)
        ls_rank_table_print(c->ranks, c->addresses, e);
    if (c->mpi)
        ls_emit_line(e, "extern const struct LsCommKind ls_comm_mpi;");
    ls_emit_line(e, "extern const unsigned char ls_constant_data[]%s;",
                 c->onnx_attached ? "" : ", ls_onnx_data[]");
    if (c->target->kind == LS_TARGET_CUDA)
        ls_cuda_program_print(c, e);
    if (x->c->adapters != NULL)
        ls_adapter_tables_print(x->c, e);
    print_program(x, e);
    if (c->library)
        return;
    ls_emit_line(e, "\nint main(int argc, char **argv)");
    ls_emit_line(e, "{");
    ls_emit_line(e, "return ls_trainer_main(&ls_program, argc, argv);");
    ls_emit_line(e, "}");
}

/* Prints the head of the C file with the kernels; or, with `device`, the launches there and the
 * kernels to `device`. */
static void print_kernels(const LsCode *c, const LsKernelSet *set, FILE *to, FILE *device)
{
    print_head(c, to);
    print_width(c, to);
    if (device != NULL) {
        fprintf(to,
                "#include \"runtime/cuda/ls_cuda_run.h\"\n#include \"runtime/cuda/ls_cudnn.h\"\n"
                "#include \"runtime/cuda/ls_cublaslt.h\"\n\n");
        ls_kernel_set_print_host(set, to);
        print_head(c, device);
        print_width(c, device);
        to = device;
    }
    ls_kernel_set_print_includes(set, to);
    fprintf(to, "\n");
    ls_kernel_set_print(set, to);
}

/* Sets up all phases and names their kernels. */
static bool init_phases(LsCtx *cx, Text *x, LsKernelSet *set)
{
    static const char *const name[NPHASES] = {"once", "train", "last", "update", "eval"};
    const LsCode *c = x->c;
    const LsCodePhase *from[NPHASES] = {&c->once, &c->train, &c->last, &c->update, &c->eval};
    bool ok = true;
    x->nphase = NPHASES + (int)(c->cut != NULL ? c->cut->k * c->stage[0].plan->layout.nplan : 0);
    x->phase = ls_arena_alloc(cx->arena, (size_t)x->nphase, sizeof *x->phase);
    for (int k = 0; k < NPHASES && ok; k++)
        ok = ls_phase_init(cx, &x->phase[k], c, from[k], name[k]);
    for (int k = NPHASES; k < x->nphase && ok; k++)
        ok = ls_stage_phase_init(cx, &x->phase[k], c, (uint32_t)(k - NPHASES) % c->cut->k,
                                 (uint32_t)(k - NPHASES) / c->cut->k);
    for (int k = 0; k < x->nphase && ok; k++)
        ok = ls_phase_name_kernels(cx, set, &x->phase[k]);
    for (int k = 0; k < x->nphase && ok; k++)
        ok = ls_phase_name_alternatives(cx, set, &x->phase[k]);
    return ok;
}

bool ls_program_print(LsCtx *cx, const LsCode *c, FILE *to, FILE *device)
{
    LsKernelSet *set = ls_kernel_set_new(cx, c->target);
    Text x = {.c = c, .g = c->addresses->train, .set = set};
    if (!init_phases(cx, &x, set))
        return false;
    if (device != NULL)
        ls_kernel_set_share(set);
    if (device != NULL && c->ranks != NULL)
        ls_kernel_set_add_sums(set);
    char *rest = NULL;
    size_t size = 0;
    LsEmit e = {.to = ls_text_open(&rest, &size)};
    print_rest(&x, &e);
    ls_text_close(e.to, &rest);
    print_kernels(c, set, to, device);
    fwrite(rest, 1, size, to);
    free(rest);
    return !ferror(to) && (device == NULL || !ferror(device));
}

static void print_blob(FILE *to, const char *name, const char *file)
{
    fprintf(to, "    .balign 64\n    .global %s\n%s:\n    .incbin ", name, name);
    ls_emit_string(to, file);   /* octal numbers for what an assembler does not know */
    fprintf(to, "\n    .byte 0\n");
}

/* Data of more than 2 GiB would put code out of the reach of 32-bit offsets, but not from a section
 * for large data, which the linker places behind all others. The program holds no offset to these
 * data, only their addresses. */
void ls_program_print_data(FILE *to, const char *constant_file, const char *onnx_file,
                           const char *device_file)
{
    fprintf(to, "#ifdef __x86_64__\n    .section .lrodata,\"a\",@progbits\n#else\n    .section "
                ".rodata\n#endif\n");
    print_blob(to, "ls_constant_data", constant_file);
    if (onnx_file != NULL)
        print_blob(to, "ls_onnx_data", onnx_file);
    if (device_file != NULL)
        print_blob(to, "ls_cuda_fatbin", device_file);
    if (onnx_file == NULL)
        fprintf(to, "    .section %s,\"\",@progbits\n    .byte 0\n", LS_ATTACHED_SECTION);
    fprintf(to, "    .section .note.GNU-stack,\"\",%%progbits\n");
}
