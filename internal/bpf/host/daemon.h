/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* daemon.h: packets on which the daemon must act. */
#ifndef SCAFFOLD_HOST_DAEMON_H
#define SCAFFOLD_HOST_DAEMON_H

#include "flow.h"

#define HEARTBEAT_LIMIT 1000000000ULL /* ns */

/*
 * Unread bytes of a ring of 1 << 20. At RING_LIMIT the daemon counts as stuck, and moves and failovers go on without it:
 * so what others send, or local programs cause, must end before, and what nobody asked for before what flows need.
 */
#define RING_LIMIT (12 << 16)
#define RING_REFUSALS (11 << 16)
#define RING_MESSAGES (10 << 16)
#define RING_UNSOLICITED (6 << 16)

static __always_inline __u64 unread(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
}

/* daemon_lives says whether the daemon has read lately. What comes again by itself may wait until there is room for it. */
static __always_inline int daemon_lives(__u64 now)
{
	__u32 zero = 0;
	struct host_config *c = bpf_map_lookup_elem(&config, &zero);

	return c && now - c->heartbeat < HEARTBEAT_LIMIT;
}

/* daemon_reads says whether what we hand over will be looked at soon. */
static __always_inline int daemon_reads(__u64 now)
{
	return daemon_lives(now) && unread() < RING_LIMIT;
}

/*
 * hand_over gives the IPv6 packet to the daemon. 0: it has it; -1: it does not read, or the ring is full. The word says
 * from the lowest byte up code, kind and, in two, who refused.
 */
static __noinline int hand_over(struct __sk_buff *skb, const struct flow_key *key, const __u32 *isn, __u64 id,
				__u32 word)
{
	__u32 zero = 0, len = skb->len - l2_len;
	__u64 now = bpf_ktime_get_ns();
	struct event_buffer *e = bpf_map_lookup_elem(&scratch, &zero);
	__u8 kind = word >> 8;

	if (!e || !daemon_reads(now) || (kind == EVENT_REFUSED && unread() > RING_REFUSALS)) {
		count(HOST_DAEMON_AWAY);
		return -1;
	}
	if (len > EVENT_DATA)
		len = EVENT_DATA;
	barrier_var(len); /* the checked register is the one that is used: Linux 6.1 does not know that another holds the same */
	if (len < IP6_LEN || len > EVENT_DATA || bpf_skb_load_bytes(skb, l2_len, e->data, len))
		return -1;
	__builtin_memset(&e->head, 0, sizeof(e->head));
	e->head.at = now;
	e->head.ifindex = skb->ifindex;
	e->head.len = len;
	e->head.kind = kind;
	e->head.code = word;
	e->head.refuser = word >> 16;
	if (key)
		e->head.key = *key;
	if (isn)
		*(__u32 *)e->head.isn = *isn;
	*(__u64 *)e->head.socket = id;
	if (bpf_ringbuf_output(&events, e, sizeof(e->head) + len, 0)) {
		count(HOST_DAEMON_AWAY);
		return -1;
	}
	return 0;
}

/* tell gives the daemon the dead flow; within a second again only where the first time failed. */
static __noinline int tell(struct __sk_buff *skb, const struct ingress_flow *in, struct egress_flow *f)
{
	__u8 now = (bpf_ktime_get_coarse_ns() >> 30 & 0xff) ?: 1;

	if (f->told == now)
		return 0;
	if (hand_over(skb, &in->key, 0, *(__u64 *)f->socket, EVENT_DIED << 8))
		return -1;
	f->told = now;
	return 0;
}

/* hold gives a refusal of a connecting flow, by the host of that number, 0: by no host, to the daemon, or to the kernel at once. */
static __always_inline int hold(struct __sk_buff *skb, const struct ingress_flow *f, __u64 id, __u32 code, __u32 host)
{
	if (hand_over(skb, &f->key, (const __u32 *)f->isn, id, host << 16 | EVENT_REFUSED << 8 | code))
		return deliver(f->key.guest);
	return drop(HOST_HELD);
}

#endif
