/* cli/archive.h -- archives that a program's --dump wrote, beside each other. */
#ifndef LS_CLI_ARCHIVE_H
#define LS_CLI_ARCHIVE_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far the tensors of one are from those of another. A tensor's distance is the norm of the
 * difference over its norm in the other one, but over no less than a thousandth of the largest root
 * mean square of its group. INFINITY: something is not finite, or of another size. */
typedef struct LsApart {
    double loss;                /* relative; -1: the other has none */
    double median, worst;       /* of tensors; 0 when there are none */
    const char *name;           /* of the worst */
    uint32_t ntensor;           /* compared */
    uint32_t nlacking;          /* of the other's tensors, not here */
} LsApart;

/* Names lie in the arena. Loss, gradients and, with `outputs`, outputs of `path` from those of `reference`. false with a
 * sentence in why when one cannot be read. */
bool ls_archive_apart(LsArena *arena, const char *path, const char *reference, bool outputs,
                      LsApart *to, char *why, size_t size);

/* Whether both have the same members with the same bytes. *n: how many; name: of the first that is
 * other, "": all are the same. false with a sentence in why when one cannot be read. */
bool ls_archive_same(LsArena *arena, const char *path, const char *other, uint32_t *n,
                     const char **name, char *why, size_t size);

#endif
