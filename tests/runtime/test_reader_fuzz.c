/* tests/runtime/test_reader_fuzz.c -- damaged data files and checkpoints are read or refused with a
 * reason: no crash, no byte read outside the file, no memory beyond what the file justifies. */
#include "tests/support/fuzz_target.h"
#include "tests/support/npz_util.h"
#include "tests/support/tiny_program.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/data/dataset.h"
#include "runtime/data/weight_files.h"
#include "runtime/checkpoint/checkpoint.h"

enum { ROUNDS = 3000 };         /* per kind of file: a second or two in all, also under
                                 * sanitizers */

static LsError e;
static LsFile victim;           /* what the file of that name has now */

/* ---- files whose bytes a test gives, of exactly their size ---- */

bool __real_ls_file_map(LsFile *f, const char *path, LsError *error);
bool __wrap_ls_file_map(LsFile *f, const char *path, LsError *error);
void __real_ls_file_unmap(LsFile *f);
void __wrap_ls_file_unmap(LsFile *f);

bool __wrap_ls_file_map(LsFile *f, const char *path, LsError *error)
{
    if (!victim.path || strcmp(path, victim.path) != 0)
        return __real_ls_file_map(f, path, error);
    *f = (LsFile){path, victim.data, victim.size};
    return true;
}

void __wrap_ls_file_unmap(LsFile *f)
{
    if (f->data != victim.data)
        __real_ls_file_unmap(f);
}

static LsFile begin(const char *path, const unsigned char *bytes, size_t n)
{
    e = (LsError){0};
    fuzz_allow((1 << 14) + 16 * n);
    return victim = (LsFile){path, bytes, n};
}

/* What is refused says why, and a lack of memory is no reason. */
static void end(bool ok, uint64_t round)
{
    fuzz_allow(0);
    ck_assert_msg(ok || (e.text[0] && e.code != LS_EXIT_FAIL), "round %d: code %d, '%s'",
                  (int)round, e.code, e.text);
    victim = (LsFile){0};
}

#ifndef LS_LIBFUZZER
static void fuzz_file(const char *path,
                      void (*try)(const unsigned char *bytes, size_t n, uint64_t round, Dice *d))
{
    LsFile f;
    ck_assert_msg(__real_ls_file_map(&f, path, &e), "%s", e.text);
    fuzz(f.data, f.size, ROUNDS, try);
    __real_ls_file_unmap(&f);
}
#endif

/* ---- files ---- */

static const float image[24] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const int64_t label[] = {1, 0}, token[] = {0, 1, 2, 3, 3, 2, 1, 0};

/* A stream of 12 tokens with the header of llm.c, one without, and samples as lines. */
static void write_tokens(void)
{
    static const char lines[] =
        "{\"input_ids\": [1, 2, 3], \"prompt_length\": 1}\n"
        "{\"id\": {\"a\": [1.5e3, \"}\"]}, \"labels\": [-100, 39], \"input_ids\": [4, 5]}\r\n\n"
        "{\"input_ids\":[6],\"attention_mask\":[1]}";
    unsigned char stream[1024 + 24] = {0x98, 0xd8, 0x34, 0x01, 1, 0, 0, 0, 12};
    for (int k = 0; k < 12; k++)
        stream[1024 + 2 * k] = (unsigned char)(3 * k);
    write_bytes("head.bin", stream, sizeof stream);
    write_bytes("bare.bin", stream + 1024, 24);
    write_bytes("d.jsonl", lines, sizeof lines - 1);
}

static void write_files(void)
{
    const NpzItem item[] = {{"x", LS_F32, 4, {2, 3, 2, 2}, image}, {"label", LS_I64, 1, {2}, label},
                            {"in/x", LS_U8, 2, {2, 4}, token}};
    static const char idx[] =
        "\0\0\x08\x04\0\0\0\2\0\0\0\3\0\0\0\2\0\0\0\2abcdefghijklmnopqrstuvwx";
    static const char csv[] =
        "a,b,\"c\n\"\n1,2,3,4,5,6,7,8,9,10,11,12,1\n1,2,3,4,5,6,7,8,9,\"10\",1e1,-12,0\r\n";
    char npy[512 + sizeof image];
    size_t n = ls_npy_header(npy, LS_F32, 4, item[0].dim);
    memcpy(npy + n, image, sizeof image);
    write_bytes("x.npy", npy, n + sizeof image);
    n = ls_npy_header(npy, LS_I64, 1, item[1].dim);
    memcpy(npy + n, label, sizeof label);
    write_bytes("l.npy", npy, n + sizeof label);
    n = ls_npy_header(npy, LS_I64, 2, item[2].dim);
    memcpy(npy + n, token, sizeof token);
    write_bytes("t.npy", npy, n + sizeof token);
    write_bytes("x.idx", idx, sizeof idx - 1);
    write_bytes("d.csv", csv, sizeof csv - 1);
    write_bytes("d.txt", "to be, or not to be, that is", 28);
    write_tokens();
    write_npz("d.npz", 3, item);
}

/* ---- readers of arrays ---- */

static double sum_of(const LsArray *a)
{
    double sum = 0;
    for (int64_t i = 0; i < a->count; i++)
        sum += ls_array_real(a, i) + (double)ls_array_int(a, i);
    return sum;
}

static volatile double sink;

static void try_npy(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    LsArray a;
    begin("v", bytes, n);
    (void)d;
    bool ok = ls_npy_read(&a, bytes, n, "v", &e);
    if (ok)
        sink = sum_of(&a);
    end(ok, round);
}

static void try_idx(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    LsArray a;
    LsFile f = begin("v", bytes, n);
    (void)d;
    bool ok = !ls_idx_is(&f) || ls_idx_read(&a, &f, &e);
    if (ok && ls_idx_is(&f))
        sink = sum_of(&a);
    end(ok, round);
}

static void try_npz(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    LsFile f = begin("v", bytes, n);
    LsArray a;
    const char *name;
    char names[24];
    size_t len;
    bool found, ok = ls_npz_find_in(&f, "in/", "x", &a, &found, &e);
    if (ok && found)
        sink = sum_of(&a);
    (void)d;
    end(ok, round);
    begin("v", bytes, n);
    ls_npz_names(&f, names, sizeof names);
    uint32_t members = ls_npz_count(&f);
    ok = true;
    for (uint32_t k = 0; ok && k < members; k++) {
        ok = ls_npz_at(&f, k, &name, &len, &a, &found, &e);
        if (ok && found)
            sink = sum_of(&a) + (len > 0 ? name[len - 1] : 0);
    }
    end(ok, round);
}

#ifndef LS_LIBFUZZER
START_TEST(damaged_npy_files) { write_files(); fuzz_file("x.npy", try_npy); } END_TEST
START_TEST(damaged_idx_files) { write_files(); fuzz_file("x.idx", try_idx); } END_TEST
START_TEST(damaged_archives) { write_files(); fuzz_file("d.npz", try_npz); } END_TEST
#endif

/* ---- data sets: from the file to the batch ---- */

static const LsInput images[] = {
    {{.name = "x", .channels_last = true, .rank = 4, .dim = {2, 3, 2, 2}, .at = {LS_AT_INPUT, 0}},
     false,
     0,
     0,
     LS_USUAL_NONE},
    {{.name = "label", .type = LS_DT_I64, .rank = 1, .dim = {2}, .at = {LS_AT_INPUT, 1}},
     true,
     0,
     0,
     LS_USUAL_NONE}};
static const LsInput texts[] = {
    {{.name = "x", .type = LS_DT_I64, .rank = 2, .dim = {2, 4}, .at = {LS_AT_INPUT, 0}},
     false,
     0,
     40,
     LS_USUAL_NONE},
    {{.name = "label", .type = LS_DT_I32, .rank = 2, .dim = {2, 4}, .at = {LS_AT_INPUT, 1}},
     true,
     0,
     0,
     LS_USUAL_NONE}};

static const LsInput packed[] = {
    {{.name = "x", .type = LS_DT_I64, .rank = 2, .dim = {2, 4}, .at = {LS_AT_INPUT, 0}},
     false,
     0,
     40,
     LS_USUAL_NONE},
    {{.name = "segments", .type = LS_DT_I32, .rank = 2, .dim = {2, 4}, .at = {LS_AT_INPUT, 1}},
     false,
     0,
     0,
     LS_USUAL_NONE},
    {{.name = "label", .type = LS_DT_I32, .rank = 2, .dim = {2, 4}, .at = {LS_AT_INPUT, 2}},
     true,
     0,
     0,
     LS_USUAL_NONE}};

/* Reads the first samples and the last into a batch. */
static bool read_samples(const LsDataset *d)
{
    enum { SOME = 8 };
    bool ok = true;
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        int64_t elements = d->source[k].per_sample * (d->source[k].whole ? 1 : 2);
        char *batch =
            malloc((size_t)(elements * ls_data_bytes(d->p->input[k].t.type, d->p->real_bytes)));
        for (int64_t s = 0; ok && s < d->samples;
             s = s < SOME || s == d->samples - 1 ? s + 1 : d->samples - 1)
            ok = ls_dataset_read(d, k, s, s % 2, batch, &e) && ls_dataset_is_finite(d, k, s, &e);
        free(batch);
    }
    return ok;
}

static void try_data(const char *data, const char *path, const LsInput *input,
                     const unsigned char *bytes, size_t n, uint64_t round, Dice *dice)
{
    LsDataset d;
    LsProgram p = {.about.model = "m.onnx",
                   .real_bytes = roll(dice, 2) ? 4 : 8,
                   .division.samples = 2,
                   .input = input,
                   .ninput = input == packed ? 3 : 2,
                   .target = {.classes = 40, .has_ignore = true, .ignore = -100},
                   .segments = input == packed ? 2 : 0};
    LsDataOptions o = {.data = data,
                       .mean = roll(dice, 4) ? NULL : "0.5",
                       .std = roll(dice, 4) ? NULL : "1,2,3",
                       .scale = roll(dice, 4) ? NULL : "0.1",
                       .raw = roll(dice, 16) ? NULL : "uint8",
                       .stride = roll(dice, 4),
                       .pack = input == packed && roll(dice, 2)};
    const LsAlphabet none = {0};
    begin(path, bytes, n);
    if (input != images)
        o.mean = o.std = NULL;
    LsDataset held = {0};
    bool ok = ls_dataset_open(&d, &p, &o, &e) && ls_dataset_number(&d, &none, &e);
    if (ok && roll(dice, 4) == 0)
        ok = ls_dataset_hold_out(&d, &held, roll(dice, 2) ? "1" : "40%", round, &e)
             && read_samples(&held);
    ok = ok && read_samples(&d);
    ls_dataset_close(&held);
    ls_dataset_close(&d);
    end(ok, round);
}

static void try_images(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    try_data("v,l.npy", "v", images, bytes, n, round, d);
}

static void try_labels(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    try_data("x.npy,v", "v", images, bytes, n, round, d);
}

static void try_tokens(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    try_data("x=v,v", "v", texts, bytes, n, round, d);
}

static void try_csv(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    try_data("v.csv", "v.csv", images, bytes, n, round, d);
}

static void try_text(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    try_data("v.txt", "v.txt", texts, bytes, n, round, d);
}

static void try_stream(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    try_data("v.bin", "v.bin", texts, bytes, n, round, d);
}

static void try_lines(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    try_data("v.jsonl", "v.jsonl", packed, bytes, n, round, d);
}

#ifndef LS_LIBFUZZER
START_TEST(data_from_damaged_streams_and_lines)
{
    write_files();
    fuzz_file("head.bin", try_stream);
    fuzz_file("bare.bin", try_stream);
    fuzz_file("d.jsonl", try_lines);
}
END_TEST

START_TEST(data_from_damaged_arrays)
{
    write_files();
    fuzz_file("x.npy", try_images);
    fuzz_file("l.npy", try_labels);
    fuzz_file("x.idx", try_images);
    fuzz_file("t.npy", try_tokens);
}
END_TEST

START_TEST(data_from_damaged_archives) { write_files(); fuzz_file("d.npz", try_images); } END_TEST
START_TEST(data_from_damaged_tables) { write_files(); fuzz_file("d.csv", try_csv); } END_TEST
/* Memory for as many full rows would be 200 times the file. */
START_TEST(a_table_of_many_short_rows_takes_no_memory_for_full_ones)
{
    enum { LINES = 4000 };
    static char lines[2 * LINES];
    LsInput wide[2] = {images[0], images[1]};
    LsProgram p = {.about.model = "m.onnx",
                   .real_bytes = 4,
                   .division.samples = 2,
                   .input = wide,
                   .ninput = 2};
    LsDataset d;
    wide[0].t.dim[3] = 40;
    for (int k = 0; k < LINES; k++)
        memcpy(lines + 2 * k, "1\n", 2);
    begin("v.csv", (const unsigned char *)lines, sizeof lines);
    ck_assert(!ls_dataset_open(&d, &p, &(LsDataOptions){.data = "v.csv"}, &e));
    ls_dataset_close(&d);
    end(false, 0);
    ck_assert_msg(strstr(e.text, "v.csv:1: fewer than the 241 columns") != NULL, "%s", e.text);
}
END_TEST

START_TEST(data_from_damaged_texts) { write_files(); fuzz_file("d.txt", try_text); } END_TEST
#endif

/* ---- checkpoints ---- */

static LsProgram tiny;
static LsMemory m;
static const LsPlace here = {.update = 42,
                             .cursor = 43,
                             .epoch = 4,
                             .samples = 10,
                             .seed = 7,
                             .shuffle = 1,
                             .precision = "f32",
                             .alphabet = {{UINT64_C(1) << 32, UINT64_C(0x7fffffe), 0, 0}},
                             .habits = {3, 10, 2, {"val_loss", 0.3, 40, 0.4, 1}}};

static void fill_state(void)
{
    for (int64_t k = 0; k < ST_END; k += 4) {
        float v = (float)k * 0.25f - 7;
        memcpy(m.state + k, &v, 4);
    }
}

static void try_checkpoint(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    LsPlace at = {.update = 1};
    char before[ST_END];
    begin("v", bytes, n);
    (void)d;
    memcpy(before, m.state, ST_END);
    bool ok = ls_checkpoint_load(&m, &at, "v", &e);
    end(ok, round);
    const LsPlace wanted = ok ? here : (LsPlace){.update = 1};
    ck_assert_msg(memcmp(&at, &wanted, sizeof at) == 0, "round %d: another place", (int)round);
    ck_assert_msg(memcmp(before, m.state, ST_END) == 0, "round %d: another state", (int)round);
}

static void write_checkpoint(void)
{
    tiny = tiny_program(1);
    ck_assert(ls_memory_open(&m, &tiny, &e));
    fill_state();
    ck_assert_msg(ls_checkpoint_save(&m, &here, "c.safetensors", &e), "%s", e.text);
}

#ifndef LS_LIBFUZZER
START_TEST(damaged_checkpoints)
{
    write_checkpoint();
    fuzz_file("c.safetensors", try_checkpoint);
    ls_memory_close(&m);
}
END_TEST
#endif

/* ---- weights by name ---- */

/* Two files with an index; the first has each type of reals, and one of whole numbers. */
static void write_weights(void)
{
    static const char first[] =
        "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],"
        "\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[8,10]},"
        "\"c\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[10,12]},\"d\":{\"dtype\":\"I32\","
        "\"shape\":[1],\"data_offsets\":[12,16]}}",
        second[] = "{\"e\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
        index[] = "{\"metadata\": {\"total_size\": 24}, \"weight_map\": {\"a\": \"a.st\", "
                  "\"b\": \"a.st\", \"e\": \"b.st\"}}";
    const char *const head[] = {first, second}, *const name[] = {"a.st", "b.st"};
    unsigned char file[600];
    for (int k = 0; k < 2; k++) {
        const size_t n = strlen(head[k]);
        memset(file, k, sizeof file);
        for (int i = 0; i < 8; i++)
            file[i] = (unsigned char)(n >> 8 * i);
        memcpy(file + 8, head[k], n);
        write_bytes(name[k], file, 8 + n + (k == 0 ? 16 : 8));
    }
    write_bytes("index.json", index, sizeof index - 1);
}

static void try_weight_files(const char *path, const unsigned char *bytes, size_t n, uint64_t round)
{
    LsWeightFiles w;
    begin(path, bytes, n);
    bool ok = ls_weights_open(&w, path, &e);
    for (int64_t k = 0; ok && k < w.n; k++) {
        ck_assert_ptr_eq(ls_weights_find(&w, w.item[k].name), &w.item[k]);
        if (w.item[k].is_real)
            for (int64_t i = 0; i < w.item[k].array.count; i++)
                sink = ls_array_real(&w.item[k].array, i);
    }
    ls_weights_close(&w);
    end(ok, round);
}

static void try_weights(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    (void)d;
    try_weight_files("v", bytes, n, round);
}

static void try_index(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    (void)d;
    try_weight_files("v.json", bytes, n, round);
}

#ifndef LS_LIBFUZZER
START_TEST(damaged_weights)
{
    write_weights();
    fuzz_file("a.st", try_weights);
    fuzz_file("index.json", try_index);
}
END_TEST
#endif

/* The alphabet in an ONNX file's metadata; another one, or none, is not an error. */
static void try_alphabet(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    LsAlphabet a;
    (void)round, (void)d;
    ls_alphabet_of_onnx(&a, bytes, n);
    ck_assert_int_le(ls_alphabet_count(&a), 256);
}

static void write_alphabet(void)
{
    unsigned char bytes[LS_ALPHABET_TEXT + 64] = {0};
    write_bytes("alphabet", bytes, ls_alphabet_metadata(&here.alphabet, bytes));
}

const FuzzTarget fuzz_target[] = {
    {"npy", try_npy, write_files, {"x.npy", "l.npy", "t.npy"}},
    {"idx", try_idx, write_files, {"x.idx"}},
    {"npz", try_npz, write_files, {"d.npz"}},
    {"images", try_images, write_files, {"x.npy", "d.npz", "x.idx"}},
    {"labels", try_labels, write_files, {"l.npy"}},
    {"tokens", try_tokens, write_files, {"t.npy"}},
    {"csv", try_csv, write_files, {"d.csv"}},
    {"text", try_text, write_files, {"d.txt"}},
    {"stream", try_stream, write_files, {"head.bin", "bare.bin"}},
    {"lines", try_lines, write_files, {"d.jsonl"}},
    {"checkpoint", try_checkpoint, write_checkpoint, {"c.safetensors"}},
    {"weights", try_weights, write_weights, {"a.st", "b.st"}},
    {"index", try_index, write_weights, {"index.json"}},
    {"alphabet", try_alphabet, write_alphabet, {"alphabet"}},
    {.name = NULL}};

#ifndef LS_LIBFUZZER
START_TEST(files_that_broke_a_reader_once)
{
    write_files();
    for (const FuzzTarget *t = fuzz_target; t->name != NULL; t++) {
        t->open();
        fuzz_replay(t);
    }
    ls_memory_close(&m);
}
END_TEST

START_TEST(files_that_end_at_any_byte)
{
    for (const FuzzTarget *t = fuzz_target; t->name != NULL; t++) {
        t->open();
        fuzz_truncate(t);
    }
    ls_memory_close(&m);
}
END_TEST

START_TEST(damaged_alphabets)
{
    unsigned char bytes[LS_ALPHABET_TEXT + 64] = {0};
    fuzz(bytes, ls_alphabet_metadata(&here.alphabet, bytes), ROUNDS, try_alphabet);
}
END_TEST

int main(void)
{
    const TTest *const test[] = {damaged_npy_files,
                                 damaged_idx_files,
                                 damaged_archives,
                                 data_from_damaged_arrays,
                                 data_from_damaged_archives,
                                 data_from_damaged_tables,
                                 a_table_of_many_short_rows_takes_no_memory_for_full_ones,
                                 data_from_damaged_texts,
                                 data_from_damaged_streams_and_lines,
                                 damaged_checkpoints,
                                 damaged_weights,
                                 damaged_alphabets,
                                 files_that_broke_a_reader_once,
                                 files_that_end_at_any_byte};
    return run_in_folder("reader_fuzz", sizeof test / sizeof *test, test);
}
#endif
