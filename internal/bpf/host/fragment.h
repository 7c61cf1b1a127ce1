/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* fragment.h: later fragments have no ports; on the way out they follow their first one, also to another uplink. */
#ifndef SCAFFOLD_HOST_FRAGMENT_H
#define SCAFFOLD_HOST_FRAGMENT_H

#include "csum.h"
#include "uplink.h"

static __always_inline void fragment_key(struct fragment_key *k, const struct packet *p)
{
	ADDR(k->src) = p->src;
	ADDR(k->dst) = p->dst;
	*(__u32 *)k->id = p->fragment_id;
}

/* remember_fragment notes what becomes of a datagram; p still holds the socket's addresses. */
static __noinline int remember_fragment(const struct packet *p, const struct addr *src, const struct addr *dst,
					__u32 word, __u8 slot)
{
	struct fragment_key k __attribute__((aligned(8))) = {};
	struct fragment f __attribute__((aligned(8))) = { .word = word, .slot = slot };

	fragment_key(&k, p);
	ADDR(f.src) = *src;
	ADDR(f.dst) = *dst;
	return bpf_map_update_elem(&fragments, &k, &f, BPF_ANY);
}

static __noinline int later_fragment(struct __sk_buff *skb, struct packet *p, const struct place *place)
{
	struct fragment_key k __attribute__((aligned(8))) = {};
	struct addr src, dst;
	struct fragment *f;
	__u32 slot;

	fragment_key(&k, p);
	f = bpf_map_lookup_elem(&fragments, &k);
	if (!f)
		return drop(HOST_FRAGMENT);
	src = ADDR(f->src);
	dst = ADDR(f->dst);
	slot = f->slot;
	if (set_word(skb, l2_len, p, f->word) || rewrite(skb, l2_len, p, &src, &dst))
		return drop(HOST_REWRITE);
	return by_slot(skb, place, slot);
}

#endif
