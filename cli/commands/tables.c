/* cli/commands/tables.c -- lowerset ops, targets, explain: prints the program's own tables. */
#include "build_config.h"
#include "cli/commands/commands.h"
#include "cli/options/precision_spec.h"
#include "cli/report/precision_table.h"
#include "codegen/toolchain/cuda_probe.h"
#include "compiler/cost/machine.h"
#include "compiler/ir/op.h"
#include "compiler/ir/precision.h"
#include "compiler/onnx/onnx_function_ops.h"
#include "compiler/onnx/onnx_model.h"
#include "compiler/onnx/onnx_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Checks a command that takes at most `most` words: 0 or the exit code. */
static int takes(int argc, char **argv, int most)
{
    if (argc <= 2 + most)
        return 0;
    fprintf(stderr, "lowerset %s: '%s' is an argument too many\n", argv[1], argv[2 + most]);
    return LS_EXIT_USAGE;
}

/* ---- ops ---- */

typedef struct Operator { const char *name; int since; } Operator;

static int by_name(const void *a, const void *b)
{
    const Operator *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : x->since - y->since;
}

/* Operators with a row, with a body, and those that the importer itself handles. */
static size_t all_operators(Operator *op, size_t room)
{
    size_t n = 0;
    int since = 0;
    for (size_t k = 0; ls_onnx_op[k] != NULL && n < room; k++)
        op[n++] = (Operator){ls_onnx_op[k]->name, ls_onnx_op[k]->since};
    for (size_t k = 0; ls_onnx_body_name(k, &since) != NULL && n < room; k++)
        op[n++] = (Operator){ls_onnx_body_name(k, &since), since};
    for (const LsOnnxInner *r = ls_onnx_inner; r->name != NULL && n < room; r++)
        op[n++] = (Operator){r->name, r->since};
    qsort(op, n, sizeof *op, by_name);
    return n;
}

static int precision_main(const char *text)
{
    LsPrecisionSpec p;
    char why[200] = "it is for bf16 and f16";
    if (!ls_precision_parse(text, &p, why, sizeof why) || p.compute == LS_REAL) {
        fprintf(stderr, "lowerset ops: --precision: %s\n", why);
        return LS_EXIT_USAGE;
    }
    ls_precision_table(stdout, ls_precision_name(p.compute));
    return 0;
}

int ls_ops_main(int argc, char **argv)
{
    enum { ROOM = 1024 };
    static Operator op[ROOM];
    if (argc == 3 && strncmp(argv[2], "--precision=", 12) == 0)
        return precision_main(argv[2] + 12);
    if (takes(argc, argv, 0) != 0)
        return LS_EXIT_USAGE;
    size_t n = all_operators(op, ROOM);
    printf(
        "operator                     from opset   ONNX's cases passed   with gradients checked\n");
    for (size_t k = 0; k < n; k++) {
        LsConformance c;
        if (k > 0 && strcmp(op[k].name, op[k - 1].name) == 0)
            continue;
        printf("%-28s %10d", op[k].name, op[k].since);
        if (ls_onnx_conformance(op[k].name, &c))
            printf("   %11d of %-5d   %22d", c.passed, c.cases, c.gradients);
        printf("\n");
    }
    return 0;
}

int ls_targets_main(int argc, char **argv)
{
    if (takes(argc, argv, 0) != 0)
        return LS_EXIT_USAGE;
    LsArena *a = ls_arena_new();
    printf("cpu    C11 for this machine (cc -O3 -march=native); always available\n");
    ls_cuda_report(a, stdout);
    ls_arena_free(a);
    printf("\n");
    printf("Machines whose costs plans can use (--machine):\n");
    LsMachine m;
    char err[256];
    for (size_t k = 0; ls_machine_builtin(k) != NULL; k++)
        if (ls_machine_parse(&m, ls_machine_builtin(k), "", err, sizeof err))
            printf("  %-8s %s\n", m.name, m.what);
    return 0;
}

int ls_explain_main(int argc, char **argv)
{
    static const struct { const char *name; int exit; const char *text; } row[] = { {"", 0, ""},
#define LS_ERROR_ENUM(code, exit_code, text) {#code, exit_code, text},
#include "compiler/ir/errors.def"
#undef LS_ERROR_ENUM
    };
    int n = sizeof row / sizeof *row;
    if (takes(argc, argv, 1) != 0)
        return LS_EXIT_USAGE;
    if (argc < 3) {
        for (int k = 1; k < n; k++)
            printf("LS-E%04d  exit %d  %s\n", k, row[k].exit, row[k].text);
        return 0;
    }
    const char *digits = strpbrk(argv[2], "0123456789");
    int id = digits != NULL ? atoi(digits) : 0;
    if (id <= 0 || id >= n) {
        fprintf(stderr, "lowerset: there is no error '%s'; lowerset explain lists them\n", argv[2]);
        return LS_EXIT_USAGE;
    }
    printf("LS-E%04d (%s), exit code %d: %s\n", id, row[id].name, row[id].exit, row[id].text);
    return 0;
}
