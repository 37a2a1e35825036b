/* scheduler/bounds/cut_line.c -- see the header. */
#include "scheduler/bounds/cut_line.h"

#include <math.h>

enum { FINE = 12, DIGITS = 53 };        /* bits of the fraction of a grain; of a double */

typedef struct Wide { uint64_t high, low; } Wide;       /* high * 2^64 + low */

static Wide times(uint64_t a, uint64_t b)
{
    const uint64_t half = UINT32_MAX;
    uint64_t low = (a & half) * (b & half), cross = (a >> 32) * (b & half) + (low >> 32);
    uint64_t other = (a & half) * (b >> 32) + (cross & half);
    return (Wide){(a >> 32) * (b >> 32) + (cross >> 32) + (other >> 32),
                  (other << 32) | (low & half)};
}

/* Writes x / 2^shift, rounded up or down; returns false if it is 2^62 or more. shift >= -63. */
static bool shifted(Wide x, int shift, bool up, int64_t *to)
{
    const uint64_t most = UINT64_C(1) << 62;
    bool rest = false;
    if (shift >= 128) {
        rest = x.high != 0 || x.low != 0;
        x = (Wide){0, 0};
    } else if (shift >= 64) {
        rest = x.low != 0 || (shift > 64 && x.high << (128 - shift) != 0);
        x = (Wide){0, x.high >> (shift - 64)};
    } else if (shift > 0) {
        rest = x.low << (64 - shift) != 0;
        x = (Wide){x.high >> shift, x.low >> shift | x.high << (64 - shift)};
    } else if (shift < 0) {
        if (x.high != 0 || x.low >> (64 + shift) != 0)
            return false;
        x.low <<= -shift;
    }
    if (x.high != 0 || x.low >= most)
        return false;
    *to = (int64_t)(x.low + (rest && up));
    return true;
}

/* Writes price * bytes in 2^-FINE grains, rounded up; returns false on overflow. */
static bool pay(double price, int64_t bytes, int64_t *to)
{
    int power;
    uint64_t digits = (uint64_t)ldexp(frexp(price, &power), DIGITS);
    uint64_t many = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    int shift = DIGITS - power - FINE;
    if (shift < -63 || !shifted(times(digits, many), shift, bytes > 0, to))
        return digits == 0 || many == 0;
    *to = bytes < 0 ? -*to : *to;
    return true;
}

/* Returns x / 2^FINE, rounded down. */
static int64_t whole(int64_t x)
{
    const int64_t unit = INT64_C(1) << FINE;
    return x / unit - (x % unit < 0);
}

static int64_t size_of(int64_t x) { return x < 0 ? -x : x; }

double ls_bound_line_at(const LsBoundNet *net, const LsBoundLine *line, int64_t budget)
{
    const double nothing = -0x1p62;
    const int64_t most = INT64_C(1) << 60, unit = INT64_C(1) << FINE;
    int64_t paid = 0;
    for (uint32_t k = 0; k < net->nsep; k++) {
        int64_t more = 0;
        if (!pay(line->price[k], budget - net->fixed[k], &more) || size_of(more) > most
            || size_of(paid += more) > most)
            return nothing;
    }
    if (size_of(line->value) > most / unit)
        return nothing;
    int64_t x = line->value * unit - paid;
    int64_t slack = unit + (size_of(x) / 2 + size_of(paid) / 2) / (INT64_C(1) << 47) + 1;
    return (double)whole(x - slack);
}
