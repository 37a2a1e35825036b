/* codegen/toolchain/run_command.h -- runs other programs and waits for them. */
#ifndef LS_CODEGEN_TOOLCHAIN_RUN_COMMAND_H
#define LS_CODEGEN_TOOLCHAIN_RUN_COMMAND_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct LsCommand {
    LsArena *arena;
    const char **word;          /* NULL after the last word */
    uint32_t n, room;
    bool print, dry;            /* print the command to stderr; do not run it */
    const char *errors;         /* file that takes the program's stderr; NULL: ours */
} LsCommand;

void ls_command_add(LsCommand *c, const char *word);
/* Adds each word of a text, such as --cc "ccache gcc" or a sanitizer build's extra flags. */
void ls_command_add_words(LsCommand *c, const char *text);
/* Returns 0 if the program succeeded, an errno if it could not be started, -1 if it failed. */
int ls_command_run(const LsCommand *c);

/* Runs the program and returns the beginning of what it prints to stdout, up to `most` bytes; its
 * stderr is dropped. NULL: it could not be started or failed. Arena text. */
const char *ls_command_output(const LsCommand *c, size_t most);

/* The path of a program: as given if it has a slash, else searched along $PATH. NULL: not found. */
const char *ls_command_find(LsArena *a, const char *program);

#endif
