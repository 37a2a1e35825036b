/* runtime/data/dataset.h -- samples by number, from files or synthetic, converted to the program's
 * input format.
 *
 * --data takes one item, or several separated by commas: FILE or INPUT=FILE. Unnamed files serve
 * the inputs in order, the target last. An NPZ archive serves inputs by member names (NAME, then
 * in/NAME; a single target is also found as "label"), a CSV file by columns; a .txt file gives its
 * characters, and the following characters as target, a single .bin file tokens in the same way
 * (token_stream.c), a .jsonl file samples of tokens (json_lines.c). A packed data set (.lsd) serves
 * inputs by the names of its fields. Files are mapped, not read: they may be larger than memory,
 * but for the numbers of .csv and .jsonl files.
 *
 * Several such lists with '+' between them, or a pattern of file names, are one dataset: the
 * samples of each follow those of the one before (joined_data.c). */
#ifndef LS_RUNTIME_DATA_DATASET_H
#define LS_RUNTIME_DATA_DATASET_H

#include "runtime/data/alphabet.h"
#include "runtime/data/class_names.h"
#include "runtime/data/hold_out.h"
#include "runtime/data/data_file.h"
#include "runtime/data/npy.h"
#include "runtime/data/token_rows.h"

typedef struct LsDataset LsDataset;

typedef struct LsDataOptions {
    const char *data;           /* as above, or "synthetic", "synthetic:SAMPLES" */
    const char *label_from;     /* input that is its own target; NULL: the data contain the
                                 * target */
    const char *scale;          /* factor of real inputs; NULL: uint8 values are divided by 255 */
    const char *mean, *std; /* per channel (axis 1) after scaling, "0.5" or "0.4,0.5,0.4"; NULL;
                             * LS_FIGURES: those of a packed data set */
    const char *raw;            /* element type of raw files, "float32"; NULL: from the file name */
    int64_t stride;             /* token streams: tokens from one window to the next; 0: a window */
    bool pack;                  /* JSON lines: samples share rows */
    bool random_windows;        /* token streams: windows begin elsewhere in every epoch */
    uint64_t seed;              /* of synthetic data */
    bool unlabelled;            /* the data need not have targets, which are zeros then */
} LsDataOptions;

#define LS_FIGURES "auto"

/* The source of one input's values. Sample s starts at element s * stride of the array. */
typedef struct LsSource {
    const char *path;           /* NULL: not bound yet */
    LsArray array;
    int64_t stride;
    bool whole;                 /* the input has no sample axis: the same values for every batch */
    bool one;                   /* one number fills every element */
    bool synthetic;             /* computed, and not in an array: data that are made up, or what is
                                 * usual for an input that the data lack (LsInput.usual) */
    const int16_t *token;       /* number of each byte of a text; -1: none */
    bool stream;                /* of tokens; `first`: the token of the file that the array begins
                                 * with */
    int64_t first;
    bool counts;                /* element i is i */
    const char *there;          /* the values, as `array` would have them, lie on the device, which
                                 * copies them itself: nothing is read here; NULL */
    const LsTokenRows *rows;    /* of tokens, which have `part`; the array has none of them; NULL */
    LsRowPart part;
    int64_t per_sample;         /* elements */
    int64_t stored;             /* elements of a sample in the array */
    int64_t high, wide;         /* rows and columns of a picture or map in the array, if they are
                                 * not those of the input; else 0 */
    int64_t labels;             /* > 0: the array has so many labels for each sample of a target of
                                 * probabilities */
    int64_t channel, run;       /* channels; consecutive elements of one channel */
    float *table;               /* converted values of uint8 elements, [256], with mean
                                 * [channel][256]; or NULL */
    double scale;               /* of real inputs; 0: no scaling, mean or std */
    const double *mean, *std;   /* [channel] */
    const LsDataField *field;   /* of a packed data set; NULL. Of pictures array.dim is samples,
                                 * channels, height and width as they were packed */
    const int64_t *map;         /* label c of the file is class map[c], for c below nmap; NULL */
    int64_t nmap;
} LsSource;

struct LsDataset {
    const LsProgram *p;
    LsDataOptions opt;
    LsSource *source;           /* one per LsProgram.input */
    int64_t samples;            /* of this part of the data */
    LsHoldOut held_out;         /* which they are */
    bool borrowed;              /* all memory is another dataset's */
    int64_t limit;              /* batches of an epoch that are taken; 0: all */
    LsFile *file; int nfile;
    LsAlphabet characters;      /* that occur in the text; empty: no text */
    LsAlphabet alphabet;        /* that have numbers */
    int16_t token[256];         /* the numbers; -1: none */
    char *text;                 /* copy of opt.data, which file names point into */
    double *csv;                /* columns of a parsed CSV file */
    LsTokenRows rows;           /* samples of JSON lines */
    LsClassNames classes;       /* of the labels; n 0: the data have no names */
    LsDataFile stored;          /* the packed data set; f NULL: none */
    int64_t *map;               /* storage of a source's map */
    LsTexts names;              /* storage of `classes`, once they are those of the model */
    char *names_text;
    LsDataset *part;            /* of a joined dataset, whose sources are those of part 0; NULL */
    int64_t parts, *first;      /* first[k]: sample that part k begins with, of parts + 1 */
    bool scaled;                /* some input uses scale, mean and std */
    double *norm;               /* storage of mean and std */
    int64_t moves;              /* tokens by which windows of a stream may be moved, with
                                 * random_windows; 0: they stay */
    bool label_is_input;        /* the target has the values of input label_input */
    uint32_t label_input;
};

/* An error is LS_EXIT_DATA and names the file, or LS_EXIT_USAGE for a wrong option. Close the
 * dataset in any case. */
bool ls_dataset_open(LsDataset *d, const LsProgram *p, const LsDataOptions *opt, LsError *e);
void ls_dataset_close(LsDataset *d);
/* The part of the data that has the sample, whose number in it replaces *sample. */
const LsDataset *ls_dataset_part(const LsDataset *d, int64_t *sample);
/* Numbers the characters of a text, before any sample is read: by `known`, or, if that is empty, by
 * the characters that occur. A character without a number is an LS_EXIT_DATA error. */
bool ls_dataset_number(LsDataset *d, const LsAlphabet *known, LsError *e);

/* split_dataset.c: takes `held` samples, "10%" or a number, out of d (hold_out.h). They are in
 * `rest`, which is valid as long as d. */
bool ls_dataset_hold_out(LsDataset *d, LsDataset *rest, const char *held, uint64_t seed,
                         LsError *e);

/* Reads sample `sample` of an input to index `place` of the batch at `batch`. Does not allocate;
 * threads may call it concurrently. A label out of range is an error. */
bool ls_dataset_read(const LsDataset *d, uint32_t input, int64_t sample, int64_t place, void *batch,
                     LsError *e);

/* The same for a window of tokens that begins `moved` tokens later, at most LsDataset.moves. */
bool ls_dataset_read_moved(const LsDataset *d, uint32_t input, int64_t sample, int64_t moved,
                           int64_t place, void *batch, LsError *e);
/* Reads n elements of a sample from element `from` of the sample in the array on, all of channel
 * c, and stores them `step` elements apart from `to` on: reals as the program has them, or
 * integers. */
bool ls_dataset_read_run(const LsDataset *d, uint32_t input, int64_t sample, int64_t from,
                         int64_t c, int64_t n, void *to, int64_t step, LsError *e);
/* Reads the labels of a target of probabilities (LsSource.labels), n from label `from` on. */
bool ls_dataset_read_labels(const LsDataset *d, uint32_t input, int64_t sample, int64_t from,
                            int64_t n, int64_t *to, LsError *e);
/* n elements of a sample of reals from element `from` of it in the array on, as the data have
 * them, before --scale. */
void ls_dataset_raw(const LsDataset *d, uint32_t input, int64_t sample, int64_t from, int64_t n,
                    float *to);
/* The sample in an array of bytes. */
const unsigned char *ls_dataset_bytes(const LsDataset *d, uint32_t input, int64_t sample);
/* A zero of channel c in the data, as a batch has it. */
double ls_dataset_zero_value(const LsDataset *d, uint32_t input, int64_t c);

/* Whether the reals of a sample are finite, in the file and in a batch; else an error that names
 * the first other value. Synthetic samples are finite. Called only to find the reason for a loss
 * that is not finite, not for every sample. */
bool ls_dataset_is_finite(const LsDataset *d, uint32_t input, int64_t sample, LsError *e);

/* memory_data.c: a dataset of arrays in memory, which ls_dataset_point names before samples are
 * read: `samples` of the input, row-major in logical order, of the input's own type (reals: of the
 * program's). The arrays belong to the caller. */
bool ls_dataset_in_memory(LsDataset *d, const LsProgram *p, LsError *e);
void ls_dataset_point(LsDataset *d, uint32_t input, const void *at, int64_t samples);
/* The same for an array on the device. Whether a batch has the bytes of such an array, only
 * channels in another order: values that are checked or converted are read here. */
void ls_dataset_point_there(LsDataset *d, uint32_t input, const void *there, int64_t samples);
bool ls_dataset_copies(const LsDataset *d, uint32_t input);
/* Real inputs of such a dataset are scaled as these options say: once they have their arrays. */
bool ls_dataset_scale(LsDataset *d, const LsDataOptions *o, LsError *e);
/* All elements of the input are zero. */
void ls_dataset_zero(LsDataset *d, uint32_t input);

/* ---- parts, one file each ---- */
void ls_dataset_describe(LsDataset *d);     /* shapes of samples, of all sources */
bool ls_idx_read(LsArray *a, const LsFile *f, LsError *e);          /* idx.c; big-endian */
bool ls_idx_is(const LsFile *f);
bool ls_csv_read(LsDataset *d, const LsFile *f, LsError *e);  /* csv.c: binds all free inputs */
/* char_text.c: binds input and target */
bool ls_text_read(LsDataset *d, const LsFile *f, LsError *e);
/* json_lines.c: binds the inputs of a language model */
bool ls_json_lines_read(LsDataset *d, const LsFile *f, LsError *e);
/* A line, from..end, becomes the next sample of the rows, of at most `most` tokens. rows->none: no
 * label. */
bool ls_json_line_read(LsTokenRows *rows, const char *path, int64_t line, const char *from,
                       const char *end, int64_t most, LsError *e);
/* token_stream.c: whether a file without a name for its input is one; `bin`: it is called so. Binds
 * the inputs of a language model. */
bool ls_stream_is(const LsDataset *d, const LsFile *f, bool bin);
bool ls_stream_read(LsDataset *d, const LsFile *f, LsError *e);
/* All tokens of such a file; raw: the type of bare ones, NULL: 16 bits. */
bool ls_tokens_read(LsArray *a, const LsFile *f, const char *raw, LsError *e);
/* bind_data_file.c: the free inputs, or `only` (from 0 on), by a packed data set */
bool ls_data_file_bind(LsDataset *d, const LsFile *f, int only, LsError *e);
/* joined_data.c: whether --data names several datasets; and opens them. */
bool ls_joined_is(const char *data);
bool ls_joined_open(LsDataset *d, LsError *e);
/* cifar.c: the records of CIFAR's binary files, where the program takes such. */
bool ls_cifar_is(const LsDataset *d, const LsFile *f);
bool ls_cifar_bind(LsDataset *d, const LsFile *f, LsError *e);
/* token_stream.c, char_text.c: the inputs of a language model, by an array of tokens or bytes. */
bool ls_stream_bind(LsDataset *d, const char *path, LsArray a, LsError *e);
bool ls_text_bind(LsDataset *d, const char *path, const unsigned char *data, size_t n, LsError *e);
/* Sets mean and deviation of an input, by the figures of the packed field or others of its form;
 * only where the options say LS_FIGURES. */
bool ls_dataset_figures(LsDataset *d, uint32_t k, const double *mean, const double *std, int64_t n,
                        LsError *e);
/* bind_files.c: whether the array of the input's source fits it, whose stride it sets */
bool ls_dataset_fit(LsDataset *d, uint32_t input, LsError *e);
/* bind_files.c: all items of --data */
bool ls_bind_files(LsDataset *d, LsError *e);
/* picture_read.c: whether the input has pictures, or what belongs to them element by element: its
 * last two axes are the rows and columns of the first pictures. */
bool ls_moves_with_pictures(const LsDataset *d, uint32_t input);
/* Whether all such inputs have the same rows and columns in the data, too. */
bool ls_pictures_agree(const LsDataset *d, LsError *e);
/* Whether the target is one of probabilities for which labels may stand */
bool ls_takes_labels(const LsProgram *p, uint32_t input);
/* Reads a sample of pictures or maps of another size than the input's, of which it takes the
 * middle, or of labels of such a target, to its place in a batch. */
bool ls_picture_sample(const LsDataset *d, uint32_t input, int64_t sample, void *to, LsError *e);
/* The input has what is usual for it. */
void ls_dataset_usual(LsDataset *d, uint32_t input);
/* synthetic.c: element i of a synthetic sample. */
double ls_synthetic_value(const LsDataset *d, uint32_t input, int64_t sample, int64_t i);
/* The same for n elements of a real input, stored `step` elements apart. Work that does not depend
 * on the element is done once, as timed programs run on such data. */
void ls_synthetic_reals(const LsDataset *d, uint32_t input, int64_t sample, int64_t i, int64_t n,
                        void *to, int64_t step);

#endif
