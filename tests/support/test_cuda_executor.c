/* tests/support/test_cuda_executor.c -- the words of kernels for a GPU
 * (runtime/cuda_kernels/ls_cuda.h), executed thread by thread: each word works for blocks of every
 * shape and for ragged sizes, in any order of threads, and a kernel with undefined behaviour on a
 * GPU is distinguished from a correct kernel. */
#define LS_EXECUTOR
#include "tests/support/cuda_executor.h"
#include "tests/support/suite.h"

#include <stdlib.h>

enum { MOST = 3000, ORDERS = 4 };

static const struct { int x, y;
} shape[] = {
    {1, 1},   {2, 1}, {8, 1}, {16, 1}, {32, 1}, {64, 1},
    {256, 1}, {1, 4}, {2, 8}, {8, 4},  {16, 8}, {32, 8},
};
enum { SHAPES = sizeof shape / sizeof *shape };
static const int64_t sizes[] = {1,  2,  3,  4,   5,   7,   8,   12,   31,
                                32, 33, 64, 100, 255, 256, 257, 1000, 1028};
enum { SIZES = sizeof sizes / sizeof *sizes };

static const LsRun run = {.seed = 1, .lr = 0.5};

/* Runs a part in the requested shape instead of its own. */
static void launch(const ExecPart *part, int x, int y, int64_t units, void *const arg[])
{
    ExecPart p = *part;
    p.x = x;
    p.y = y;
    exec_launch(&p, units, &run, arg);
}

/* No error, and the comparison holds. (Each assertion of Check writes to a pipe, so there is one
 * for each case.) */
static void must(void)
{
    const char *error = exec_error();
    ck_assert_msg(error == NULL, "%s", error);
}

static void all_right(int64_t wrong, int s, int64_t n)
{
    ck_assert_msg(wrong == 0, "%lld wrong, size %lld, blocks of %d x %d", (long long)wrong,
                  (long long)n, shape[s].x, shape[s].y);
}

/* Numbers in [-1, 1). */
static void fill(real *x, int64_t n, int64_t id)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = 2 * ls_uniform(5, 0, id, i) - 1;
}

/* ---- loops ---- */
LS_PART(visit, 2, 1, 1)
{
    LS_UNITS;
    LS_IN(int64_t, size, 0);
    LS_OUT(int64_t, count, 1);
    for (int64_t u = lo; u < hi; u++) {
        int64_t *const to = count + u * 4 * MOST;
        LS_ROWS(j, 0, 1)
            LS_LANES(i, 3, 3 + size[0]) to[i]++;
        LS_ROWS(j, 0, 1)
            LS_LANES4(i, 4, 4 + size[0] / 4 * 4) to[MOST + i]++;
        LS_LANES(l, 0, 1)
            LS_ROWS(j, 5, 5 + size[0]) to[2 * MOST + j]++;
        LS_ONE to[3 * MOST]++;
        LS_ROWS(j, 0, 1)
            LS_LEAD to[3 * MOST + 1]++;
    }
}

START_TEST(loops_visit_every_step_of_every_unit_once)
{
    enum { UNITS = 3 };
    int64_t *count = malloc(UNITS * 4 * MOST * sizeof *count);
    for (int s = 0; s < SHAPES; s++)
        for (int k = 0; k < SIZES; k++) {
            int64_t n = sizes[k], fours = n / 4 * 4, wrong = 0;
            memset(count, 0, UNITS * 4 * MOST * sizeof *count);
            launch(&visit, shape[s].x, shape[s].y, UNITS, (void *[]){&n, count});
            must();
            for (int u = 0; u < UNITS; u++)
                for (int64_t i = 0; i < MOST; i++) {
                    const int64_t *at = count + u * 4 * MOST + i;
                    wrong += at[0] != (i >= 3 && i < 3 + n);
                    wrong += at[MOST] != (i >= 4 && i < 4 + fours);
                    wrong += at[2 * MOST] != (i >= 5 && i < 5 + n);
                    wrong += at[3 * MOST] != (i < 2);
                }
            all_right(wrong, s, n);
        }
    free(count);
}
END_TEST

/* ---- rows ---- */
enum { MAX, SUM, DOT, SQUARE, NORMAL, EXP, EXP_TO, RESULTS };

/* Each row of threads takes one row of numbers; every thread writes its result. */
LS_PART(reduce, 5, 1, 1)
{
    LS_UNITS;
    LS_IN(int64_t, size, 0);
    LS_IN(real, all_a, 1);
    LS_IN(real, all_b, 2);
    LS_OUT(real, all_y, 3);
    LS_OUT(double, got, 4);
    const int64_t n = size[0];
    LS_ROWS(j, lo * LS_Y, hi * LS_Y) {
        const real *const a = all_a + j * MOST, *const b = all_b + j * MOST;
        real *const y = all_y + j * MOST;
        double *const to = got + (j * 1024 + threadIdx.x) * RESULTS;
        to[MAX] = ls_row_max(a, n, 8);
        to[SUM] = ls_row_sum(a, n, 8);
        to[DOT] = ls_row_dot(a, b, n, 8);
        to[SQUARE] = ls_row_square(a, LS_R(0.25), n, 8);
        to[NORMAL] = ls_row_normal_dot(a, b, a, LS_R(0.5), LS_R(2), n, 8);
        to[EXP] = ls_row_exp(a, LS_R(0.125), n, 8);
        to[EXP_TO] = ls_row_exp_to(y, b, LS_R(1), n, 8);
        LS_LANES(i, 0, n) y[i] = (i == 0 ? 1 : 2) * y[i];   /* read by other threads than wrote
                                                             * it */
    }
}

static void expect(const real *a, const real *b, int64_t n, double want[RESULTS])
{
    memset(want, 0, RESULTS * sizeof *want);
    want[MAX] = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        want[MAX] = fmax(want[MAX], a[i]);
        want[SUM] += a[i];
        want[DOT] += (double)a[i] * b[i];
        want[SQUARE] += ((double)a[i] - 0.25) * (a[i] - 0.25);
        want[NORMAL] += (double)a[i] * b[i] * ((a[i] - 0.5) * 2);
        want[EXP] += exp(a[i] - 0.125);
        want[EXP_TO] += exp(b[i] - 1.);
    }
}

/* Each result near what it should be, and every thread has the same. */
static void check_rows(int s, int64_t n, const real *a, const real *b, const real *to,
                       const double *got)
{
    int64_t wrong = 0;
    for (int64_t j = 0; j < 2 * shape[s].y; j++) {
        double want[RESULTS];
        expect(a + j * MOST, b + j * MOST, n, want);
        for (int r = 0; r < RESULTS; r++)
            for (int t = 0; t < shape[s].x; t++) {
                const double *at = got + (j * 1024 + t) * RESULTS + r;
                wrong += !(fabs(*at - want[r]) <= 2e-6 * (double)(n < 8 ? 8 : n));
                wrong += *at != got[j * 1024 * RESULTS + r];
            }
        for (int64_t i = 0; i < n; i++)
            wrong +=
                !(fabs(to[j * MOST + i] - (i == 0 ? 1 : 2) * exp(b[j * MOST + i] - 1.)) < 1e-6);
    }
    all_right(wrong, s, n);
}

START_TEST(rows_are_reduced_alike_for_all_threads_in_any_order)
{
    int64_t room = 16 * MOST, results = 16 * 1024 * RESULTS;
    real *a = malloc(3 * (size_t)room * sizeof *a), *b = a + room, *to = b + room;
    double *got = malloc(2 * (size_t)results * sizeof *got), *again = got + results;
    fill(a, room, 1);
    fill(b, room, 2);
    for (int s = 0; s < SHAPES; s++)
        for (int k = 0; k < SIZES; k++)
            for (unsigned order = 0; order < ORDERS; order++) {
                double *now = order == 0 ? got : again;
                int64_t n = sizes[k];
                size_t bytes = (size_t)results * sizeof *got;
                if (order > 1 && k % 4 != s % 4)
                    continue;
                memset(now, 0xff, bytes);
                exec_order(order);
                launch(&reduce, shape[s].x, shape[s].y, 2, (void *[]){&n, a, b, to, now});
                must();
                if (order == 0)
                    check_rows(s, n, a, b, to, got);
                else
                    ck_assert(memcmp(got, again, bytes) == 0);
            }
    exec_order(0);
    free(a);
    free(got);
}
END_TEST

LS_PART(lanes, 3, 1, 1)
{
    LS_UNITS;
    LS_IN(int64_t, size, 0);
    LS_IN(real, x, 1);
    LS_OUT(double, got, 2);
    LS_LOCAL_ROWS(real, lane, 256, 8);
    LS_ROWS(j, lo, lo + LS_Y) {
        LS_LANES(l, 0, size[0]) lane[l] = x[j * 256 + l];
        const double first = ls_sum_lanes(lane, size[0]);
        LS_LANES(l, 0, size[0]) lane[l] *= 2;
        got[2 * (j * 1024 + threadIdx.x)] = first;
        got[2 * (j * 1024 + threadIdx.x) + 1] = ls_sum_lanes(lane, size[0]);
    }
}

START_TEST(running_values_are_summed_to_the_bits_of_the_cpu)
{
    real x[8 * 256];
    double *got = malloc(8 * 2048 * sizeof *got);
    fill(x, 8 * 256, 3);
    for (int s = 0; s < SHAPES; s++)
        for (int64_t n = 1; n <= 256; n *= 2) {
            exec_order((unsigned)n % 3);
            launch(&lanes, shape[s].x, shape[s].y, 1, (void *[]){&n, x, got});
            must();
            int64_t wrong = 0;
            for (int j = 0; j < shape[s].y; j++) {
                double t[256];
                for (int64_t l = 0; l < n; l++)
                    t[l] = x[j * 256 + l];
                for (int64_t half = n / 2; half > 0; half /= 2)
                    for (int64_t l = 0; l < half; l++)
                        t[l] += t[l + half];
                for (int i = 0; i < shape[s].x; i++) {
                    wrong += got[2 * (j * 1024 + i)] != t[0];
                    wrong += got[2 * (j * 1024 + i) + 1] != 2 * t[0];
                }
            }
            all_right(wrong, s, n);
        }
    exec_order(0);
    free(got);
}
END_TEST

/* ---- copies ---- */
LS_PART(copy, 3, 1, 1)
{
    LS_UNITS;
    LS_IN(int64_t, at, 0);
    LS_IN(uint8_t, x, 1);
    LS_OUT(uint8_t, y, 2);
    LS_ROWS(j, lo, lo + LS_Y)
        LS_COPY(y + j * 512 + at[0], x + j * 512 + at[1], at[2]);
}

START_TEST(copies_move_what_they_are_told_wherever_it_lies)
{
    static const int64_t off[] = {0, 1, 4, 8, 16, 18};
    _Alignas(16) uint8_t x[8 * 512], y[8 * 512];
    for (int i = 0; i < 8 * 512; i++)
        x[i] = (uint8_t)(i * 7 + i / 256);
    for (int s = 0; s < SHAPES; s++)
        for (int a = 0; a < 6; a++)
            for (int b = 0; b < 6; b++)
                for (int64_t n = 0; n < 300; n = n * 3 + 1 + a % 2 * 3) {
                    memset(y, 0, sizeof y);
                    launch(&copy, shape[s].x, shape[s].y, 1,
                           (void *[]){(int64_t[]){off[a], off[b], n}, x, y});
                    must();
                    int64_t wrong = 0;
                    for (int64_t i = 0; i < 512 * shape[s].y; i++) {
                        bool in = i % 512 >= off[a] && i % 512 < off[a] + n;
                        wrong += y[i] != (in ? x[i - off[a] + off[b]] : 0);
                    }
                    all_right(wrong, s, n);
                }
}
END_TEST

LS_PART(turn, 7, 1, 1)
{
    LS_UNITS;
    LS_IN(int64_t, n, 0);
    LS_IN(uint8_t, x8, 1);
    LS_IN(uint32_t, x32, 2);
    LS_IN(uint64_t, x64, 3);
    LS_OUT(uint8_t, y8, 4);
    LS_OUT(uint32_t, y32, 5);
    LS_OUT(uint64_t, y64, 6);
    ls_transpose8(y8, n[2], x8, n[3], n[0], n[1]);
    ls_transpose32(y32, n[2], x32, n[3], n[0], n[1]);
    ls_transpose64(y64, n[2], x64, n[3], n[0], n[1]);
}

START_TEST(blocks_transpose_ragged_rectangles_of_any_element)
{
    static const int64_t sides[] = {1, 5, 31, 32, 33, 64, 70};
    enum { ROOM = 80 * 80 };
    uint64_t *x = calloc(6 * ROOM, sizeof *x), *y64 = x + ROOM;
    uint32_t *x32 = (uint32_t *)(x + 2 * ROOM), *y32 = (uint32_t *)(x + 3 * ROOM);
    uint8_t *x8 = (uint8_t *)(x + 4 * ROOM), *y8 = (uint8_t *)(x + 5 * ROOM);
    for (int i = 0; i < ROOM; i++) {
        x[i] = (uint64_t)i * 0x100000001 + 1;
        x32[i] = (uint32_t)i * 65537 + 1;
        x8[i] = (uint8_t)(i % 251 + 1);
    }
    for (int s = 0; s < SHAPES; s++)
        for (int k = 0; k < 49; k++) {
            int64_t rows = sides[k / 7], cols = sides[k % 7];
            if (shape[s].x * shape[s].y < 16 && k % 8 != 0)
                continue;
            memset(y64, 0, ROOM * 8);
            memset(y32, 0, ROOM * 4);
            memset(y8, 0, ROOM);
            exec_order((unsigned)k % 3);
            launch(&turn, shape[s].x, shape[s].y, 1,
                   (void *[]){(int64_t[]){rows, cols, 71, 75}, x8, x32, x, y8, y32, y64});
            must();
            int64_t wrong = 0;
            for (int64_t c = 0; c < 80; c++)
                for (int64_t r = 0; r < 71; r++) {
                    bool in = r < rows && c < cols;
                    wrong += y64[c * 71 + r] != (in ? x[r * 75 + c] : 0);
                    wrong += y32[c * 71 + r] != (in ? x32[r * 75 + c] : 0);
                    wrong += y8[c * 71 + r] != (in ? x8[r * 75 + c] : 0);
                }
            all_right(wrong, s, rows);
        }
    exec_order(0);
    free(x);
}
END_TEST

/* ---- ranks ---- */
LS_PART(ranks, 4, 32, 16)
{
    LS_UNITS;
    LS_IN(int64_t, size, 0);
    LS_IN(int32_t, key, 1);
    LS_OUT(int32_t, order, 2);
    LS_OUT(int32_t, sorted, 3);
    ls_rank(order, sorted, key, size[0], lo);
}

static bool stands_before(const int32_t *key, int64_t a, int64_t b)
{
    return key[a] != key[b] ? key[a] < key[b] : a < b;
}

START_TEST(keys_are_ranked_and_the_same_ones_by_place)
{
    static const double most[] = {1, 7, 500, INT32_MAX - 128};
    static int32_t key[MOST], order[MOST + 1], sorted[MOST + 1];
    for (int k = 0; k < SIZES; k++)
        for (int y = 1; y <= 32; y *= 2) {
            int64_t n = sizes[k], wrong = 0;
            for (int64_t i = 0; i < n; i++)
                key[i] = (int32_t)(ls_uniform(5, 0, 1, i) * most[(k + y) % 4]);
            if (n > 3 && (k + y) % 4 == 3)
                key[1] = INT32_MAX - 1, key[3] = 0;
            memset(order, 0xff, sizeof order);
            memset(sorted, 0xff, sizeof sorted);
            exec_order((unsigned)(k + y) % 3);
            launch(&ranks, 32, y, (n + 31) / 32, (void *[]){&n, key, order, sorted});
            must();
            for (int64_t r = 0; r < n; r++) {
                wrong += order[r] < 0 || order[r] >= n || sorted[r] != key[order[r]];
                wrong += r > 0 && !stands_before(key, order[r - 1], order[r]);
            }
            wrong += order[n] != -1 || sorted[n] != -1;
            ck_assert_msg(wrong == 0, "%lld wrong of %lld, %d rows", (long long)wrong, (long long)n,
                          y);
        }
    exec_order(0);
}
END_TEST

/* ---- products on tensor cores ---- */
enum { DEEP = 21, PIECES = 3, WIDE = 24 };     /* 16 y rows of DEEP; tiles of WIDE rows */

/* y = x w^T, z = y w, by the instruction or by shuffles, the latter of the first products alone. */
LS_PART(multiply, 5, 32, 2)
{
    LS_UNITS;
    LS_IN(real, x, 0);
    LS_IN(real, w, 1);
    LS_OUT(real, y, 2);
    LS_OUT(real, z, 3);
    LS_OUT(real, other, 4);
    LS_LOCAL(real, tile, WIDE * LS_TILE_ROW(PIECES));
    const int64_t rows = 16 * LS_Y - 3;
    real a[4 * PIECES], c[4 * PIECES] = {0}, d[4 * PIECES] = {0}, e[4] = {0};
    for (int64_t u = lo; u < hi; u++) {
        ls_mma_rows(a, x, DEEP, rows, DEEP, PIECES, LS_R(0.5));
        ls_mma_tile(tile, w, DEEP, WIDE - 1, WIDE, DEEP, PIECES);
        LS_SYNC;
        ls_mma_by_rows(c, a, tile, PIECES, WIDE / 8);
        ls_mma_put(y, WIDE, rows, WIDE - 1, c, WIDE / 8);
        ls_mma_by_columns(d, c, tile, PIECES, WIDE / 8);
        ls_mma_put(z, DEEP, rows, DEEP, d, PIECES);
        for (int k = 0; k < PIECES; k++) {
            const int row = (int)threadIdx.x / 4, at = row * LS_TILE_ROW(PIECES) + 8 * k;
            const real b[2] = {tile[at + threadIdx.x % 4], tile[at + threadIdx.x % 4 + 4]};
            ls_mma_shuffled(e, a + 4 * k, b);
        }
        ls_mma_put(other, 8, rows, 8, e, 1);
    }
}

START_TEST(warps_multiply_what_lies_in_rows_and_what_is_a_product_itself)
{
    enum { Y = 2, ROWS = 16 * Y - 3, LAST = WIDE - 1 };
    _Alignas(16) real x[ROWS * DEEP], w[LAST * DEEP];
    real y[(ROWS + 1) * WIDE], z[(ROWS + 1) * DEEP], other[ROWS * 8];
    fill(x, ROWS * DEEP, 4);
    fill(w, LAST * DEEP, 5);
    for (unsigned order = 0; order < ORDERS; order++) {
        memset(y, 0, sizeof y);
        memset(z, 0, sizeof z);
        exec_order(order);
        launch(&multiply, 32, Y, 1, (void *[]){x, w, y, z, other});
        must();
        int64_t wrong = 0;
        for (int i = 0; i < ROWS; i++) {
            double row[LAST] = {0};
            for (int j = 0; j < LAST; j++) {
                for (int k = 0; k < DEEP; k++)
                    row[j] += (double)ls_tf32(x[i * DEEP + k] / 2) * ls_tf32(w[j * DEEP + k]);
                wrong += !(fabs(row[j] - y[i * WIDE + j]) < 1e-6);
                wrong += j < 8 && !(fabs(row[j] - other[i * 8 + j]) < 1e-6);
            }
            for (int k = 0; k < DEEP; k++) {
                double sum = 0;
                for (int j = 0; j < LAST; j++)
                    sum += (double)ls_tf32(y[i * WIDE + j]) * ls_tf32(w[j * DEEP + k]);
                wrong += !(fabs(sum - z[i * DEEP + k]) < 3e-6);
            }
            wrong += y[i * WIDE + LAST] != 0;
        }
        for (int k = 0; k < WIDE; k++)
            wrong += y[ROWS * WIDE + k] != 0 || (k < DEEP && z[ROWS * DEEP + k] != 0);
        ck_assert_int_eq(wrong, 0);
    }
    exec_order(0);
}
END_TEST

START_TEST(factors_are_rounded_to_ten_bits_halves_away_from_zero)
{
    const float bit = ldexpf(1, -10), half = bit / 2;
    ck_assert_float_eq(ls_tf32(1 + half), 1 + bit);
    ck_assert_float_eq(ls_tf32(-1 - half), -1 - bit);
    ck_assert_float_eq(ls_tf32(1 + bit + half), 1 + 2 * bit);
    ck_assert_float_eq(ls_tf32(1 + half * 0.999f), 1);
    ck_assert_float_eq(ls_tf32(2 - half / 2), 2);
    ck_assert_float_eq(ls_tf32(0), 0);
    ck_assert_float_eq(ls_tf32(-INFINITY), -INFINITY);
    ck_assert(isnan(ls_tf32(ls_float32(0x7fffffff))));
}
END_TEST

/* ---- memory of the block ---- */
LS_PART(local, 1, 32, 4)
{
    LS_UNITS;
    LS_OUT(double, y, 0);
    LS_LOCAL(real, a, 3);
    LS_LOCAL_ROWS(int64_t, b, 5, 4);
    LS_ONE {
        y[2 * lo] = a[1];
        y[2 * lo + 1] = (double)b[4];
    }
    LS_SYNC;
    LS_ONE a[1] = 1;
    LS_ROWS(j, 0, 4) LS_LEAD b[4] = 10 * j;
    LS_SYNC;
    LS_ROWS(first, 0, 1) {
        int64_t sum = 0;
        LS_FOLD(k, 4) sum += LS_OF_ROW(b, k)[4];
        LS_LEAD y[2 * lo + 1] += (double)sum + a[1];
    }
}

START_TEST(memory_of_a_block_starts_as_no_number_and_rows_have_their_own)
{
    double y[6];
    launch(&local, 32, 4, 3, (void *[]){y});
    must();
    for (int u = 0; u < 3; u++) {
        ck_assert(isnan(y[2 * u]));
        ck_assert(y[2 * u + 1] == -1 + 10 + 20 + 30 + 1);
    }
}
END_TEST

/* ---- wrong kernels ---- */
/* The numbers in reverse, through shared memory; without the barrier, the contents so far. */
#define REVERSE(name, barrier)                                                                     \
    LS_PART(name, 2, 64, 1)                                                                        \
    {                                                                                              \
        LS_UNITS;                                                                                  \
        LS_IN(real, x, 0);                                                                         \
        LS_OUT(real, y, 1);                                                                        \
        LS_LOCAL(real, t, 100);                                                                    \
        LS_LANES(i, 0, 100) t[i] = x[lo * 100 + i];                                                \
        barrier;                                                                                   \
        LS_LANES(i, 0, 100) y[lo * 100 + i] = t[99 - i];                                           \
    }
REVERSE(reverse, LS_SYNC)
REVERSE(hasty, (void)0)

/* Runs it in several orders: true, if the results are the same. */
static bool steady(const ExecPart *part, int x)
{
    real from[200], y[ORDERS][200];
    fill(from, 200, 4);
    bool same = true;
    for (unsigned order = 0; order < ORDERS; order++) {
        exec_order(order);
        launch(part, x, 1, 2, (void *[]){from, y[order]});
        must();
        same &= memcmp(y[0], y[order], sizeof *y) == 0;
    }
    exec_order(0);
    return same;
}

START_TEST(a_missing_barrier_shows_as_the_order_changes)
{
    for (int x = 2; x <= 256; x *= 2) {
        ck_assert(steady(&reverse, x));
        ck_assert(!steady(&hasty, x));
    }
    ck_assert(steady(&hasty, 1));
}
END_TEST

LS_PART(leaves, 1, 64, 1)
{
    LS_UNITS;
    LS_OUT(real, y, 0);
    if (lo == 2 && threadIdx.x == 40)
        return;
    LS_SYNC;
    LS_ONE y[0] = 1;
}

LS_PART(parts_ways, 1, 64, 1)
{
    LS_UNITS;
    LS_OUT(real, y, 0);
    if (threadIdx.x < 32)
        LS_SYNC;
    else
        LS_SYNC;
    LS_ONE y[0] = 1;
}

LS_PART(half_a_row, 1, 16, 2)
{
    LS_UNITS;
    LS_OUT(real, y, 0);
    real sum = 0;
    if (threadIdx.x < 8)
        sum = (real)ls_row_sum(y, 4, 1);
    LS_ONE y[0] = sum;
}

LS_PART(long_rows, 1, 64, 2)
{
    LS_UNITS;
    LS_OUT(real, y, 0);
    LS_ROW_SYNC;
    LS_ONE y[0] = 1;
}

LS_PART(too_many_lanes, 1, 8, 1)
{
    LS_UNITS;
    LS_OUT(real, y, 0);
    __syncwarp(0xffffu);
    LS_ONE y[0] = 1;
}

LS_PART(stranger, 1, 8, 1)
{
    LS_UNITS;
    LS_OUT(real, y, 0);
    __syncwarp(0x0fu);
    LS_ONE y[0] = 1;
}

LS_PART(reaches_out, 1, 8, 4)
{
    LS_UNITS;
    LS_OUT(real, y, 0);
    y[0] = __shfl_xor_sync(ls_row_mask(8), (real)threadIdx.x, 8);
}

LS_PART(not_rounded, 1, 32, 1)
{
    LS_UNITS;
    LS_OUT(real, y, 0);
    real c[4] = {0}, a[4] = {1, 1, 1, LS_R(0.1)}, b[2] = {1, 1};
    ls_mma(c, a, b);
    y[0] = c[0];
}

LS_PART(half_a_warp, 1, 32, 1)
{
    LS_UNITS;
    LS_OUT(real, y, 0);
    real c[4] = {0}, a[4] = {0}, b[2] = {0};
    if (threadIdx.x < 16)
        ls_mma(c, a, b);
    y[0] = c[0];
}

static void told(const ExecPart *part, const char *what, const char *how)
{
    _Alignas(16) real y[4] = {0};
    for (unsigned order = 0; order < 3; order++) {
        exec_order(order);
        exec_launch(part, 3, &run, (void *[]){y});
        const char *error = exec_error();
        ck_assert_ptr_nonnull(error);
        ck_assert_msg(strstr(error, part->name) == error, "%s", error);
        ck_assert_msg(strstr(error, what) != NULL && strstr(error, how) != NULL, "%s", error);
    }
    exec_order(0);
    ck_assert(steady(&reverse, 64));    /* kernels run as before */
}

START_TEST(a_barrier_that_not_all_threads_reach_is_an_error)
{
    told(&leaves, "block 2: thread (0, 0) waits for the block", "thread (40, 0) has ended");
    told(&parts_ways, "block 0: thread (0, 0) waits for the block", "thread (32, 0) waits");
    told(&half_a_row, "waits for lanes", "has ended");
    told(&long_rows, "block 0", "is trapped");
    told(&too_many_lanes, "waits for lanes 0000ffff", "which are not all there");
    told(&stranger, "waits for lanes 0000000f", "not one of them");
    told(&reaches_out, "to shuffle", "takes from a lane beyond");
    told(&half_a_warp, "to multiply", "has ended");
}
END_TEST

START_TEST(a_factor_that_is_not_rounded_is_an_error)
{
    told(&not_rounded, "to multiply", "a factor that is not TF32");
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        loops_visit_every_step_of_every_unit_once,
        rows_are_reduced_alike_for_all_threads_in_any_order,
        running_values_are_summed_to_the_bits_of_the_cpu,
        copies_move_what_they_are_told_wherever_it_lies,
        blocks_transpose_ragged_rectangles_of_any_element,
        keys_are_ranked_and_the_same_ones_by_place,
        warps_multiply_what_lies_in_rows_and_what_is_a_product_itself,
        factors_are_rounded_to_ten_bits_halves_away_from_zero,
        memory_of_a_block_starts_as_no_number_and_rows_have_their_own,
        a_missing_barrier_shows_as_the_order_changes,
        a_barrier_that_not_all_threads_reach_is_an_error,
        a_factor_that_is_not_rounded_is_an_error,
    };
    TCase *tc = tcase_create("cuda_executor");
    tcase_set_timeout(tc, 120);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("cuda_executor", tc);
}
