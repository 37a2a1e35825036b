/* cli/machine_choice.h -- chooses the machine that gives a plan its costs; names the file where
 * calibrate keeps its figures. */
#ifndef LS_CLI_MACHINE_CHOICE_H
#define LS_CLI_MACHINE_CHOICE_H

#include "cli/options.h"
#include "compiler/cost/machine.h"

/* $XDG_CONFIG_HOME/lowerset/machine, or ~/.config/lowerset/machine; NULL: neither variable is
 * set. */
const char *ls_machine_path(LsArena *a);

/* --machine: a name, or a file. Without the option: the file of calibrate if it exists, else "cpu".
 * *from names the source for people: "built in", or a path. 0, or the exit code after a message. */
int ls_machine_choose(LsArena *a, const char *option, LsMachine *m, const char **from);

#endif
