#!/usr/bin/env python3
"""Makes tests/runtime/privacy_table.txt: what others compute of private training.

    python3 -m venv ENV && ENV/bin/pip install dp-accounting==0.6.0 mpmath
    ENV/bin/python tests/runtime/privacy_table.py >tests/runtime/privacy_table.txt

`bound` rows are epsilons of dp_accounting. Its RdpAccountant adds up absolute values of the
alternating series for orders that are not whole, and leaves out orders whose series does not
converge within 1000 terms: its epsilon is then larger than the orders allow. Such rows say `loose`
instead of `near`. Each row also has the epsilon of the PLDAccountant, which is larger than the true
one by little: no sound bound by Renyi divergences is below it.

`renyi` rows are divergences of one update by mpmath: binomial sums for whole orders, quadrature for
others, 30 digits.
"""
import dp_accounting
from absl import logging as absl_logging
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.rdp import rdp_privacy_accountant
from mpmath import binomial, exp, log, mp, mpf, pi, quad, sqrt

absl_logging.set_verbosity(absl_logging.ERROR)
mp.dps = 30

# Sampling rate, noise multiplier, updates, delta.
NEAR = [(rate, noise, steps, 1e-5)
        for rate, steps in ((0.0001, 10000), (0.001, 20000), (0.004, 15000), (0.01, 10000))
        for noise in (0.7, 1.0, 1.3, 2.0, 4.0) if noise > 0.7 or rate < 0.004]
NEAR += [(0.01, 1.1, 10000, delta) for delta in (1e-3, 1e-4, 1e-6, 1e-8, 1e-12)]
NEAR += [(256 / 60000, 1.1, 234 * epochs, 1e-5) for epochs in (1, 5, 15, 30, 60)]
NEAR += [(512 / 50000, 1.5, 98 * epochs, 1e-5) for epochs in (1, 10, 40, 100)]
NEAR += [(2048 / 1281167, 0.8, 626 * epochs, 1e-6) for epochs in (1, 10, 50)]
NEAR += [(0.02, 1.0, steps, 1e-5) for steps in (1, 10, 100, 1000)]
NEAR += [(0.0539, 1.54, 2582, 3.5e-6), (0.05, 2.0, 500, 1e-5), (0.1, 3.0, 200, 1e-6),
         (0.2, 5.0, 100, 1e-5), (0.5, 20.0, 50, 1e-5), (0.9, 30.0, 20, 1e-7)]
NEAR += [(0.001, 0.5, 100, 1e-5), (0.00001, 0.6, 100000, 1e-7), (0.000001, 1.0, 1000000, 1e-9),
         (0.01, 50.0, 1000, 1e-5), (0.01, 1000.0, 100, 1e-5)]
NEAR += [(1.0, noise, steps, 1e-5) for noise, steps in ((0.5, 1), (1.0, 1), (2.0, 10), (10.0, 100),
                                                        (100.0, 1000))]
LOOSE = [(0.004, 0.7, 15000, 1e-5), (0.01, 0.7, 10000, 1e-5), (0.02, 1.0, 3000, 1e-5),
         (0.12, 1.97, 3134, 6.5e-6),
         (0.216, 1.24, 12, 6.1e-4), (0.485, 8.1, 17034, 4e-5), (0.01, 0.4, 1000, 1e-5),
         (0.5, 1.0, 100, 1e-5)]

RENYI = [(rate, noise, order) for rate in (1e-6, 0.004, 0.3, 0.95) for noise in (0.4, 1.1, 30.0)
         for order in (1.1, 2.0, 3.7, 10.9, 64.0)]
RENYI += [(rate, 0.1, order) for rate in (0.004, 0.3, 0.95) for order in (1.1, 1.9, 5.5)]
# Of loose rows.
RENYI += [(0.004, 0.7, 3.6), (0.01, 0.7, 2.4), (0.12, 1.97, 2.2), (0.485, 8.1, 1.6),
          (0.5, 1.0, 1.7)]


def event(rate, noise, steps):
    one = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    return dp_accounting.SelfComposedDpEvent(one, steps)


def bound(rate, noise, steps, delta, word):
    rdp = rdp_privacy_accountant.RdpAccountant()
    rdp.compose(event(rate, noise, steps))
    epsilon, order = rdp.get_epsilon_and_optimal_order(delta)
    pld = pld_privacy_accountant.PLDAccountant()
    pld.compose(event(rate, noise, steps))
    least = pld.get_epsilon(delta)
    print(f"bound {rate!r} {noise!r} {steps} {delta!r} {epsilon:.9g} {order:g} {least:.6g} {word}",
          flush=True)


def renyi(rate, noise, order):
    q, s, a = mpf(rate), mpf(noise), mpf(order)
    if order == int(order):
        mean = sum(binomial(a, k) * q**k * (1 - q) ** (a - k) * exp((k * k - k) / (2 * s * s))
                   for k in range(int(a) + 1))
    else:
        points = [-18 + k for k in range(int(36 + a / s) + 2)]
        bend = s * log(1 / q - 1) + 1 / (2 * s)
        points = sorted(points
                        + [p for p in (bend - 2 * s, bend, bend + 2 * s) if -18 < p < points[-1]])
        mean = quad(lambda t: exp(-t * t / 2) * (1 - q + q * exp(t / s - 1 / (2 * s * s))) ** a,
                    points) / sqrt(2 * pi)
    print(f"renyi {rate!r} {noise!r} {order!r} {mp.nstr(log(mean) / (a - 1), 15)}", flush=True)


print("# Made by tests/runtime/privacy_table.py with dp_accounting 0.6.0; do not edit.")
print("# bound RATE NOISE UPDATES DELTA EPSILON ORDER PLD-EPSILON near|loose")
print("# renyi RATE NOISE ORDER DIVERGENCE")
for row in NEAR:
    bound(*row, "near")
for row in LOOSE:
    bound(*row, "loose")
for row in RENYI:
    renyi(*row)
