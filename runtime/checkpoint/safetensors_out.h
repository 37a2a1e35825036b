/* runtime/checkpoint/safetensors_out.h -- the frame of a safetensors file: 8 bytes with the length
 * of the header, the header, the values. */
#ifndef LS_RUNTIME_CHECKPOINT_SAFETENSORS_OUT_H
#define LS_RUNTIME_CHECKPOINT_SAFETENSORS_OUT_H

#include "runtime/base/file.h"
#include "runtime/engine/program_memory.h"

/* The JSON of the header is written between both; the second pads it, and tells its length. */
void ls_safetensors_begin(LsOut *o);
void ls_safetensors_end_header(LsOut *o);
/* Commits the file, if the values could be read from memory. */
bool ls_safetensors_commit(LsOut *o, const LsMemory *m, LsError *e);

#endif
