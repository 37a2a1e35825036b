/* tests/runtime/test_checkpoint.c -- saved values come back; a damaged or foreign file is refused
 * and changes nothing. */
#include "tests/support/npz_util.h"
#include "tests/support/tiny_program.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/trainer/checkpoint_folder.h"

#include <dirent.h>

static LsProgram p;
static LsMemory m;
static LsError e;
static const LsPlace here = {.update = 42, .cursor = 43, .epoch = 4, .samples = 10,
                             .seed = 18446744073709551615u, .shuffle = 1, .precision = "f32"};

static void open_memory(void)
{
    e = (LsError){0};
    p = tiny_program(1);
    ck_assert(ls_memory_open(&m, &p, &e));
    for (int64_t k = 0; k < ST_END; k += 4) {
        float v = (float)k * 0.25f - 7;
        memcpy(m.state + k, &v, 4);
    }
}

/* Counts the bytes of the tensors; bytes between tensors do not count. */
static void copy_state(char *to)
{
    memset(to, 0, ST_END);
    for (uint32_t k = 0; k < p.nstate; k++) {
        int64_t n = 4;
        for (int d = 0; d < p.state[k].t.rank; d++)
            n *= p.state[k].t.dim[d];
        memcpy(to + p.state[k].t.at.offset, m.state + p.state[k].t.at.offset, (size_t)n);
    }
}

START_TEST(state_and_place_come_back)
{
    char before[ST_END], after[ST_END];
    LsPlace at = {0};
    open_memory();
    copy_state(before);
    ck_assert_msg(ls_checkpoint_save(&m, &here, "c.safetensors", &e), "%s", e.text);
    memset(m.state, 0, ST_END);
    ck_assert_msg(ls_checkpoint_load(&m, &at, "c.safetensors", &e), "%s", e.text);
    copy_state(after);
    ck_assert_int_eq(memcmp(before, after, ST_END), 0);
    ck_assert_int_eq(memcmp(&at, &here, sizeof at), 0);
    ls_memory_close(&m);
}
END_TEST

START_TEST(a_program_with_another_layout_reads_the_same_values)
{
    LsStateTensor other[7];
    LsPlace at;
    open_memory();
    ck_assert(ls_checkpoint_save(&m, &here, "c.safetensors", &e));
    memcpy(other, p.state, sizeof other);
    other[0].t.channels_last = false;
    p.state = other;
    ck_assert_msg(ls_checkpoint_load(&m, &at, "c.safetensors", &e), "%s", e.text);
    const float *w = (const float *)(const void *)m.state;
    for (int k = 0; k < TM; k++)
        for (int c = 0; c < TC; c++)
            for (int s = 0; s < TS; s++)
                ck_assert_float_eq(w[(k * TC + c) * TS + s], (float)((k * TS + s) * TC + c) - 7);
    ls_memory_close(&m);
}
END_TEST

START_TEST(no_cut_and_no_flipped_byte_is_taken_for_sound)
{
    char before[ST_END], after[ST_END];
    LsFile f;
    LsPlace at = {.update = 1};
    open_memory();
    copy_state(before);
    ck_assert(ls_checkpoint_save(&m, &here, "c.safetensors", &e));
    ck_assert(ls_file_map(&f, "c.safetensors", &e));
    unsigned char *copy = malloc(f.size);
    for (size_t n = 1; n < f.size; n += n < 20 ? 1 : 5) {
        e = (LsError){0};
        write_bytes("cut", f.data, n);
        ck_assert(!ls_checkpoint_load(&m, &at, "cut", &e));
        ck_assert_int_eq(e.code, LS_EXIT_DATA);
        ck_assert_int_eq(strncmp(e.text, "cut: ", 5), 0);
        memcpy(copy, f.data, f.size);
        copy[n] ^= 0x10;
        e = (LsError){0};
        write_bytes("flipped", copy, f.size);
        if (ls_checkpoint_load(&m, &at, "flipped",
                               &e)) /* a flipped bit in the model's name may pass */
            ck_assert_int_eq(memcmp(&at, &here, sizeof at), 0);
        else
            ck_assert_int_eq(at.update, 1);
        at = (LsPlace){.update = 1};
        copy_state(after);
        ck_assert_int_eq(memcmp(before, after, ST_END), 0);
    }
    free(copy);
    ls_file_unmap(&f);
    ls_memory_close(&m);
}
END_TEST

static bool same_ledger(const LsPrivacyLedger *a, const LsPrivacyLedger *b)
{
    bool same = a->n == b->n;
    for (int k = 0; same && k < a->n; k++)
        same = a->run[k].rate == b->run[k].rate && a->run[k].noise == b->run[k].noise
               && a->run[k].updates == b->run[k].updates
               && memcmp(a->run[k].renyi, b->run[k].renyi, sizeof a->run[k].renyi) == 0;
    return same;
}

/* Numbers that have no short decimal form come back as they were; and no change of the ledger
 * passes. */
START_TEST(the_ledger_comes_back_and_cannot_be_changed)
{
    char why[LS_PRIVACY_WHY];
    LsFile f;
    LsPlace at = here, back;
    open_memory();
    at.seeded = 1;
    ck_assert(ls_privacy_add(&at.ledger, 1. / 3, 1.1, 12, why)
              && ls_privacy_add(&at.ledger, 0.1, 0.7, 1, why));
    ck_assert_msg(ls_checkpoint_save(&m, &at, "c.safetensors", &e), "%s", e.text);
    ck_assert_msg(ls_checkpoint_load(&m, &back, "c.safetensors", &e), "%s", e.text);
    ck_assert(back.seeded == 1 && same_ledger(&at.ledger, &back.ledger));
    ls_privacy_free(&back.ledger);
    ck_assert(ls_file_map(&f, "c.safetensors", &e));
    char *copy = malloc(f.size), *text = memmem(f.data, f.size, "\"noise_seeded\"", 14);
    const size_t from = (size_t)(text - (char *)f.data), end = from + 110;
    ck_assert_ptr_nonnull(text);
    for (size_t n = from; n < end; n++) {
        memcpy(copy, f.data, f.size);
        copy[n] ^= 1;
        write_bytes("changed", copy, f.size);
        e = (LsError){0};
        if (ls_checkpoint_load(&m, &back, "changed", &e)) {     /* the last of 17 digits may pass */
            ck_assert_msg(same_ledger(&at.ledger, &back.ledger), "byte %zu of the ledger",
                          n - from);
            ls_privacy_free(&back.ledger);
        }
    }
    free(copy);
    ls_file_unmap(&f);
    ls_privacy_free(&at.ledger);
    ls_memory_close(&m);
}
END_TEST

/* The checksum covers the data, not the header. */
START_TEST(tensors_out_of_place_are_refused)
{
    static const struct { const char *was, *is, *says; } bad[] = {
        {"[56,104]", "[ 0, 48]", "'w.m' does not follow the tensor before it"},
        {"\"w.m\"", "\"w\"  ", "'w' is there twice"},
    };
    LsFile f;
    LsPlace at = {.update = 1};
    open_memory();
    ck_assert(ls_checkpoint_save(&m, &here, "c.safetensors", &e));
    ck_assert(ls_file_map(&f, "c.safetensors", &e));
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        char *copy = malloc(f.size), *spot;
        memcpy(copy, f.data, f.size);
        spot = memmem(copy, f.size, bad[k].was, strlen(bad[k].was));
        ck_assert_ptr_nonnull(spot);
        memcpy(spot, bad[k].is, strlen(bad[k].is));
        write_bytes("bad", copy, f.size);
        e = (LsError){0};
        ck_assert(!ls_checkpoint_load(&m, &at, "bad", &e));
        ck_assert_msg(strstr(e.text, bad[k].says) != NULL, "%s", e.text);
        ck_assert_int_eq(at.update, 1);
        free(copy);
    }
    ls_file_unmap(&f);
    ls_memory_close(&m);
}
END_TEST

START_TEST(another_program_is_refused_with_the_tensor_that_differs)
{
    static const struct { uint32_t nstate; int64_t dim; const char *name, *part; } other[] = {
        {6, TM, "b", "holds 'mean', which this program does not have"},
        {7, TM, "bias", "holds 'b', which"},
        {7, 5, "b", "'b' is 2, in this program it is 5"},
    };
    LsPlace at;
    open_memory();
    ck_assert(ls_checkpoint_save(&m, &here, "c.safetensors", &e));
    LsStateTensor state[7];
    memcpy(state, p.state, sizeof state);
    p.state = state;
    for (size_t k = 0; k < sizeof other / sizeof other[0]; k++) {
        e = (LsError){0};
        p.nstate = other[k].nstate;
        state[1].t.dim[0] = other[k].dim;
        state[1].t.name = other[k].name;
        ck_assert(!ls_checkpoint_load(&m, &at, "c.safetensors", &e));
        ck_assert_msg(strstr(e.text, other[k].part) != NULL, "%s", e.text);
    }
    state[1] = tiny_state[1];
    p.nstate = 7;
    p.real_bytes = 8;
    e = (LsError){0};
    ck_assert(!ls_checkpoint_load(&m, &at, "c.safetensors", &e));
    ck_assert_msg(strstr(e.text, "'w' is F32, this program computes in F64") != NULL, "%s", e.text);
    p.real_bytes = 4;
    ls_memory_close(&m);
}
END_TEST

/* "__metadata__" is a key of the format's own. */
START_TEST(names_that_the_format_keeps_for_itself_come_back)
{
    static const char *const name[] = {"__metadata__", "___metadata__", "____metadata__",
                                       "_metadata__"};
    LsStateTensor other[7];
    char before[ST_END], after[ST_END];
    LsPlace at = {0};
    open_memory();
    memcpy(other, p.state, sizeof other);
    for (uint32_t k = 0; k < 4; k++)
        other[k].t.name = name[k];
    p.state = other;
    copy_state(before);
    ck_assert_msg(ls_checkpoint_save(&m, &here, "c.safetensors", &e), "%s", e.text);
    memset(m.state, 0, ST_END);
    ck_assert_msg(ls_checkpoint_load(&m, &at, "c.safetensors", &e), "%s", e.text);
    copy_state(after);
    ck_assert_int_eq(memcmp(before, after, ST_END), 0);
    other[0].t.name = "x";      /* and is not taken for another */
    ck_assert(!ls_checkpoint_load(&m, &at, "c.safetensors", &e));
    ck_assert_msg(strstr(e.text, "holds '___metadata__', which this program does not have") != NULL,
                  "%s", e.text);
    ls_memory_close(&m);
}
END_TEST

START_TEST(a_missing_tensor_is_named)
{
    LsPlace at;
    open_memory();
    p.nstate = 6;
    ck_assert(ls_checkpoint_save(&m, &here, "c.safetensors", &e));
    p.nstate = 7;
    ck_assert(!ls_checkpoint_load(&m, &at, "c.safetensors", &e));
    ck_assert_msg(strstr(e.text, "'mean' is missing") != NULL, "%s", e.text);
    ls_memory_close(&m);
}
END_TEST

/* Writes the checkpoint f with other offsets of its last tensor; the checksum is of the data
 * alone. */
static void move_last(const LsFile *f, const char *path, int64_t from, int64_t to)
{
    const char *head = (const char *)f->data + 8;
    size_t length = f->data[0] | (size_t)f->data[1] << 8, n = length;
    while (head[n - 1] != '[')
        n--;
    char *copy = calloc(1, f->size + 64), *text = copy + 8;
    memcpy(text, head, n);
    n += (size_t)sprintf(text + n, "%ld,%ld]}}", (long)from, (long)to);
    copy[0] = (char)(n & 255);
    copy[1] = (char)(n >> 8);
    memcpy(text + n, head + length, f->size - 8 - length);
    write_bytes(path, copy, 8 + n + f->size - 8 - length);
    free(copy);
}

START_TEST(a_tensor_outside_the_file_is_refused)
{
    LsFile f;
    LsPlace at;
    open_memory();
    ck_assert(ls_checkpoint_save(&m, &here, "c.safetensors", &e));
    ck_assert(ls_file_map(&f, "c.safetensors", &e));
    int64_t bytes = 4 * ls_tensor_count(&p.state[6].t), end = 0;
    for (uint32_t k = 0; k < p.nstate; k++)
        end += 4 * ls_tensor_count(&p.state[k].t);
    const struct { int64_t from, to; bool good;
    } where[] = {{end - bytes, end, true},
                 {end - bytes + 4, end + 4, false},
                 {end + 4000, end + 4000 + bytes, false},
                 {-bytes, 0, false},
                 {end - bytes, end - 4, false},
                 {end, end - bytes, false}};
    for (size_t k = 0; k < sizeof where / sizeof where[0]; k++) {
        e = (LsError){0};
        move_last(&f, "moved", where[k].from, where[k].to);
        ck_assert_msg(ls_checkpoint_load(&m, &at, "moved", &e) == where[k].good, "case %zu: %s", k,
                      e.text);
        ck_assert_int_eq(e.code, where[k].good ? LS_EXIT_DONE : LS_EXIT_DATA);
    }
    ls_file_unmap(&f);
    ls_memory_close(&m);
}
END_TEST

START_TEST(the_header_is_json_that_others_read)
{
    static const char script[] =
        "import json, struct\n"
        "b = open('c.safetensors', 'rb').read()\n"
        "n = struct.unpack('<Q', b[:8])[0]\n"
        "h = json.loads(b[8:8 + n])\n"
        "assert n % 8 == 0 and h['__metadata__']['update'] == '42', h\n"
        "end = 0\n"
        "for k, t in h.items():\n"
        "    if k != '__metadata__':\n"
        "        assert t['dtype'] == 'F32' and t['data_offsets'][0] == end, t\n"
        "        end = t['data_offsets'][1]\n"
        "assert 8 + n + end == len(b) and h['w']['shape'] == [2, 3, 2]\n";
    open_memory();
    ck_assert(ls_checkpoint_save(&m, &here, "c.safetensors", &e));
    write_bytes("t.py", script, sizeof script - 1);
    if (system("python3 --version > v 2>&1") != 0)
        printf("skipped: no Python to read it\n");
    else
        ck_assert_int_eq(system("python3 t.py"), 0);
    ls_memory_close(&m);
}
END_TEST

START_TEST(a_full_disk_leaves_the_old_file_alone)
{
    char before[ST_END];
    LsPlace at = {0};
    open_memory();
    copy_state(before);
    ck_assert(ls_checkpoint_save(&m, &here, "c.safetensors", &e));
    ck_assert_int_eq(symlink("/dev/full", "c.safetensors.tmp"), 0);
    ck_assert(!ls_checkpoint_save(&m, &here, "c.safetensors", &e));
    ck_assert_int_eq(e.code, LS_EXIT_FAIL);
    ck_assert_int_ne(access("c.safetensors.tmp", F_OK), 0); /* the part that was written is gone */
    e = (LsError){0};
    ck_assert_msg(ls_checkpoint_load(&m, &at, "c.safetensors", &e), "%s", e.text);
    ls_memory_close(&m);
}
END_TEST

START_TEST(only_the_last_ones_are_kept)
{
    LsSaver s = {0};
    int files = 0;
    open_memory();
    ck_assert(ls_saver_open(&s, "ck", 3, false, &e));
    for (int64_t u = 1; u <= 10; u++)
        ck_assert(ls_saver_save(&s, &m, &(LsPlace){.update = u}, &e));
    DIR *dir = opendir("ck");
    for (struct dirent *f; (f = readdir(dir)) != NULL;)
        files += f->d_name[0] != '.';
    closedir(dir);
    ck_assert_int_eq(files, 3);
    LsSaver again = {0};
    LsPlace at = {0};
    bool found;
    ck_assert(ls_saver_open(&again, "ck", 0, false, &e) && again.count == 3
              && again.update[0] == 8);
    ck_assert(ls_saver_load(&again, &m, &at, &found, &e) && found && at.update == 10);
    ls_memory_close(&m);
}
END_TEST

START_TEST(checkpoints_of_any_step_are_found_again)
{
    static const int64_t update[] = {1, 999999999, 1000000000, 123456789012345678};
    open_memory();
    for (int k = 0; k < 4; k++) {
        LsSaver s = {0}, again = {0};
        LsPlace at = {0};
        bool found;
        ck_assert(ls_saver_open(&s, "ck", 0, false, &e));
        ck_assert(ls_saver_save(&s, &m, &(LsPlace){.update = update[k]}, &e));
        ck_assert(ls_saver_open(&again, "ck", 0, false, &e));
        ck_assert_int_eq(again.count, k + 1);
        ck_assert(ls_saver_load(&again, &m, &at, &found, &e) && found && at.update == update[k]);
    }
    ls_memory_close(&m);
}
END_TEST

START_TEST(of_more_files_than_are_remembered_the_newest_are)
{
    enum { FILES = LS_KEEP + 40 };
    LsSaver s = {0};
    char path[64];
    open_memory();
    ck_assert_int_eq(system("mkdir ck"), 0);
    for (int k = 1; k <= FILES; k++) {
        snprintf(path, sizeof path, "ck/step-%09d.safetensors", k);
        write_bytes(path, "x", 1);
    }
    ck_assert(ls_saver_open(&s, "ck", 0, false, &e));
    ck_assert(ls_saver_save(&s, &m, &(LsPlace){.update = 1}, &e));
    ck_assert_int_eq(s.count, LS_KEEP);
    for (int k = 0; k < LS_KEEP; k++)
        ck_assert_int_eq(s.update[k], FILES - LS_KEEP + 1 + k);
    ls_memory_close(&m);
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        state_and_place_come_back,
        the_ledger_comes_back_and_cannot_be_changed,
        a_program_with_another_layout_reads_the_same_values,
        no_cut_and_no_flipped_byte_is_taken_for_sound,
        tensors_out_of_place_are_refused,
        another_program_is_refused_with_the_tensor_that_differs,
        names_that_the_format_keeps_for_itself_come_back,
        a_missing_tensor_is_named,
        a_tensor_outside_the_file_is_refused,
        the_header_is_json_that_others_read,
        a_full_disk_leaves_the_old_file_alone,
        only_the_last_ones_are_kept,
        checkpoints_of_any_step_are_found_again,
        of_more_files_than_are_remembered_the_newest_are,
    };
    return run_in_folder("checkpoint", sizeof test / sizeof test[0], test);
}
