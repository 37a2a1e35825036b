/* runtime/engine/program_memory.h -- the two allocations a program lives in: state and arena. They are here, or on
 * the device that the program is for. */
#ifndef LS_RUNTIME_ENGINE_PROGRAM_MEMORY_H
#define LS_RUNTIME_ENGINE_PROGRAM_MEMORY_H

#include "runtime/base/run_error.h"
#include "runtime/engine/device.h"
#include "runtime/ls_program.h"

typedef struct LsMemory {
    const LsProgram *p;
    LsDevice *device;           /* NULL: everything is here */
    char *state, *arena;        /* where steps find them */
    const char *constant;
    char *copied;               /* constants, where the program's own are not aligned */
} LsMemory;

/* Allocates and touches everything, so that no page is missing later; state gets the ONNX file's
 * initial values. Close it in any case. */
bool ls_memory_open(LsMemory *m, const LsProgram *p, LsError *e);
void ls_memory_close(LsMemory *m);
/* Where steps find it. NULL for LS_AT_NONE and LS_AT_INPUT. */
void *ls_memory_at(const LsMemory *m, LsAddress a);
/* The same bytes where this machine can read them: themselves, or a copy as of now, valid until the
 * next call. Zeros when the device failed; ls_device_ok tells. */
void *ls_memory_view(const LsMemory *m, LsAddress a, int64_t bytes);
/* The same of bytes that lie where steps would find them. */
void *ls_memory_look(const LsMemory *m, void *at, int64_t bytes);
/* Takes back a view that was written to. */
void ls_memory_store(const LsMemory *m, LsAddress a, int64_t bytes);
/* Puts bytes of this machine there. */
void ls_memory_write(const LsMemory *m, LsAddress a, const void *from, int64_t bytes);
/* The whole plan: state, arena, constants, batches. Bytes. */
int64_t ls_memory_total(const LsProgram *p);
/* What batches take of it. */
int64_t ls_memory_input(const LsProgram *p);
double ls_real_at(const void *at, int real_bytes);

#endif
