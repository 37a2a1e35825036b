/* runtime/trainer/export_values.h -- values of state tensors and of the embedded file, in the
 * order of files. */
#ifndef LS_RUNTIME_TRAINER_EXPORT_VALUES_H
#define LS_RUNTIME_TRAINER_EXPORT_VALUES_H

#include "runtime/base/file.h"
#include "runtime/engine/program_memory.h"

/* Whether the state tensor's value is the trained one of the file: not if it has no place there, or
 * an average takes it. */
bool ls_is_exported(const LsProgram *p, uint32_t state);
/* Writes bytes of the embedded file, without keeping their memory. */
void ls_export_copy(LsOut *o, const LsMemory *m, const unsigned char *at, size_t n);
/* Writes the values: as float32 with LS_DT_REAL, else rounded to the nearest of the type, halves to
 * even. */
void ls_export_values(LsOut *o, const LsMemory *m, const LsStateTensor *s, LsDataType type);
/* Overwrites the float32 data that begin at byte `at` of o. */
void ls_export_patch(LsOut *o, const LsMemory *m, const LsStateTensor *s, int64_t at);
/* The first finite number that float16 would make infinite, else 0. */
float ls_export_too_large(const LsMemory *m, const LsStateTensor *s);

#endif
