/* cli/tables.c -- lowerset ops, targets, explain: prints the program's own tables. */
#include "build_config.h"
#include "cli/commands.h"
#include "codegen/toolchain/cuda_probe.h"
#include "compiler/cost/machine.h"
#include "compiler/ir/op.h"
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

int ls_ops_main(int argc, char **argv)
{
    if (takes(argc, argv, 0) != 0)
        return LS_EXIT_USAGE;
    printf("operator                     from opset\n");
    for (int k = 0; ls_onnx_op[k] != NULL; k++)
        printf("%-28s %d\n", ls_onnx_op[k]->name, ls_onnx_op[k]->since);
    for (const LsOnnxInner *r = ls_onnx_inner; r->name != NULL; r++)
        printf("%-28s %d\n", r->name, r->since);
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
