/* runtime/privacy/renyi.c -- the sampled Gaussian mechanism: Mironov, Talwar, Zhang 2019,
 * arXiv:1908.10530.
 *
 * The divergence of order a is log(A) / (a - 1). A is the mean of (1 + w)^a over normal numbers t,
 * with w = rate (e^u - 1) and u = t / noise - 1 / (2 noise^2). The paper sums A as a binomial
 * series for whole orders, and as two alternating series for others. The latter converge slowly for
 * large rates. Here the mean is an integral by the trapezoidal rule, for all orders alike.
 *
 * Cancellation: the mean of w is 0. So A - 1 is the mean of the excess (1 + w)^a - 1 - a w, which
 * is nowhere negative. Its sum loses no digits, even where A is 1 but for 1e-20.
 *
 * Step of the rule: the integrand is analytic for |Im t| < pi noise. There it is at most as large
 * as on the real line, but for the growth of the normal density. A step of min(1, noise) / 4 leaves
 * an error below e^-70.
 *
 * Limits: 1 + w is at most twice the larger of 1 - rate and rate e^u. Their powers times the
 * density are bell curves around 0 and around a / noise, and the integral of either is at most A.
 * Where both are farther than `reach`, the integrand is below 2^a e^(-reach^2 / 2) A = e^-45 A. */
#include "runtime/privacy/renyi.h"

#include <math.h>

/* log(1 + rate (e^u - 1)), also where e^u overflows */
static double log_ratio(double rate, double u)
{
    return u < 30 ? log1p(rate * expm1(u)) : u + log(rate) + log1p((1 - rate) / rate * exp(-u));
}

/* log of (1 + w)^order - 1 - order w; l is log(1 + w). A large w may be infinite. */
static double log_excess(double order, double w, double l)
{
    if (order * fabs(w) < 0.5) {        /* the terms of its binomial series shrink fast */
        double term = order * (order - 1) / 2 * w * w, sum = term;
        for (int k = 2; fabs(term) > 1e-17 * sum; k++) {
            term *= (order - k) / (k + 1) * w;
            sum += term;
        }
        return log(sum);
    }
    if (order * l < 1)
        return log(expm1(order * l) - order * w);
    return order * l + log(-expm1(log(order - (order - 1) * exp(-l)) - (order - 1) * l));
}

/* log(A - 1) */
static double log_mean_excess(double rate, double noise, double order)
{
    const double h = fmin(1, noise) / 4, peak = order / noise;
    const double reach = sqrt(2 * (45 + order * M_LN2));
    double most = -INFINITY, sum = 0;           /* the terms so far add up to sum * e^most */
    for (double k = ceil(-reach / h); k * h <= peak + reach; k++) {
        if (k * h > reach && k * h < peak - reach)
            k = ceil((peak - reach) / h);
        const double t = k * h, u = (t - 0.5 / noise) / noise;
        const double x = log_excess(order, rate * expm1(u), log_ratio(rate, u)) - t * t / 2;
        if (x > most) {
            sum *= exp(most - x);
            most = x;
        }
        sum += x > -INFINITY ? exp(x - most) : 0;
    }
    return most + log(sum * h) - 0.5 * log(2 * M_PI);
}

double ls_renyi_update(double rate, double noise, double order)
{
    if (rate <= 0)
        return 0;
    if (noise < LS_LEAST_NOISE)
        return INFINITY;
    if (rate >= 1)                      /* without sampling: the Gaussian mechanism */
        return order / (2 * noise * noise);
    const double x = log_mean_excess(rate, noise, order);
    return (x > 0 ? x + log1p(exp(-x)) : log1p(exp(x))) / (order - 1);
}
