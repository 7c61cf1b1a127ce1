/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * mark.h: numbers that the daemon gave out and that come back to it, docs/protocol.md §6.7. The upper half of one is a
 * keyed hash of the lower and of whom it was for, so that the edge knows it again and nothing is kept. core/flow.Mark is
 * the oracle.
 */
#ifndef SCAFFOLD_HOST_MARK_H
#define SCAFFOLD_HOST_MARK_H

#include "flow.h"

/* The last word of what is hashed. That of a cookie, cookie.h, has zeroes above bit 44. */
#define MARK_OFFER ((1ULL << 63) | 1) /* a socketID, offered to a client that fails over; for its address */
#define MARK_NONCE ((1ULL << 63) | 2) /* of a PROBE to a host, which may answer from another place: for nobody */

/* marked says whether the number, in network order, is one of ours. Who guesses is right once in 2^31. */
static __noinline int marked(__u64 number, const struct addr *peer, __u64 purpose)
{
	__u32 zero = 0;
	struct host_config *c = bpf_map_lookup_elem(&config, &zero);
	__u64 n = bpf_be64_to_cpu(number);
	__u64 words[4] = { peer->hi, peer->lo, n & 0xffffffff, purpose };

	return c && (n >> 32 & 0x7fffffff) == siphash4(c->secret[0], c->secret[1], words) >> 33;
}

#endif
