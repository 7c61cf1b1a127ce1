/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hold.h: a SYN in a lane is held until the agent decides, or goes on. */
#ifndef SCAFFOLD_DIVERT_HOLD_H
#define SCAFFOLD_DIVERT_HOLD_H

#include "../include/drop.h"
#include "lane.h"

/* pass sends a SYN on unboosted, for good: sent again it is not held either. */
static __always_inline int pass(const struct segment *s, __u32 reason)
{
	bpf_map_update_elem(&passed, &s->ends, &s->seq, BPF_ANY);
	count(reason);
	return TC_ACT_UNSPEC;
}

static __always_inline int agent_heard(const struct divert_config *c, __u64 now)
{
	__u32 zero = 0;
	__u64 *last = bpf_map_lookup_elem(&beat, &zero);

	return last && now - *last < c->stale;
}

/* held_already is about a SYN of a connection one of whose SYNs is held. */
static __always_inline int held_already(const struct segment *s, const struct held *h, const struct divert_config *c, __u64 now)
{
	int late = now - h->at > c->hold;

	if (!late && agent_heard(c, now))
		return drop(DIVERT_HELD_AGAIN);
	bpf_map_delete_elem(&holds, &s->ends);
	return pass(s, late ? DIVERT_PASSED_LATE : DIVERT_PASSED_AWAY);
}

/* tell gives the agent what it needs to know of a SYN, and the frame. */
static __always_inline int tell(struct __sk_buff *skb, const struct segment *s, const struct options *o, __u64 lane, __u64 now)
{
	struct held_syn *e = bpf_ringbuf_reserve(&syns, sizeof(*e), 0);
	__u32 len = skb->len;

	if (!e)
		return -1;
	if (len < ETH_HLEN || len > FRAME_MAX || bpf_skb_load_bytes(skb, 0, e->frame, len)) {
		bpf_ringbuf_discard(e, 0);
		return -1;
	}
	e->at = now;
	e->lane = lane;
	e->ends = s->ends;
	e->options = *o;
	e->ifindex = skb->ifindex;
	e->length = len;
	bpf_ringbuf_submit(e, 0);
	return 0;
}

/* hold_syn holds a SYN that fits a lane. The map's size is the limit. */
static __always_inline int hold_syn(struct __sk_buff *skb, const struct segment *s, const struct options *o, __u64 lane, __u64 now)
{
	struct held h = { .at = now, .sequence = s->seq, .ifindex = skb->ifindex };
	long err = bpf_map_update_elem(&holds, &s->ends, &h, BPF_NOEXIST);

	if (err == -17) /* EEXIST: another CPU was first */
		return drop(DIVERT_HELD_AGAIN);
	if (err)
		return pass(s, DIVERT_PASSED_FULL);
	if (tell(skb, s, o, lane, now)) {
		bpf_map_delete_elem(&holds, &s->ends);
		return pass(s, DIVERT_PASSED_UNREAD);
	}
	return drop(DIVERT_HELD);
}

static __always_inline int goes_on(__u32 reason)
{
	count(reason);
	return TC_ACT_UNSPEC;
}

/* arriving_syn decides about a SYN that is of no session. */
static __always_inline int arriving_syn(struct __sk_buff *skb, const struct segment *s, const struct divert_config *c)
{
	struct held *h = bpf_map_lookup_elem(&holds, &s->ends);
	__u64 now = bpf_ktime_get_ns(), lane;
	struct options_read r = {};

	if (h && !s->fragment)
		return held_already(s, h, c, now);
	if (!find_lane(s, &lane))
		return TC_ACT_UNSPEC;
	if (s->fragment)
		return goes_on(DIVERT_PASSED_FRAGMENT);
	int read = read_options(skb, s, &r);

	if (read == OPTIONS_PROTECTED)
		return goes_on(DIVERT_PASSED_PROTECTED);
	if (read != OPTIONS_READ)
		return goes_on(DIVERT_PASSED_MALFORMED);
	if (skb->len > FRAME_MAX)
		return goes_on(DIVERT_PASSED_LONG);
	__u32 *before = bpf_map_lookup_elem(&passed, &s->ends);

	if (before && *before == s->seq)
		return goes_on(DIVERT_PASSED_AGAIN);
	if (!agent_heard(c, now))
		return pass(s, DIVERT_PASSED_AWAY);
	return hold_syn(skb, s, &r.o, lane, now);
}

#endif
