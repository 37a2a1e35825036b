/* cli/machine_choice.h -- which machine's costs a plan is made with, and where calibrate keeps its
 * figures. */
#ifndef LS_CLI_MACHINE_CHOICE_H
#define LS_CLI_MACHINE_CHOICE_H

#include "cli/options.h"
#include "compiler/cost/machine.h"

/* $XDG_CONFIG_HOME/lowerset/machine, or ~/.config/lowerset/machine; NULL: neither variable is
 * set. */
const char *ls_machine_path(LsArena *a);

/* --machine: a name, or a file; without it the file of calibrate if there is one, else "cpu". *from
 * says which for people: "built in", or a path. 0, or the exit code after a message. */
int ls_machine_choose(LsArena *a, const char *option, LsMachine *m, const char **from);

#endif
