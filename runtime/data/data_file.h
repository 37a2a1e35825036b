/* runtime/data/data_file.h -- packed data sets, FILE.lsd: columns of samples that are mapped and
 * read where they lie. docs/data.md describes the file byte by byte.
 *
 * The file begins with a head of LS_DATA_HEAD bytes: where the rest is, how long the file is, and
 * checksums of both. Columns begin at multiples of LS_DATA_ALIGN. Behind them are the checksums of
 * their blocks, and a description in JSON. */
#ifndef LS_RUNTIME_DATA_DATA_FILE_H
#define LS_RUNTIME_DATA_DATA_FILE_H

#include "runtime/base/json_read.h"
#include "runtime/data/alphabet.h"
#include "runtime/data/npy.h"

#define LS_DATA_MAGIC "\x89LSD\r\n\x1a\n"
enum {
    LS_DATA_VERSION = 1,
    LS_DATA_HEAD = 64, /* bytes of the head that have a meaning; the rest up to the first
                        * column is 0 */
    LS_DATA_ALIGN = 4096,
    LS_DATA_BLOCK = 1 << 20, /* bytes of a column that have a checksum; the last block is short */
};

typedef enum {
    LS_FIELD_ARRAY,
    LS_FIELD_PICTURE,    /* bytes: channels, height, width */
    LS_FIELD_TOKENS,     /* a stream: a sample is a token */
    LS_FIELD_CHARACTERS, /* likewise of bytes, whose numbers the alphabet gives */
} LsFieldKind;
enum { LS_FIELD_KINDS = LS_FIELD_CHARACTERS + 1 };
extern const char *const ls_field_kind_name[LS_FIELD_KINDS];

typedef struct LsTexts {
    int64_t n;
    char **text;
} LsTexts; /* UTF-8 */

/* A column of a table that became elements of a field. */
typedef struct LsDataColumn {
    char *name;
    LsTexts categories; /* number c stands for text[c]; n 0: a column of numbers */
    bool one_hot;       /* an element per category */
} LsDataColumn;

typedef struct LsDataField {
    char *name;
    bool is_label;
    LsFieldKind kind;
    LsElement type;
    int rank;
    int64_t dim[LS_TENSOR_RANK]; /* of a sample */
    int64_t at, bytes;           /* in the file */
    LsTexts classes;             /* of labels; n 0: they have no names */
    double *mean, *std;          /* [figures], per channel or element, bytes divided by 255; NULL */
    int64_t figures;
    LsAlphabet alphabet; /* of characters */
    LsDataColumn *column;
    int64_t columns;
} LsDataField;

typedef struct LsDataFile {
    const LsFile *f;
    int64_t samples;
    LsDataField *field;
    int64_t fields;
    int64_t blocks; /* checksums at `sums`, in the order of the columns */
    int64_t sums;
    LsTexts sources; /* what it was made of */
    char *text;
    size_t used; /* storage of all strings */
} LsDataFile;

bool ls_data_file_is(const LsFile *f);
/* Checks length, head and description, and that all columns lie within the file; not the columns'
 * own checksums. Close it in any case. The file must stay mapped. */
bool ls_data_file_open(LsDataFile *d, const LsFile *f, LsError *e);
void ls_data_file_close(LsDataFile *d);
/* The values of a field, with an axis of samples. */
LsArray ls_data_file_array(const LsDataFile *d, const LsDataField *field);
/* A list of strings in JSON: `n` of them go to to->text. The pointers are on the heap, the bytes in
 * `room`, which has as many as the JSON has. False: no such list, or (memory) no memory. */
bool ls_texts_read(LsTexts *to, LsJson *j, char *room, size_t *used, bool *memory);
/* A list of numbers on the heap; likewise. */
bool ls_numbers_read(double **to, int64_t *n, LsJson *j, bool *memory);

#endif
