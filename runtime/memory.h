/* runtime/memory.h -- the two allocations a program lives in: state and arena. */
#ifndef LS_RUNTIME_MEMORY_H
#define LS_RUNTIME_MEMORY_H

#include "runtime/error.h"
#include "runtime/ls_program.h"

typedef struct LsMemory {
    const LsProgram *p;
    char *state, *arena;
    const char *constant;
    char *copied;               /* constants, where the program's own are not aligned */
} LsMemory;

/* Allocates and touches everything, so that no page is missing later; state gets the ONNX file's
 * initial values. Close it in any case. */
bool ls_memory_open(LsMemory *m, const LsProgram *p, LsError *e);
void ls_memory_close(LsMemory *m);
/* NULL for LS_AT_NONE and LS_AT_INPUT. */
void *ls_memory_at(const LsMemory *m, LsAddress a);
/* The whole plan: state, arena, constants, input ring. Bytes. */
int64_t ls_memory_total(const LsProgram *p);
double ls_real_at(const void *at, int real_bytes);

#endif
