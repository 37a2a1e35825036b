/* runtime/engine/program_memory.h -- a program's two allocations, state and arena. They are on the
 * host, or on the device that the program is for. */
#ifndef LS_RUNTIME_ENGINE_PROGRAM_MEMORY_H
#define LS_RUNTIME_ENGINE_PROGRAM_MEMORY_H

#include "runtime/base/element.h"
#include "runtime/base/run_error.h"
#include "runtime/engine/device.h"
#include "runtime/ls_program.h"

/* State that ranks have in slices (LsRanks) is read and written in the place of its sum, or of a
 * copy of that on the host: `view` brings it there if it can, `store` takes this rank's slices out
 * of it. offset: of the LS_AT_SLICE address. */
typedef struct LsSlices {
    void (*view)(void *self, int64_t offset);
    void (*store)(void *self, int64_t offset);
    void *self;                 /* NULL: no ranks */
    char *at;                   /* where `view` brings the offset 0 of every kind (LsRanks) */
    const LsError *error;       /* of `view`: what was brought is void */
} LsSlices;

typedef struct LsMemory {
    const LsProgram *p;
    LsDevice *device;           /* NULL: all memory is on the host */
    char *state, *arena;        /* addresses for steps */
    const char *constant;
    int ranks;                  /* of the run, for programs over ranks; 0: no slices are here */
    char *slice, *level;        /* this rank's slices of the state; its partial sums */
    char *sums;                 /* the sums of LsRanks, in memory that other ranks see; NULL: in
                                 * `state` */
    LsSlices slices;
    char *copied;               /* copy of the constants, where the program's own are not aligned */
    int stage;                  /* of a pipeline, that alone is here; -1: all of the program */
    int64_t arena_at;           /* bytes of the program's arena that lie before `arena` */
    bool lent;                  /* state and arena are the caller's */
    bool lets_go;               /* of the pages of the embedded ONNX file (runtime/base/let_go.h) */
} LsMemory;

/* Allocates and touches all pages, so that later steps cause no page faults. State gets the ONNX
 * file's initial values. Close the memory in any case. */
bool ls_memory_open(LsMemory *m, const LsProgram *p, LsError *e);
/* The same, for one of so many ranks, or 0; with the sums of LsRanks in the caller's memory, which
 * is zeros; NULL: in the state. stage: of a pipeline, the only one that runs here, -1: all. Then
 * the arena is that of the stage (in rank 0, that of evaluation, too), and pages of the state of
 * other stages are not touched. */
bool ls_memory_open_with(LsMemory *m, const LsProgram *p, int ranks, char *sums, int stage,
                         LsError *e);
/* The same in the caller's memory, for programs of one process on the host: p->bytes.state and
 * .arena bytes at multiples of 64. */
bool ls_memory_open_at(LsMemory *m, const LsProgram *p, void *state, void *arena, LsError *e);
/* Gives the state its initial values again; of programs of one process. */
void ls_memory_begin(LsMemory *m);
void ls_memory_close(LsMemory *m);
/* The address for steps. NULL for LS_AT_NONE, LS_AT_INPUT and LS_AT_SLICE, and for partial sums
 * that are not needed. */
void *ls_memory_at(const LsMemory *m, LsAddress a);
/* The same bytes, readable by the host: in place, or a copy of the current values, valid until the
 * next call. Zeros when the device failed; ls_device_ok tells. */
void *ls_memory_view(const LsMemory *m, LsAddress a, int64_t bytes);
/* The same for bytes at an address for steps. */
void *ls_memory_look(const LsMemory *m, void *at, int64_t bytes);
/* Writes a changed view back. */
void ls_memory_store(const LsMemory *m, LsAddress a, int64_t bytes);
/* Gives bytes of the attached file (LS_AT_FILE) other values, in this process alone; those that are
 * equal stay shared. */
void ls_memory_replace(const LsMemory *m, LsAddress a, const void *from, int64_t bytes);
/* Writes host bytes to the address. */
void ls_memory_write(const LsMemory *m, LsAddress a, const void *from, int64_t bytes);
/* The bytes of the embedded ONNX file have been read, and need no memory until they are read
 * again. */
void ls_memory_let_go(const LsMemory *m, const void *onnx, size_t bytes);
/* Passes on a failure of the device, or of a view of slices. */
bool ls_memory_ok(const LsMemory *m, LsError *e);
/* Bytes of the state of one of so many ranks; 0: of the program without slices. */
int64_t ls_memory_state(const LsProgram *p, int ranks);
/* Bytes of the whole plan: state, arena, constants, batches, buffers for other ranks. */
int64_t ls_memory_total(const LsProgram *p, int ranks);
/* Bytes of the batches alone. */
int64_t ls_memory_input(const LsProgram *p);
/* The program scales its loss (--loss-scale). */
static inline bool ls_has_scaling(const LsProgram *p)
{
    return p->scaling.scale.space != LS_AT_NONE;
}
/* Its updates are private (--dp). */
static inline bool ls_is_private(const LsProgram *p) { return p->privacy.expected > 0; }

#endif
