/* cli/option_groups/output_group.c -- see the header. */
#include "cli/option_groups/output_group.h"

#include "cli/option_groups/option_rows.h"

#define AT(field) offsetof(LsOutputGroup, field)
static const LsOption output[] = {
    {"--output", "-o", "FILE", TEXT, AT(file), LS_CMD_COMPILE,
     "file to write (default: named after the model)"},
    {"--output", "-o", "DIR", TEXT, AT(file), SWEEP,
     "folder for tables, curves and pages (default: MODEL-sweep)"},
    {"--output", "-o", "FILE.lsd", TEXT, AT(file), LS_CMD_DATA, "packed data set to write"},
    {"--output", "-o", "FILE", TEXT, AT(file), LS_CMD_CALIBRATE,
     "file for the costs (default: where plan and compile look for it)"},
    {"--emit", NULL, "exe|obj|c|lib", TEXT, AT(emit), LS_CMD_COMPILE,
     "kind of output: a program, an object file, readable C and all that it needs, or a library: "
     "OUTPUT.h, libOUTPUT.a, libOUTPUT.so (default exe)"},
    {"--prefix", NULL, "NAME", TEXT, AT(prefix), LS_CMD_COMPILE,
     "with --emit=lib: what its symbols begin with (default: the output's name)"},
    {"--save-temps", NULL, "DIR", TEXT, AT(save_temps), LS_CMD_COMPILE,
     "keep the generated files in DIR (not with --emit=c, which leaves them beside the output)"},
    {"--dry-run", "-n", NULL, FLAG, AT(dry_run), LS_CMD_COMPILE,
     "do all checks, print the commands, write nothing"},
    {"--verbose", "-v", NULL, FLAG, AT(verbose),
     ALL | LS_CMD_CALIBRATE | LS_CMD_GRAPH | LS_CMD_SCHEDULE,
     "say what is done, and print the commands that are run"},
    {"--quiet", "-q", NULL, FLAG, AT(quiet), BUILD | LS_CMD_GRAPH | LS_CMD_SCHEDULE | LS_CMD_DATA,
     "print only errors: no warnings, no summary, no progress"},
    {"--max-errors", NULL, "N", INTEGER(1, MOST_COUNT), AT(max_errors), ALL,
     "print no more than N errors (default 50)"},
    {"--dump", "-d", "PASS", TEXT, AT(dump_pass), BUILD,
     "print the graph after a compiler pass (import, autodiff, fuse, all)"},
};
const LsOptionGroup ls_output_group = GROUP("Output", output);

#undef AT
#define AT(field) offsetof(LsSizeGroup, field)
static const LsOption sizes[] = {
    {"--dim", NULL, "NAME=SIZE", LIST, AT(dim), ALL,
     "size of a dynamic dimension; may be repeated"},
    {"--shape", NULL, "INPUT=AxBxC", LIST, AT(shape), ALL, "shape of an input; may be repeated"},
    {"--batch", NULL, "N", INTEGER(1, MOST_BATCH), AT(batch), ALL,
     "size of a dynamic first dimension of every input"},
};
const LsOptionGroup ls_sizes_group = GROUP("Model", sizes);
