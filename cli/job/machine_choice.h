/* cli/job/machine_choice.h -- chooses the machine that gives a plan its costs; names the file where
 * calibrate keeps its figures. */
#ifndef LS_CLI_JOB_MACHINE_CHOICE_H
#define LS_CLI_JOB_MACHINE_CHOICE_H

#include "cli/options/options.h"
#include "compiler/cost/machine.h"

/* $XDG_CONFIG_HOME/lowerset/machine, or ~/.config/lowerset/machine; NULL: neither variable is
 * set. */
const char *ls_machine_path(LsArena *a);

/* Whether this processor multiplies bfloat16 in AMX tiles, and the system lends them. */
bool ls_machine_has_tiles(void);

/* --machine: a name, or a file. Without the option: the file of calibrate if it exists, else "cpu";
 * "cpu-amx" if the program has bfloat16 and is made for this processor, which has `tiles`. *from
 * names the source for people: "built in", or a path. 0, or the exit code after a message. */
int ls_machine_choose(LsArena *a, const char *option, bool tiles, LsMachine *m, const char **from);

#endif
