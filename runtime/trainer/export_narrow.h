/* runtime/trainer/export_narrow.h -- --export-precision: the exported model with its weights in 16
 * bits.
 *
 * Each trained or frozen weight NAME is rounded to the nearest, halves to even, under its name; a
 * Cast to float makes NAME.f32, which nodes then read, also in the bodies of If, Loop and Scan. So
 * inputs, outputs and names stay, and everything is computed in float32. Statistics stay float32,
 * and so does a weight that is an output, or has a number that float16 does not reach, with a
 * note. */
#ifndef LS_RUNTIME_TRAINER_EXPORT_NARROW_H
#define LS_RUNTIME_TRAINER_EXPORT_NARROW_H

#include "runtime/base/file.h"
#include "runtime/engine/program_memory.h"
#include "runtime/trainer/export_external.h"

/* LS_DT_REAL for "f32", LS_DT_F16 for "f16", LS_DT_BF16 for "bf16". False: another word. */
bool ls_export_type(const char *word, LsDataType *type);
/* Whether the model's opset has a Cast from that type; else an LS_EXIT_USAGE error. */
bool ls_export_narrow_can(const LsProgram *p, LsDataType type, LsError *e);
/* Writes the model to o; with LS_DT_REAL no weight becomes narrow. external: gets the places of the
 * tensors whose data are left out, to be closed by the caller; NULL: none are. `path` is the file's
 * name. */
bool ls_export_narrow(LsOut *o, const LsMemory *m, LsDataType type, LsExternal *external,
                      const char *path, LsError *e);

#endif
