/* runtime/trainer/export_external.h -- an exported model of two files: FILE, and FILE.data with the
 * data of its tensors, to which FILE refers as ONNX's external data. Models of more than 2 GiB have
 * this form, as no tool reads a larger ONNX file. */
#ifndef LS_RUNTIME_TRAINER_EXPORT_EXTERNAL_H
#define LS_RUNTIME_TRAINER_EXPORT_EXTERNAL_H

#include "runtime/base/file.h"
#include "runtime/engine/program_memory.h"

typedef struct LsExternalTensor {
    const unsigned char *raw;   /* its data in the embedded file */
    int64_t offset, bytes;      /* in FILE.data */
    const LsStateTensor *state; /* whose values it gets; NULL: those of the embedded file */
    bool narrow;                /* rounded to 16 bits */
} LsExternalTensor;

typedef struct LsExternal {
    char path[LS_PATH];         /* of FILE.data */
    const char *location;       /* its name without the folder, as FILE has it */
    LsExternalTensor *tensor;   /* in the order of the embedded file */
    uint32_t n, room;
    int64_t bytes;              /* of FILE.data so far */
} LsExternal;

/* Whether the model would have more than 2 GiB as one file. */
bool ls_export_is_large(const LsProgram *p, LsDataType type);
/* Whether both files could be written now; else an error. A link or a device is no FILE of two. */
bool ls_external_check(const char *file, LsError *e);

/* A place for each of up to `room` tensors. */
bool ls_external_open(LsExternal *x, const char *file, uint32_t room, LsError *e);
void ls_external_close(LsExternal *x);
/* Takes the next tensor, if its data are to lie in FILE.data: all weights, and large constants. */
void ls_external_add(LsExternal *x, const LsExternalTensor *t);
/* The tensor whose data in the embedded file begin at raw; NULL: they stay in FILE. */
const LsExternalTensor *ls_external_find(const LsExternal *x, const unsigned char *raw);
/* Writes the fields of a TensorProto that tell where the data lie; returns their end. */
enum { LS_EXTERNAL_FIELDS = LS_PATH + 128 };
unsigned char *ls_external_fields(const LsExternal *x, const LsExternalTensor *t,
                                  unsigned char to[LS_EXTERNAL_FIELDS]);
/* Writes FILE.data. */
void ls_external_write(LsOut *o, const LsMemory *m, LsDataType type, const LsExternal *x);

#endif
