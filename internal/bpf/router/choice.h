/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* choice.h: internal/core/resolve in C, bit for bit; docs/protocol.md §3.2. */
#ifndef SCAFFOLD_ROUTER_CHOICE_H
#define SCAFFOLD_ROUTER_CHOICE_H

#include "log2.h"
#include "maps.h"

#define GOLDEN 0x9E3779B97F4A7C15ULL

static __always_inline __u64 mix(__u64 x)
{
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ULL;
	x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
	return x ^ x >> 31;
}

/* hash takes the source address in host order. */
static __always_inline __u64 hash(__u64 high, __u64 low, __u32 retry)
{
	return mix(high ^ mix(low + GOLDEN * (retry + 1)));
}

static __always_inline __u32 leading_zeros(__u64 h)
{
	__u32 n = 0;

	if (!(h >> 32)) { n += 32; h <<= 32; }
	if (!(h >> 48)) { n += 16; h <<= 16; }
	if (!(h >> 56)) { n += 8; h <<= 8; }
	if (!(h >> 60)) { n += 4; h <<= 4; }
	if (!(h >> 62)) { n += 2; h <<= 2; }
	if (!(h >> 63)) { n += 1; }
	return n;
}

/*
 * cost is -log2(h / 2^64), 32 fraction bits. Like step it is a global function: the verifier then looks at it
 * once, not for each way that leads to it.
 */
__noinline __u64 cost(__u64 h)
{
	if (!h)
		h = 1;
	__u32 zeros = leading_zeros(h);
	__u64 m = h << zeros;
	__u32 i = m >> 53 & 1023;
	__u32 low = log2_table[i];
	__u32 step = log2_table[i + 1] - low;

	return ((__u64)(zeros + 1) << 32) - low - ((__u64)step * (m >> 21 & 0xffffffff) >> 32);
}

enum { NO_NODE, NO_WEIGHT, CHILD, CHOSEN, TORN };

/* A choice under way: at the node of key; after step, id is the entry that was chosen there. */
struct choice {
	struct table_key key;
	__u64 k;
	__u64 id;
};

/*
 * step is the weighted rendezvous of one node: the least cost per weight wins. What is kept of the best is what it has, not
 * its place: the verifier would follow each place to the end, and loading takes as long.
 */
__noinline int step(struct choice *c)
{
	__u64 best_cost = 0;
	__u32 child = 0, best_weight = 0;

	if (!c)
		return NO_NODE;
	struct table_key key = c->key; /* kernels before 6.2 take no key from a global function's argument */
	struct table_node *n = bpf_map_lookup_elem(&tables, &key);

	if (!n)
		return NO_NODE;
	if (!n->count)
		return NO_WEIGHT;
	for (__u32 i = 0; i < FANOUT; i++) {
		if (i >= n->count)
			break;
		__u64 this = cost(mix(c->k ^ n->id[i]));

		if (i && this * best_weight >= best_cost * n->weight[i])
			continue;
		c->id = n->id[i];
		child = n->children >> i & 1;
		best_cost = this;
		best_weight = n->weight[i];
	}
	return child ? CHILD : CHOSEN;
}

/* descend walks from the root to an instance. */
static __always_inline int descend(struct choice *c)
{
	c->key.node = 0;
	for (int depth = 0; depth <= MAX_DEPTH; depth++) {
		int result = step(c);

		if (result == NO_NODE && depth)
			return TORN;
		if (result != CHILD)
			return result;
		c->key.node = c->id;
	}
	return TORN;
}

/* pick tries twice: a child may go between its parent's lookup and its own, and then the parent is new. */
static __always_inline int pick(struct choice *c)
{
	int result = descend(c);

	return result == TORN ? descend(c) : result;
}

#endif
