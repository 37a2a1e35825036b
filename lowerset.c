/* lowerset.c -- the command line: which command, and the short ones. */
#include "build_config.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "models/zoo.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *usage, *help;
} command[] = {
    {"compile", ls_compile_main, "MODEL.onnx -o TRAINER [options]",
     "turn a model into a program that trains it"},
    {"plan", ls_plan_main, "MODEL.onnx|GRAPH.json [options]",
     "what training takes and what a budget costs; builds nothing"},
    {"sweep", ls_sweep_main, "MODEL.onnx|GRAPH.json [options]",
     "what each strategy costs over a range of budgets: tables, curves"},
    {"check", ls_check_main, "MODEL.onnx|PLAN.json [options]",
     "whether training is right here; whether a plan is sound"},
    {"calibrate", ls_calibrate_main, "[-o FILE] [--threads N] [--quick] [-v]",
     "measure this machine for plans: two minutes, once"},
    {"inspect", ls_inspect_main, "MODEL.onnx [options]",
     "operators, dimensions, parameters, what is in the way"},
    {"model", ls_model_main, "NAME [options] -o FILE.onnx",
     "write a network of the zoo; --list names them"},
    {"ops", ls_ops_main, "", "the operators that are read, and from which opset"},
    {"targets", ls_targets_main, "", "machines that programs can be built for"},
    {"explain", ls_explain_main, "LS-E0007", "what an error means"},
};
enum { NCOMMANDS = sizeof command / sizeof *command };

static int help(FILE *to, const char *about)
{
    fprintf(to, "lowerset %s: trains ONNX models inside a memory budget\n\n", LS_VERSION);
    for (int k = 0; k < NCOMMANDS; k++)
        if (about == NULL || strcmp(about, command[k].name) == 0)
            fprintf(to, "  lowerset %-9s %-40s %s\n", command[k].name, command[k].usage,
                    command[k].help);
    int bits = about == NULL                   ? 0
               : strcmp(about, "compile") == 0 ? LS_CMD_COMPILE
               : strcmp(about, "plan") == 0    ? LS_CMD_PLAN
               : strcmp(about, "sweep") == 0   ? LS_CMD_SWEEP
               : strcmp(about, "check") == 0   ? LS_CMD_CHECK
               : strcmp(about, "inspect") == 0 ? LS_CMD_INSPECT
                                               : 0;
    if (bits != 0) {
        fprintf(to, "\n");
        ls_options_help(to, bits);
    }
    if (about == NULL)
        fprintf(to, "\nlowerset help COMMAND lists its options. Exit codes: 0 done, 1 model error, "
                    "2 usage, 3 unsupported\noperator or gradient, 4 budget infeasible, 5 tool "
                    "missing, 6 check failed.\n");
    return 0;
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "help";
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("lowerset %s\n", LS_VERSION);
        return 0;
    }
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        help(argc > 1 ? stdout : stderr, argc > 2 ? argv[2] : NULL);
        return argc > 1 ? 0 : 2;
    }
    for (int k = 0; k < NCOMMANDS; k++)
        if (strcmp(word, command[k].name) == 0) {
            if (argc > 2 && strcmp(argv[2], "--help") == 0 && strcmp(word, "model") != 0)
                return help(stdout, word);
            return command[k].run(argc, argv);
        }
    fprintf(stderr, "lowerset: there is no command '%s'; lowerset help lists them\n", word);
    return 2;
}
