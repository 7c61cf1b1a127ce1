/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * meter.h: how much the daemon is given of what others send, docs/protocol.md §6.7. Each kind has a budget in sum, since
 * who sends with made-up addresses has as many as he likes; and each sender has a credit, so that one of them cannot have
 * the budget alone. Senders are host numbers: 16 bits, so an array holds all of them, exactly. A map that evicts would give
 * who was evicted a new credit, and a flood of addresses evicts everybody.
 */
#ifndef SCAFFOLD_HOST_METER_H
#define SCAFFOLD_HOST_METER_H

#include "daemon.h"

#define CREDIT_NS 8000000000ULL /* of waiting that a sender may run up: a second's budget at once, then an eighth of it */

/* A second, and at once. The daemon checks about 10,000 signatures a second on one processor. */
#define UNSOLICITED_RATE 1000
#define UNRESOLVED_RATE 10000 /* what a whole instance's clients send when it dies */
#define ASKED_RATE 20000      /* the same clients confirm what they were offered, some of them twice */
#define FLOWS_RATE 20000      /* one message moves about twenty flows */

/* refill gives a meter what it has earned. CPUs that race let a few more through. */
static __always_inline void refill(struct meter *m, __u64 now, __u32 rate)
{
	__s64 since = now - m->at;

	if (since <= 1000000)
		return;
	if (since > 1000000000)
		since = 1000000000;
	m->at = now;
	m->tokens += since * rate / 1000000000;
	if (m->tokens > (__s32)rate)
		m->tokens = rate;
}

/* token takes one, if there is one. */
static __always_inline int token(struct meter *m, __u32 rate)
{
	refill(m, bpf_ktime_get_coarse_ns(), rate);
	if (m->tokens <= 0)
		return 0;
	m->tokens--;
	return 1;
}

/* credit_of finds the sender's. The host number is the last two bytes of the upper half, in network order. */
static __always_inline __u64 *credit_of(const struct addr *src)
{
	__u32 who = in_as(src) ? bpf_be64_to_cpu(src->hi) & (SOURCES - 1) : 0;

	return bpf_map_lookup_elem(&credits, &who);
}

/* charge: the generic cell rate algorithm (ITU-T I.371): one number is the whole state. */
static __always_inline int charge(__u64 *credit, __u64 now, __u64 cost)
{
	__u64 until = *credit > now ? *credit : now;

	if (until - now + cost > CREDIT_NS)
		return 0;
	*credit = until + cost;
	return 1;
}

/*
 * spend takes one of the kind's budget for the sender, or counts why not. While three quarters are left nobody is in need
 * and a credit does not matter: one host that fails over alone has all.
 */
static __noinline int spend(const struct addr *src, __u32 kind, __u32 rate, __u64 ring)
{
	__u64 now = bpf_ktime_get_coarse_ns(), *credit = credit_of(src);
	struct meter *m = bpf_map_lookup_elem(&budgets, &kind);
	int own;

	if (!m || !credit || unread() > ring) {
		count(HOST_METERED);
		return -1;
	}
	own = charge(credit, now, CREDIT_NS / rate);
	refill(m, now, rate);
	if (m->tokens <= 0) {
		count(HOST_METERED);
		return -1;
	}
	if (!own && m->tokens < (__s32)(rate / 4 * 3)) {
		count(HOST_METERED_SOURCE);
		return -1;
	}
	m->tokens--;
	return 0;
}

#endif
