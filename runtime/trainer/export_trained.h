/* runtime/trainer/export_trained.h -- --export: the evaluation form of the model with the trained
 * weights. */
#ifndef LS_RUNTIME_TRAINER_EXPORT_TRAINED_H
#define LS_RUNTIME_TRAINER_EXPORT_TRAINED_H

#include "runtime/data/alphabet.h"
#include "runtime/engine/program_memory.h"
#include "runtime/trainer/export_scaling.h"

typedef struct LsExportForm {
    LsDataType type;            /* of the weights, LS_DT_REAL (float32), LS_DT_F16 or LS_DT_BF16 */
    bool external;              /* their data lie in PATH.data */
    const LsFront *front;       /* in front of the model, or NULL; not with 16 bits or two files */
    const unsigned char *notes; size_t nnotes;  /* appended to the model (export_notes.h) */
} LsExportForm;

/* member: of an ensemble, else not read. alphabet: of the training text, written to the file's
 * metadata; may be empty. */
bool ls_export(const LsMemory *m, int64_t member, const LsAlphabet *alphabet,
               const LsExportForm *form, const char *path, LsError *e);

#endif
