/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* again.h: the choice for a packet that was returned, resolve.Table.Choose in C, bit for bit; docs/protocol.md §3.2. */
#ifndef SCAFFOLD_ROUTER_AGAIN_H
#define SCAFFOLD_ROUTER_AGAIN_H

#include "../include/csum.h"
#include "choice.h"

enum { ALL_OUT = TORN + 1, MORE, LAST };

/* What draws before have chosen. In a map: it is too large for the stack. */
struct again {
	struct table_key key;
	__u64 k;
	__u64 id;
	__u64 chosen_weight; /* of id */
	__u64 locator[MAX_RETRY];
	__u64 mixed[MAX_RETRY];
	__u64 weight[MAX_RETRY];
	__u32 n;
	__u32 refuser; /* host numbers, 0: not of this draw: who returned the packet last, and above it who of the silent came last */
	struct bucket bucket; /* here, not among the buckets: that map may be a former version's, which has no room for it */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct again);
} agains SEC(".maps");

/* below says whether the locator whose mix this is belongs to the child node. */
static __always_inline int below(__u64 mixed, __u64 child)
{
	__u64 depth = child & 15, shift = (64 - 4 * depth) & 63;

	return (mixed >> shift << shift | depth) == child;
}

/*
 * left is what of an entry's weight is not left out. Like step it is a global function, as are all below that call each
 * other in loops: the verifier would look at each of 16 * 9 * 16 * 15 rounds.
 */
__noinline __u64 left(struct again *a, __u64 id, __s64 weight, __u32 child, __u32 shift)
{
	if (!a)
		return 0;
	__u32 host = id & 0xffff;

	if (!child && host && (host == (a->refuser & 0xffff) || host == a->refuser >> 16))
		return 0;
	for (__u32 i = 0; i < MAX_RETRY; i++) {
		if (i >= a->n)
			break;
		if (child ? below(a->mixed[i], id) : a->locator[i] == id) {
			__s64 out = a->weight[i] >> (shift & 63);

			weight -= out ?: 1;
		}
	}
	return weight > 0 ? weight : 0;
}

/* step_again is step among those that are not left out. */
__noinline int step_again(struct again *a)
{
	__u64 best_cost = 0, best_weight = 0;
	__u32 child = 0;

	if (!a)
		return NO_NODE;
	struct table_key key = a->key;
	struct table_node *n = bpf_map_lookup_elem(&tables, &key);

	if (!n)
		return NO_NODE;
	if (!n->count)
		return NO_WEIGHT;
	for (__u32 i = 0; i < FANOUT; i++) {
		if (i >= n->count)
			break;
		__u64 weight = left(a, n->id[i], n->weight[i], n->children >> i & 1, n->shift);

		if (!weight)
			continue;
		__u64 this = cost(mix(a->k ^ n->id[i]));

		if (best_weight && this * best_weight >= best_cost * weight)
			continue;
		a->id = n->id[i];
		a->chosen_weight = (__u64)n->weight[i] << (n->shift & 63);
		child = n->children >> i & 1;
		best_cost = this;
		best_weight = weight;
	}
	if (!best_weight)
		return ALL_OUT;
	return child ? CHILD : CHOSEN;
}

__noinline int descend_again(struct again *a)
{
	if (!a)
		return NO_NODE;
	a->key.node = 0;
	for (int depth = 0; depth <= MAX_DEPTH; depth++) {
		int result = step_again(a);

		if (result == NO_NODE && depth)
			return TORN;
		if (result != CHILD)
			return result;
		a->key.node = a->id;
	}
	return TORN;
}

/* leave_out keeps draws that follow from what this one chose. */
static __always_inline void leave_out(struct again *a)
{
	__u32 n = a->n;

	if (n >= MAX_RETRY)
		return;
	a->locator[n] = a->id;
	a->mixed[n] = mix(a->id);
	a->weight[n] = a->chosen_weight;
	a->n = n + 1;
}

/* draw begins anew once all were drawn. Inlined as pick_again is: Linux 6.1 has no room for their frames. */
static __always_inline int draw(struct again *a)
{
	int result = descend_again(a);

	if (result == TORN)
		result = descend_again(a);
	if (result == ALL_OUT) {
		a->n = 0;
		result = descend_again(a);
	}
	return result;
}

/* is_silent believes the daemon as long as it lives: who answers again while it is away would be passed by. */
static __always_inline int is_silent(__u64 locator)
{
	__u64 *until = bpf_map_lookup_elem(&silent, &locator);

	return until && bpf_ktime_get_coarse_ns() < *until;
}

/*
 * The packet's own draw, where that is of a silent host. No later draw of the loop below keeps the last of its locators; the
 * map may be a former version's and cannot grow, and Linux 6.1 has no room on the stack.
 */
#define OWN(a) ((a)->locator[MAX_RETRY - 1])

#define DRAW_SHIFT 8 /* of the draw in a result where it is not the packet's own */

/*
 * next_draw makes one of pick_again's draws, the i-th: MORE where another one follows, LAST where no other can. A global
 * function: on each way through that loop the verifier would look at it again, 157,000 instructions of 277,000.
 */
__noinline int next_draw(struct again *a, __u64 high, __u64 low, __u32 label, __u32 i)
{
	__u32 retry = label & MAX_RETRY;

	if (!a)
		return NO_NODE;
	if (i == retry)
		a->refuser = label >> RETRY_BITS;
	a->k = hash(high, low, i);
	int result = draw(a);

	if (result != CHOSEN)
		return i <= retry ? result : LAST;
	if (i >= retry) {
		if (!is_silent(a->id))
			return i > retry ? CHOSEN | i << DRAW_SHIFT : CHOSEN;
		if (i == retry)
			OWN(a) = a->id;
		if (i >= MAX_RETRY - 1) /* the last is for who was asked by itself, docs/protocol.md §3.5 */
			return LAST;
		a->refuser = (a->refuser & 0xffff) | a->id << 16;
	}
	leave_out(a);
	return MORE;
}

/*
 * pick_again makes the draws before again, and then that of the packet; where that is of a silent host those behind it, as if
 * the host had returned the packet, too. Who did return it is left out of those as well. Where nobody is left the silent host
 * gets it: the prober may be late, or the host be back. The source is in host order.
 */
static __always_inline int pick_again(struct again *a, __u64 high, __u64 low, __u32 label)
{
	OWN(a) = 0;
	a->n = 0;
	a->refuser = 0;
	for (__u32 i = 0; i <= MAX_RETRY; i++) {
		int result = next_draw(a, high, low, label, i);

		if (result == LAST)
			break;
		if (result != MORE)
			return result;
	}
	a->id = OWN(a);
	return a->id ? CHOSEN : TORN;
}

#endif
