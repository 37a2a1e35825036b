/* runtime/predict/serve_line.h -- a line of standard input, read as one sample or as a prompt.
 *
 * A sample is a JSON object of arrays by the inputs' names, {"x": [[0.1, 2], [3, 4]], "id": 7},
 * each nested as a sample of the input is, or flat; where there is one input, its array alone;
 * or the numbers of all inputs in a row, with commas between. */
#ifndef LS_RUNTIME_PREDICT_SERVE_LINE_H
#define LS_RUNTIME_PREDICT_SERVE_LINE_H

#include "runtime/base/json_read.h"
#include "runtime/data/dataset.h"

enum { LS_LINE_ID = 128 };

/* What a sample may have. */
typedef struct LsLineInput {
    const char *name;
    int rank; int64_t dim[LS_TENSOR_RANK];      /* of a sample */
    int64_t count;
    bool needed;                /* else it may be missing */
} LsLineInput;

typedef struct LsLine {
    const LsLineInput *input; uint32_t ninput;
    double **value;             /* by input: room for `count` numbers */
    bool *given;                /* by input */
    char id[LS_LINE_ID];        /* as JSON; "": none */
} LsLine;

/* False with a sentence that says where the line is wrong. */
bool ls_line_sample(LsLine *to, const char *line, size_t n, LsError *e);

/* A prompt: {"prompt": "text", "id": 7}, "text" in quotes, or the line itself. *text points to
 * `room` of n + 1 bytes, or into the line. */
bool ls_line_prompt(const char *line, size_t n, char *room, const char **text, size_t *bytes,
                    char id[LS_LINE_ID], LsError *e);

/* Text in quotes, as JSON: what is not UTF-8 becomes U+FFFD. */
void ls_line_put_text(LsText *t, const char *text, size_t n);

#endif
