/* runtime/predict/predict_file.h -- what --predict writes: an archive, a table or a folder of
 * pictures. It appears complete, or not at all. */
#ifndef LS_RUNTIME_PREDICT_PREDICT_FILE_H
#define LS_RUNTIME_PREDICT_PREDICT_FILE_H

#include "runtime/data/class_names.h"
#include "runtime/predict/output_rows.h"

typedef enum { LS_PREDICT_NONE, LS_PREDICT_NPZ, LS_PREDICT_CSV, LS_PREDICT_PNG } LsPredictForm;

typedef struct LsPredictFile LsPredictFile;

/* One file for each form. */
typedef struct LsPredictKind {
    const char *name;
    bool (*open)(LsPredictFile *f, LsError *e);
    bool (*put)(LsPredictFile *f, int64_t in_batch, LsError *e);
    /* whole: all samples are written; else nothing is to be left */
    bool (*close)(LsPredictFile *f, bool whole, LsError *e);
} LsPredictKind;

struct LsPredictFile {
    const LsPredictKind *kind;
    const char *path;
    const LsOutputs *outputs;
    LsClassNames classes;
    bool bits;                  /* the values are scores of yes or no (LsLossTarget.bits) */
    int64_t samples, done;      /* of all; written so far */
    void *row;                  /* room for the largest sample */
    double *reals;              /* likewise, of its elements as reals */
    void *own;                  /* of the kind */
};

extern const LsPredictKind ls_predict_npz, ls_predict_csv, ls_predict_png;

/* as: "npz", "csv", "png", or NULL: by the end of the path. NULL with an LS_EXIT_USAGE error. */
const LsPredictKind *ls_predict_kind(const char *path, const char *as, LsError *e);
/* Whether the outputs could be written there now. */
bool ls_predict_check(const LsPredictKind *kind, const char *path, LsError *e);
/* f has kind, path, outputs, classes and samples. Close it in any case. */
bool ls_predict_open(LsPredictFile *f, LsError *e);
/* The samples of the last batch that count. */
bool ls_predict_put(LsPredictFile *f, int64_t valid, LsError *e);
bool ls_predict_close(LsPredictFile *f, bool whole, LsError *e);

#endif
