/* codegen/toolchain/run_command.h -- other programs, run and waited for. */
#ifndef LS_CODEGEN_TOOLCHAIN_RUN_COMMAND_H
#define LS_CODEGEN_TOOLCHAIN_RUN_COMMAND_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct LsCommand {
    LsArena *arena;
    const char **word;          /* NULL behind the last one */
    uint32_t n, room;
    bool print, dry;            /* print it to stderr; do not run it */
    const char *errors;         /* file that takes its stderr; NULL: ours */
} LsCommand;

void ls_command_add(LsCommand *c, const char *word);
/* Words of a text, as --cc "ccache gcc" or the extra flags of a sanitizer build have. */
void ls_command_add_words(LsCommand *c, const char *text);
/* 0: it ran and said so; else an errno when it could not be started, or -1 when it failed. */
int ls_command_run(const LsCommand *c);

/* Where a program lies: as given when it has a slash, else along $PATH. NULL: nowhere. */
const char *ls_command_find(LsArena *a, const char *program);

#endif
