/* codegen/program/kernel_set.c -- prints each node's kernel under a placeholder name and compares
 * texts. */
#include "codegen/program/kernel_set.h"

#include "base/fnv.h"
#include "base/heap.h"
#include "codegen/emit/lift_constants.h"
#include "compiler/passes/fuse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STAND_IN "KERNEL"       /* the kernel's name in texts that are compared */
enum { NAMES_SHOWN = 4 };
enum { LEAST_SHARE = 3 };       /* fewer kernels that differ in numbers keep their constants */

typedef struct Kernel {
    const char *name, *shapes;
    const char *text, *host, *table;    /* from LsKernelText; on the CPU text has all */
    LsMarks marks;              /* of text */
    uint64_t hash;
    const char *node[NAMES_SHOWN];
    uint32_t nnode;
    const char *others;         /* comment on the kernels that share this text; else NULL */
    bool shares;                /* the kernel shares a text */
} Kernel;

struct LsKernelSet {
    LsCtx *cx;
    const LsTarget *target;
    Kernel *kernel; uint32_t nkernel, cap;
    unsigned needs;             /* LS_NEEDS_ bits of all kernels */
    bool adds;                  /* there is the kernel for sums over ranks */
};

LsKernelSet *ls_kernel_set_new(LsCtx *cx, const LsTarget *target)
{
    LsKernelSet *set = ls_arena_alloc(cx->arena, 1, sizeof *set);
    set->cx = cx;
    set->target = target;
    return set;
}

/* An emitter's three outputs: parts, launches, table. */
typedef struct Texts { const char *in[3]; LsMarks marks; } Texts;

static Texts print_texts(LsKernelSet *set, const LsGraph *g, LsNodeId n)
{
    char *buf[3] = {0};
    size_t size[3];
    LsEmit e[3] = {0};
    Texts t = {{"", "", ""}, {.arena = set->cx->arena}};
    bool apart = set->target->kind != LS_TARGET_CPU;
    e[0].marks = &t.marks;
    for (int k = 0; k < 3; k++)
        e[k].to = ls_text_open(&buf[k], &size[k]);
    ls_emitter_of(set->target->kind, ls_op[g->node[n.i].op]->kernel)->emit(
        &(LsKernelText){.e = &e[0], .host = &e[apart], .table = apart ? &e[2] : NULL, .g = g,
                        .n = n, .name = STAND_IN, .target = set->target});
    for (int k = 0; k < 3; k++) {
        ls_text_close(e[k].to, &buf[k]);
        t.in[k] = ls_arena_strdup(set->cx->arena, buf[k]);
        free(buf[k]);
    }
    set->needs |= e[0].needs;
    return t;
}

/* "X 8x3x224x224, W 64x3x7x7 -> 8x64x112x112" without letters: operands, then results. */
static const char *print_shapes(LsKernelSet *set, const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    LsArena *a = set->cx->arena;
    const char *s = "";
    int nin = ls_update_operands(node), more = ls_updated(node) - 1;
    for (int k = 0; k < nin; k++)
        s = ls_arena_printf(a, "%s%s%s", s, k > 0 ? ", " : "", ls_is(ls_in(g, n, k))
                            ? ls_shape_text(a, ls_in_shape(g, n, k)) : "-");
    for (int k = 0; k < node->nout; k++)
        s = ls_arena_printf(a, "%s%s%s", s, k > 0 ? ", " : " -> ",
                            ls_shape_text(a, ls_shape(g, ls_out(g, n, k))));
    return more > 0 ? ls_arena_printf(a, "%s, and of %d tensors more", s, more) : s;
}

static const char *op_word(const LsGraph *g, LsNodeId n, LsArena *a)
{
    const LsNode *node = &g->node[n.i];
    const LsFused *body = node->op == LS_OP_FUSED ? node->attr.fused.body : NULL;
    if (body != NULL && body->first > 0)
        return "moments";
    const char *word = ls_op[body != NULL ? body->stmt[body->nstmt - 1].op : node->op]->name;
    char *low = ls_arena_strdup(a, word);
    for (char *c = low; *c != '\0'; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    return low;
}

const char *ls_kernel_set_add(LsKernelSet *set, const LsGraph *g, LsNodeId n)
{
    LsCtx *cx = set->cx;
    if (ls_emitter_of(set->target->kind, ls_op[g->node[n.i].op]->kernel) == NULL) {
        ls_error(cx, ls_where(g, n), LS_E_UNSUPPORTED, NULL, "no kernel for this operator");
        return NULL;
    }
    const Texts text = print_texts(set, g, n);
    const char *node = g->node[n.i].name;
    uint64_t hash = ls_fnv_text(LS_FNV_START, text.in[0]) ^ ls_fnv_text(LS_FNV_START, text.in[1]);
    Kernel *k = NULL;
    for (uint32_t i = 0; i < set->nkernel && k == NULL; i++)
        if (set->kernel[i].hash == hash && strcmp(set->kernel[i].text, text.in[0]) == 0
            && strcmp(set->kernel[i].host, text.in[1]) == 0)
            k = &set->kernel[i];
    if (k == NULL) {
        set->kernel = ls_arena_grow(cx->arena, set->kernel, set->nkernel, set->nkernel + 1,
                                    sizeof *set->kernel, &set->cap);
        k = &set->kernel[set->nkernel];
        *k = (Kernel){.text = text.in[0], .host = text.in[1], .table = text.in[2], .hash = hash,
                      .marks = text.marks,
                      .shapes = print_shapes(set, g, n),
                      .name = ls_arena_printf(cx->arena, "k%u_%s", set->nkernel,
                                              op_word(g, n, cx->arena))};
        set->nkernel++;
    }
    if (k->nnode < NAMES_SHOWN)
        k->node[k->nnode] = node != NULL ? node : "";
    k->nnode++;
    return k->name;
}

/* ---- texts that kernels share ---- */
/* "Also k7_slice, k9_slice and 5 more, with other n0, n1. Here n0 = 32, n1 = 64." */
static const char *print_others(LsKernelSet *set, const uint32_t in[], const LsShared *s)
{
    LsArena *a = set->cx->arena;
    const char *text = "Also", *names = "", *here = "";
    for (uint32_t i = 1; i < s->nof && i <= NAMES_SHOWN; i++)
        text = ls_arena_printf(a, "%s%s %s", text, i > 1 ? "," : "", set->kernel[in[i]].name);
    if (s->nof > NAMES_SHOWN + 1)
        text = ls_arena_printf(a, "%s and %u more", text, s->nof - NAMES_SHOWN - 1);
    for (int k = 0; k < s->n; k++) {
        const char *comma = k > 0 ? ", " : "";
        names = ls_arena_printf(a, "%s%sn%d", names, comma, k);
        here = ls_arena_printf(a, "%s%sn%d = %" PRId64, here, comma, k, ls_numbers_value(s, 0, k));
    }
    return s->n == 0 ? ls_arena_printf(a, "%s.", text)
                     : ls_arena_printf(a, "%s, with other %s.\n * Here %s.", text, names, here);
}

/* Gives kernels in[0 .. s->nof) the text of the first. */
static void share_text(LsKernelSet *set, const uint32_t in[], const LsShared *s)
{
    LsArena *a = set->cx->arena;
    const char *others = print_others(set, in, s);
    for (uint32_t i = 0; i < s->nof; i++) {
        Kernel *k = &set->kernel[in[i]];
        k->host = ls_numbers_host(a, s, i, STAND_IN, set->kernel[in[0]].name);
        k->text = i == 0 ? ls_numbers_text(a, s) : "";
        k->table = i == 0 ? ls_numbers_table(a, s, k->table) : "";
        k->others = i == 0 ? others : NULL;
        k->shares = true;
    }
}

void ls_kernel_set_share(LsKernelSet *set)
{
    LsArena *a = set->cx->arena;
    const LsNumbers **all = ls_arena_alloc(a, set->nkernel + 1u, sizeof *all);
    for (uint32_t i = 0; i < set->nkernel; i++)
        all[i] = ls_numbers_find(a, set->kernel[i].text, &set->kernel[i].marks,
                                 set->kernel[i].host);
    const LsNumbers **of = ls_arena_alloc(a, set->nkernel + 1u, sizeof *of);
    uint32_t *in = ls_arena_alloc(a, set->nkernel + 1u, sizeof *in);
    for (uint32_t i = 0; i < set->nkernel; i++) {
        uint32_t n = 0;
        for (uint32_t j = i; j < set->nkernel && all[i] != NULL; j++)
            if (all[j] != NULL && !set->kernel[j].shares && ls_numbers_alike(all[i], all[j])) {
                of[n] = all[j];
                in[n++] = j;
            }
        const LsShared *s = n > 1 ? ls_numbers_share(a, of, n, false) : NULL;
        if (s != NULL && (n >= LEAST_SHARE || s->n == 0))
            share_text(set, in, s);
    }
}

void ls_kernel_set_add_sums(LsKernelSet *set) { set->adds = true; }

/* ---- printing ---- */
/* Prints the text with the placeholder replaced. */
static void print_named(const Kernel *k, const char *text, FILE *to)
{
    const char *at = text;
    for (const char *hit; (hit = strstr(at, STAND_IN)) != NULL; at = hit + strlen(STAND_IN)) {
        fwrite(at, 1, (size_t)(hit - at), to);
        fputs(k->name, to);
    }
    fputs(at, to);
}

static void print_head(const Kernel *k, FILE *to, const char *others)
{
    fprintf(to, "/* %s: %s\n *", k->name, k->shapes);
    for (uint32_t j = 0; j < k->nnode && j < NAMES_SHOWN; j++) {
        fprintf(to, "%s ", j > 0 ? "," : "");
        ls_emit_comment(to, k->node[j]);
    }
    if (k->nnode > NAMES_SHOWN)
        fprintf(to, " and %" PRIu32 " more", k->nnode - NAMES_SHOWN);
    fprintf(to, "%s%s */\n", others != NULL ? "\n * " : "", others != NULL ? others : "");
}

bool ls_kernel_set_has_dots(const LsKernelSet *set)
{
    return set->target->kind == LS_TARGET_CPU && (set->needs & LS_NEEDS_DOT16) != 0;
}

void ls_kernel_set_print_includes(const LsKernelSet *set, FILE *to)
{
    static const struct { unsigned bit; const char *header;
    } need[] = {{LS_NEEDS_CONV, "ls_conv.h"},
                {LS_NEEDS_MATMUL, "ls_matmul.h"},
                {LS_NEEDS_ATTENTION, "ls_attention.h"},
                {LS_NEEDS_ATTENTION16, "ls_attention16.h"},
                {LS_NEEDS_CODES, "ls_codes.h"},
                {LS_NEEDS_UNPACK, "ls_unpack_rows.h"}};
    if (set->target->kind == LS_TARGET_CUDA) {
        fprintf(to, "#include \"runtime/cuda_kernels/ls_cuda%s.h\"\n", set->adds ? "_add" : "");
        if (set->needs & LS_NEEDS_CODES)
            fprintf(to, "#include \"runtime/kernels/ls_codes.h\"\n");
        if (set->needs & LS_NEEDS_UNPACK)
            fprintf(to, "#include \"runtime/ls_unpack.h\"\n");
        return;
    }
    if (set->needs & LS_NEEDS_DOT16)
        fputs(LS_DEFINES_DOT16, to);
    if (set->needs & LS_NEEDS_DOT16 && set->target->sums != LS_DOTS_AUTO)
        fprintf(to, "#define LS_DOT16_TILES %d\n", set->target->sums == LS_DOTS_TILES);
    if (set->needs & LS_NEEDS_UNPACK)
        fputs(LS_DEFINES_UNPACK, to);
    fprintf(to, "#include \"runtime/kernels/ls_kernel.h\"\n");
    for (size_t k = 0; k < sizeof need / sizeof *need; k++)
        if (set->needs & need[k].bit)
            fprintf(to, "#include \"runtime/kernels/%s\"\n", need[k].header);
}

void ls_kernel_set_print(const LsKernelSet *set, FILE *to)
{
    for (uint32_t i = 0; i < set->nkernel; i++) {
        const Kernel *k = &set->kernel[i];
        if (k->text[0] == '\0')
            continue;               /* a library computes it, or it shares a text */
        print_head(k, to, k->others);
        print_named(k, k->text, to);
        fprintf(to, "\n");
    }
}

/* Prints the table of a library's convolutions, which it prepares before the first step. */
static void print_convolutions(const LsKernelSet *set, FILE *to)
{
    uint32_t n = 0;
    fprintf(to, "static const LsCudaConvUse conv_use[] = {\n");
    for (uint32_t i = 0; i < set->nkernel; i++) {
        const Kernel *k = &set->kernel[i];
        if (strstr(k->host, "LsCudaConv " STAND_IN) == NULL)
            continue;
        fprintf(to, "    {&%s_conv, ", k->name);
        ls_emit_string(to, k->node[0]);
        fprintf(to, "},\n");
        n++;
    }
    fprintf(to, "    {NULL, NULL}};\n"
            "__attribute__((unused)) static const LsCudaConvs convs = {conv_use, %u};\n\n", n);
}

void ls_kernel_set_print_host(const LsKernelSet *set, FILE *to)
{
    for (int pass = 0; pass < 2; pass++) {
        fprintf(to, pass == 0 ? "#define LS_ROW(name, narg, x, y) p_##name,\nenum {\n"
                              : "#define LS_ROW(name, narg, x, y) {#name, narg, x, y},\n"
                                "static const LsCudaPart part[] = {\n");
        for (uint32_t i = 0; i < set->nkernel; i++)
            print_named(&set->kernel[i], set->kernel[i].table, to);
        if (set->adds)
            fprintf(to, "LS_ROW(rank_add, 4, 256, 1)\n");
        fprintf(to, pass == 0 ? "};\n#undef LS_ROW\n" : "{NULL, 0, 0, 0}};\n#undef LS_ROW\n\n");
    }
    for (uint32_t i = 0; i < set->nkernel; i++) {
        print_head(&set->kernel[i], to, NULL);
        print_named(&set->kernel[i], set->kernel[i].host, to);
    }
    print_convolutions(set, to);
}
