/* runtime/privacy/renyi.h -- Renyi differential privacy of one private update.
 *
 * The update takes each sample with probability `rate` (Poisson sampling), clips its gradient to a
 * norm C, and adds normal noise of deviation noise * C to the sum. Neighbours are data sets of
 * which one has a sample more. */
#ifndef LS_RUNTIME_PRIVACY_RENYI_H
#define LS_RUNTIME_PRIVACY_RENYI_H

/* A smaller noise multiplier counts as none: its epsilon is above 5000 wherever samples are drawn
 * in full. */
#define LS_LEAST_NOISE 0.01

/* The Renyi divergence of one update.
 *   rate   from 0 to 1
 *   noise  at least 0: the multiplier
 *   order  above 1, whole or not
 * returns the divergence in nats, to 12 digits; INFINITY without noise, 0 where no sample is
 * drawn. */
double ls_renyi_update(double rate, double noise, double order);

#endif
