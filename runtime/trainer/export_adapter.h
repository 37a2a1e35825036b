/* runtime/trainer/export_adapter.h -- --export-adapter: the trained adapters as peft reads them;
 * and weights with their adapters merged. */
#ifndef LS_RUNTIME_TRAINER_EXPORT_ADAPTER_H
#define LS_RUNTIME_TRAINER_EXPORT_ADAPTER_H

#include "runtime/base/file.h"
#include "runtime/engine/program_memory.h"

/* Writes adapter_config.json and adapter_model.safetensors to the folder, which is made if
 * missing. Of an ensemble: those of a member; -1: of each, to a folder of its number within. */
bool ls_export_adapter(const LsMemory *m, int64_t member, const char *dir, LsError *e);
/* Whether the folders can be written now. */
bool ls_export_adapter_check(const LsProgram *p, int64_t member, const char *dir, LsError *e);
/* Overwrites the float32 data of an exported weight, from byte `at` of o on, by those of the merged
 * one. */
void ls_export_merged(LsOut *o, const LsMemory *m, const LsMergedWeight *w, int64_t at);

#endif
