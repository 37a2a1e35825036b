/* lowerset.c -- the command line: which command, and the short ones. */
#include "base/heap.h"
#include "build_config.h"
#include "cli/commands/commands.h"
#include "cli/options/options.h"
#include "models/zoo.h"
#include "models/zoo_cli.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *usage, *help;
    int options;                /* its bit in the option table; 0: it has none there */
    const char *example;
} command[] = {
    {"compile", ls_compile_main, "MODEL.onnx -o TRAINER [options]",
     "turn a model into a program that trains it", LS_CMD_COMPILE,
     "lowerset compile net.onnx --batch 32 --budget 4G --optimizer=adamw:wd=0.01 -o net\n"
     "lowerset compile net.onnx --budget 50% --lr 0.1 --schedule=cosine:warmup=500 -o net"},
    {"plan", ls_plan_main, "MODEL.onnx|GRAPH.json [options]",
     "show what training takes and what a budget costs; build nothing", LS_CMD_PLAN,
     "lowerset plan net.onnx --batch 32 --budget 4G --report net.html\n"
     "lowerset plan net.onnx --max-batch --budget 4G"},
    {"sweep", ls_sweep_main, "MODEL.onnx|GRAPH.json [options]",
     "compare strategies over a range of budgets: tables, curves", LS_CMD_SWEEP,
     "lowerset sweep net.onnx --batch 32 --from 30% --points 8 -o out"},
    {"check", ls_check_main, "MODEL.onnx|PLAN.json [options]",
     "check that training is right here, or that a plan is sound", LS_CMD_CHECK,
     "lowerset check net.onnx --batch 8\n"
     "lowerset check net.plan.json --graph net.graph.json"},
    {"calibrate", ls_calibrate_main, "[options]",
     "measure the costs of this machine: two minutes, once", LS_CMD_CALIBRATE,
     "lowerset calibrate"},
    {"dp", ls_dp_main, "[options]",
     "say what noisy training keeps private, or how much noise that takes", LS_CMD_DP,
     "lowerset dp --samples 60000 --batch 256 --epochs 30 --noise 1.1 --delta 1e-5\n"
     "lowerset dp --sample-rate 0.01 --steps 10000 --epsilon 3 --delta 1e-5"},
    {"data", ls_data_main, "pack SOURCE... -o FILE.lsd|show FILE.lsd [options]",
     "make one data file of pictures, tables, tokens or arrays; or show one", LS_CMD_DATA,
     "lowerset data pack photos -o photos.lsd --size 256 --crop 224\n"
     "lowerset data pack table.csv -o table.lsd --label-column species\n"
     "lowerset data show photos.lsd --check"},
    {"inspect", ls_inspect_main, "MODEL.onnx [options]",
     "list operators, dimensions, parameters, obstacles (exit 3)", LS_CMD_INSPECT,
     "lowerset inspect net.onnx"},
    {"model", ls_model_main, "NAME [options] -o FILE.onnx",
     "write a network of the zoo; --list names them", 0,
     "lowerset model unet --size=64 -o unet.onnx"},
    {"ops", ls_ops_main, "[--precision=bf16|f16]",
     "list the operators that are read, and from which opset; or what is stored in 16 bits", 0,
     NULL},
    {"targets", ls_targets_main, "", "list the machines that programs can be built for", 0, NULL},
    {"explain", ls_explain_main, "[LS-E0007]", "explain an error", 0, NULL},
};
enum { NCOMMANDS = sizeof command / sizeof *command };

static void put_example(FILE *to, const char *lines)
{
    fprintf(to, "\nExamples\n");
    while (lines != NULL && *lines != '\0') {
        int n = (int)strcspn(lines, "\n");
        fprintf(to, "  %.*s\n", n, lines);
        lines += n + (lines[n] == '\n');
    }
}

static int help_of(FILE *to, int k)
{
    fprintf(to, "usage: lowerset %s %s\n%s\n", command[k].name, command[k].usage, command[k].help);
    if (command[k].options != 0)
        ls_options_help(to, command[k].options);
    if (command[k].example != NULL)
        put_example(to, command[k].example);
    return 0;
}

static void help(FILE *to)
{
    fprintf(to, "lowerset %s: trains ONNX models inside a memory budget\n\n", LS_VERSION);
    for (int k = 0; k < NCOMMANDS; k++)
        fprintf(to, "  lowerset %-9s %-40s %s\n", command[k].name, command[k].usage,
                command[k].help);
    fprintf(to, "\nlowerset COMMAND -h lists its options. Exit codes: 0 done, 1 model error, "
                "2 usage, 3 unsupported\noperator or gradient, 4 budget infeasible, 5 tool "
                "missing, 6 check failed.\n");
}

/* Every option of every command, a line each: for scripts and tests. */
static void put_table(void)
{
    for (int k = 0; k < NCOMMANDS; k++)
        ls_options_table(stdout, command[k].options, command[k].name);
    ls_model_table(stdout);
}

static int find_command(const char *name)
{
    for (int k = 0; k < NCOMMANDS; k++)
        if (strcmp(name, command[k].name) == 0)
            return k;
    return -1;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int unknown(const char *name)
{
    fprintf(stderr, "lowerset: there is no command '%s'; lowerset help lists them\n", name);
    return 2;
}

static int help_main(int argc, char **argv)
{
    int k = argc > 2 ? find_command(argv[2]) : -1;
    if (argc > 2 && strcmp(argv[2], "--table") == 0)
        return put_table(), 0;
    if (argc > 2 && k < 0)
        return unknown(argv[2]);
    if (k >= 0)
        return help_of(stdout, k);
    help(argc > 1 ? stdout : stderr);
    return argc > 1 ? 0 : 2;
}

static void *json_room(size_t n) { return ls_heap_alloc(1, n); }

static int run(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "help";
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("lowerset %s\n", LS_VERSION);
        return 0;
    }
    if (strcmp(word, "help") == 0 || is_help(word))
        return help_main(argc, argv);
    int k = find_command(word);
    if (k < 0)
        return unknown(word);
    for (int i = 2; i < argc && command[k].run != ls_model_main; i++)     /* which has its own */
        if (is_help(argv[i]))
            return help_of(stdout, k);
    return command[k].run(argc, argv);
}

int main(int argc, char **argv)
{
    cJSON_InitHooks(&(cJSON_Hooks){json_room, free});   /* it leaves out of texts what it has no
                                                         * memory for */
    signal(SIGXFSZ, SIG_IGN);   /* a file that grows too large is an error, not the end of the
                                 * process */
    int code = run(argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "lowerset: the output could not be written: %s\n",
            strerror(errno)); /* part of it would pass for all */
    return code != 0 ? code : 1;
}
