/* tests/test_npy.c -- NPY and NPZ files are read as NumPy writes them, and damaged ones are
 * refused. */
#include "tests/npz_util.h"

#include <string.h>

static LsError e;

/* An NPY file in memory: version, header text, data. */
static size_t make(unsigned char *to, int version, const char *header, const void *data, size_t n)
{
    size_t len = strlen(header), at = version == 1 ? 10 : 12;
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (unsigned char)version;
    memset(to + 7, 0, 5);
    to[8] = (unsigned char)len;
    memcpy(to + at, header, len);
    memcpy(to + at + len, data, n);
    return at + len + n;
}

static bool reads(LsArray *a, int version, const char *header, const void *data, size_t n)
{
    static unsigned char file[1024];
    e = (LsError){0};
    size_t size = make(file, version, header, data, n);
    return ls_npy_read(a, file, size, "test.npy", &e);
}

START_TEST(every_element_type_is_converted)
{
    LsArray a;
    float f[] = {1.5f, -2};
    double d[] = {1e300, -3};
    int64_t l[] = {-5, (int64_t)1 << 40};
    int32_t i[] = {-6, 7};
    ck_assert(
        reads(&a, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", f, sizeof f));
    ck_assert_double_eq(ls_array_real(&a, 1), -2);
    ck_assert(
        reads(&a, 2, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", d, sizeof d));
    ck_assert_double_eq(ls_array_real(&a, 0), 1e300);
    ck_assert_int_eq(ls_array_int(&a, 1), -3);
    ck_assert(
        reads(&a, 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", l, sizeof l));
    ck_assert_int_eq(ls_array_int(&a, 1), (int64_t)1 << 40);
    ck_assert(
        reads(&a, 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", i, sizeof i));
    ck_assert_int_eq(ls_array_int(&a, 0), -6);
    ck_assert(
        reads(&a, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "\xff\0\1", 3));
    ck_assert_int_eq(ls_array_int(&a, 0), 255);
    ck_assert(
        reads(&a, 1, "{'descr': '|i1', 'fortran_order': False, 'shape': (3,), }", "\xff\0\1", 3));
    ck_assert_int_eq(ls_array_int(&a, 0), -1);
    ck_assert(
        reads(&a, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\7\0\1", 3));
    ck_assert_int_eq(ls_array_int(&a, 0), 1);
    ck_assert(reads(&a, 1, "{'descr': '>i2', 'fortran_order': False, 'shape': (1,), }", "\1\2", 2));
    ck_assert_int_eq(ls_array_int(&a, 0), 258);
    ck_assert(reads(&a, 1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
                    "\x3f\xc0\0\0", 4));
    ck_assert_double_eq(ls_array_real(&a, 0), 1.5);
}
END_TEST

START_TEST(scalars_and_empty_arrays_have_a_shape)
{
    LsArray a;
    float f = 3;
    ck_assert(reads(&a, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", &f, 4));
    ck_assert_int_eq(a.rank, 0);
    ck_assert_int_eq(a.count, 1);
    ck_assert(reads(&a, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5), }", &f, 0));
    ck_assert_int_eq(a.count, 0);
}
END_TEST

START_TEST(headers_that_cannot_be_used_are_refused)
{
    static const struct { const char *header, *part;
    } bad[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }",
         "truncated: shape 9 takes 36"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }", "Fortran"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "'<c8' is not read"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "not read"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "not read"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "impossible shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,", "impossible shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }",
         "impossible"},
        {"{'descr': '<f4', 'shape': (1,1,1,1,1,1,1,1,1), }", "impossible shape"},
        {"{'descr': '<f4'}", "no shape"},
        {"{}", "not read"},
        {"{'descr': ", "not read"},
        {"{'descr': '<", "not read"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        LsArray a;
        ck_assert_msg(!reads(&a, 1, bad[k].header, "01234567", 8), "%s", bad[k].header);
        ck_assert_int_eq(e.code, LS_EXIT_DATA);
        ck_assert_msg(strstr(e.text, bad[k].part) != NULL, "%s\n%s", bad[k].header, e.text);
    }
}
END_TEST

static void write_sample(const char *path)
{
    float f[6] = {1, 2, 3, 4, 5, 6};
    int64_t l[2] = {7, -8};
    write_npz(path, 3, (NpzItem[]){{"in/x", LS_F32, 2, {2, 3}, f}, {"label", LS_I64, 1, {2}, l},
                                   {"loss", LS_F32, 0, {0}, f}});
}

START_TEST(an_archive_gives_back_what_was_written)
{
    LsFile f;
    LsArray a;
    bool found;
    char names[64];
    e = (LsError){0};
    write_sample("a.npz");
    ck_assert(ls_file_map(&f, "a.npz", &e));
    ck_assert(ls_npz_find(&f, "label", &a, &found, &e) && found);
    ck_assert(a.type == LS_I64 && a.rank == 1 && a.dim[0] == 2);
    ck_assert_int_eq(ls_array_int(&a, 1), -8);
    ck_assert(ls_npz_find(&f, "in/x", &a, &found, &e) && found);
    ck_assert(a.rank == 2 && a.dim[1] == 3 && ls_array_real(&a, 5) == 6);
    ck_assert(ls_npz_find(&f, "x", &a, &found, &e) && !found);
    ls_npz_names(&f, names, sizeof names);
    ck_assert_str_eq(names, "in/x, label, loss");
    ck_assert_uint_eq(ls_npz_count(&f), 3);
    ck_assert(ls_npz_at(&f, 1, names, 4, &a, &found, &e) && found);
    ck_assert_str_eq(names, "lab");
    ck_assert(a.type == LS_I64 && ls_array_int(&a, 0) == 7);
    ck_assert(ls_npz_at(&f, 3, names, sizeof names, &a, &found, &e) && !found);
    ls_file_unmap(&f);
}
END_TEST

START_TEST(numpy_reads_our_archives_and_we_read_its)
{
    static const char script[] =
        "import numpy as np\n"
        "z = np.load('a.npz')\n"
        "assert z['in/x'].shape == (2, 3) and z['in/x'].dtype == np.float32, z['in/x']\n"
        "assert z['in/x'].sum() == 21 and z['label'].tolist() == [7, -8] and z['loss'].shape == "
        "()\n"
        "np.savez('b.npz', x=np.arange(5, dtype=np.int32), y=np.ones((2, 2)))\n"
        "np.savez_compressed('c.npz', x=np.zeros(1000))\n";
    LsFile f;
    LsArray a;
    bool found;
    e = (LsError){0};
    write_sample("a.npz");
    write_bytes("t.py", script, sizeof script - 1);
    if (system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) {
        printf("skipped: no NumPy to compare with\n");
        return;
    }
    ck_assert_int_eq(system("/usr/bin/python3 t.py"), 0);
    ck_assert(ls_file_map(&f, "b.npz", &e));
    ck_assert_msg(ls_npz_find(&f, "x", &a, &found, &e) && found, "%s", e.text);
    ck_assert_int_eq(ls_array_int(&a, 4), 4);
    ls_file_unmap(&f);
    ck_assert(ls_file_map(&f, "c.npz", &e));
    ck_assert(!ls_npz_find(&f, "x", &a, &found, &e));
    ck_assert_ptr_nonnull(strstr(e.text, "not savez_compressed"));
    ls_file_unmap(&f);
}
END_TEST

/* Any cut and any flipped byte gives the right values, a clear error, or "not there": never a
 * crash. */
START_TEST(damaged_archives_never_crash)
{
    LsFile f;
    LsArray a;
    bool found;
    e = (LsError){0};
    write_sample("a.npz");
    ck_assert(ls_file_map(&f, "a.npz", &e));
    for (size_t n = 0; n < f.size; n++) {
        unsigned char *copy = malloc(f.size);
        memcpy(copy, f.data, f.size);
        LsFile cut = {"cut", copy, n}, flipped = {"flipped", copy, f.size};
        e = (LsError){0};
        ck_assert(!ls_npz_find(&cut, "label", &a, &found, &e));
        ck_assert_int_eq(e.code, LS_EXIT_DATA);
        for (int bit = 0; bit < 8; bit++) {
            e = (LsError){0};
            copy[n] ^= (unsigned char)(1 << bit);
            if (ls_npz_find(&flipped, "label", &a, &found, &e) && found)
                ck_assert(ls_array_int(&a, 0) == 7 && ls_array_int(&a, 1) == -8);
            copy[n] ^= (unsigned char)(1 << bit);
        }
        free(copy);
    }
    ls_file_unmap(&f);
}
END_TEST

int main(void)
{
    const TTest *test[] = {every_element_type_is_converted, scalars_and_empty_arrays_have_a_shape,
                           headers_that_cannot_be_used_are_refused,
                           an_archive_gives_back_what_was_written,
                           numpy_reads_our_archives_and_we_read_its, damaged_archives_never_crash};
    return run_in_folder("npy", 6, test);
}
