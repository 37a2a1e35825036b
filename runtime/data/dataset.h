/* runtime/data/dataset.h -- samples by number, from files or made up, converted to what the program
 * reads.
 *
 * --data takes one item or several with commas between: FILE or INPUT=FILE. Unnamed files serve the
 * inputs in order, the target last; an NPZ archive serves inputs by member names (NAME, then
 * in/NAME; the target is also found as "label"), a CSV file by columns, a .txt file gives its
 * characters and the following ones as target. Files are mapped, not read: they may be larger than
 * memory. */
#ifndef LS_RUNTIME_DATA_DATASET_H
#define LS_RUNTIME_DATA_DATASET_H

#include "runtime/data/alphabet.h"
#include "runtime/data/npy.h"

typedef struct LsDataset LsDataset;

typedef struct LsDataOptions {
    const char *data;           /* as above, or "synthetic", "synthetic:SAMPLES" */
    const char *label_from;     /* input that is its own target; NULL: the data has a target */
    const char *scale;          /* factor of real inputs; NULL: uint8 values are divided by 255 */
    const char *mean, *std; /* per channel (axis 1) after scaling, "0.5" or "0.4,0.5,0.4"; NULL */
    const char *raw;            /* element type of raw files, "float32"; NULL: by file name only */
    uint64_t seed;              /* of synthetic data */
} LsDataOptions;

/* Where the values of one input come from. Sample s starts at element s * stride of the array. */
typedef struct LsSource {
    const char *path;           /* NULL: not bound yet */
    LsArray array;
    int64_t stride;
    bool whole;                 /* the input has no axis of samples: always the same values */
    bool one;                   /* one number stands for every element */
    bool synthetic;
    const int16_t *token;       /* of each byte of a text; -1: not known */
    int64_t per_sample;         /* elements */
    int64_t channel, run;       /* channels; consecutive elements of one channel */
    float *table;               /* real values of bytes, [256], with mean [channel][256]; or NULL */
    double scale;               /* of real inputs; 0: none of this is asked for */
    const double *mean, *std;   /* [channel] */
} LsSource;

struct LsDataset {
    const LsProgram *p;
    LsDataOptions opt;
    LsSource *source;           /* one per LsProgram.input */
    int64_t samples;
    LsFile *file; int nfile;
    LsAlphabet characters;      /* that occur in the text; none: no text */
    LsAlphabet alphabet;        /* that have numbers */
    int16_t token[256];         /* the numbers; -1: none */
    char *text;                 /* copy of opt.data that file names point into */
    double *csv;                /* parsed columns */
    bool scaled;                /* some input takes scale, mean and std */
    double *norm;               /* what mean and std point to */
    bool label_is_input;        /* the target is the values of input label_input */
    uint32_t label_input;
};

/* Errors are LS_EXIT_DATA and name the file, or LS_EXIT_USAGE for a wrong option. Close it in any
 * case. */
bool ls_dataset_open(LsDataset *d, const LsProgram *p, const LsDataOptions *opt, LsError *e);
void ls_dataset_close(LsDataset *d);
/* Numbers the characters of a text, before anything is read: by `known`, or by those that occur when
 * that is empty. A character that has no number is an LS_EXIT_DATA error. */
bool ls_dataset_number(LsDataset *d, const LsAlphabet *known, LsError *e);

/* Sample `sample` of an input, as number `place` of the batch that lies at `batch`. Does not
 * allocate; threads may call it at the same time. A label out of range is an error. */
bool ls_dataset_read(const LsDataset *d, uint32_t input, int64_t sample, int64_t place, void *batch,
                     LsError *e);

/* Whether the reals of a sample are finite, in the file and in a batch; else an error that names the
 * first that is not. Made-up ones are. Not for every sample that is read: for finding out what made a
 * loss infinite. */
bool ls_dataset_is_finite(const LsDataset *d, uint32_t input, int64_t sample, LsError *e);

/* ---- parts, one file each ---- */
bool ls_idx_read(LsArray *a, const LsFile *f, LsError *e);          /* idx.c; big-endian */
bool ls_idx_is(const LsFile *f);
bool ls_csv_read(LsDataset *d, const LsFile *f, LsError *e);  /* csv.c: binds all free inputs */
bool ls_text_read(LsDataset *d, const LsFile *f, LsError *e); /* char_text.c: binds input and target */
bool ls_bind_files(LsDataset *d, LsError *e);                 /* bind_files.c: all items of --data */
/* synthetic.c: element i of a sample. */
double ls_synthetic_value(const LsDataset *d, uint32_t input, int64_t sample, int64_t i);
/* The same of n elements of a real input, to places `step` apart: what does not depend on the
 * element is done once. Programs that are timed run on such data. */
void ls_synthetic_reals(const LsDataset *d, uint32_t input, int64_t sample, int64_t i, int64_t n,
                        void *to, int64_t step);

#endif
