/* base/reason.h -- the sentence that says what is wrong with a graph or a plan. */
#ifndef LS_BASE_REASON_H
#define LS_BASE_REASON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct LsWhy {
    char *text; size_t size;
    const char *at; uint32_t number;    /* the place: "tensor", 3; at NULL: no place */
} LsWhy;

/* Writes the sentence. Returns false, so that callers write: return ls_why(...). */
__attribute__((format(printf, 2, 3))) bool ls_why(const LsWhy *why, const char *fmt, ...);

#endif
