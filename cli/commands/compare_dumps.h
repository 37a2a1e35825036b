/* cli/commands/compare_dumps.h -- compares archives that a program's --dump wrote. */
#ifndef LS_CLI_COMMANDS_COMPARE_DUMPS_H
#define LS_CLI_COMMANDS_COMPARE_DUMPS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Distances of an archive from a reference. A tensor's distance is the norm of the difference over
 * the norm of the reference's tensor, but over at least a thousandth of the largest root mean
 * square of its group. INFINITY: a value is not finite, or the sizes differ. */
typedef struct LsApart {
    double loss;                /* relative; -1: the reference has no loss */
    double median, worst;       /* over the tensors; 0: no tensors */
    const char *name;           /* the worst tensor */
    uint32_t ntensor;           /* tensors compared */
    uint32_t nlacking;          /* tensors of the reference that are missing here */
} LsApart;

/* Compares loss, gradients and, with `outputs`, outputs of `path` with those of `reference`. Names
 * lie in the arena. False with a sentence in why when a file cannot be read. */
bool ls_archive_apart(LsArena *arena, const char *path, const char *reference, bool outputs,
                      LsApart *to, char *why, size_t size);

/* Whether both archives have the same members with the same bytes. *n: number of members; name: the
 * first member that differs, "" when all are the same. False with a sentence in why when a file
 * cannot be read. */
bool ls_archive_same(LsArena *arena, const char *path, const char *other, uint32_t *n,
                     const char **name, char *why, size_t size);

#endif
