/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* daemon.h: packets on which the daemon must act. */
#ifndef SCAFFOLD_HOST_DAEMON_H
#define SCAFFOLD_HOST_DAEMON_H

#include "flow.h"

#define HEARTBEAT_LIMIT 1000000000ULL /* ns */
#define RING_LIMIT (3 << 18)          /* unread bytes: the daemon is stuck */

/* daemon_reads says whether what we hand over will be looked at soon. */
static __always_inline int daemon_reads(__u64 now)
{
	__u32 zero = 0;
	struct host_config *c = bpf_map_lookup_elem(&config, &zero);

	return c && now - c->heartbeat < HEARTBEAT_LIMIT && bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < RING_LIMIT;
}

/* hand_over gives the IPv6 packet to the daemon. 0: it has it; -1: it does not read, or the ring is full. */
static __noinline int hand_over(struct __sk_buff *skb, const struct flow_key *key, const __u32 *isn, __u64 id,
				__u32 kind_code)
{
	__u32 zero = 0, len = skb->len - l2_len;
	__u64 now = bpf_ktime_get_ns();
	struct event_buffer *e = bpf_map_lookup_elem(&scratch, &zero);

	if (!e || !daemon_reads(now)) {
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
	e->head.kind = kind_code >> 8;
	e->head.code = kind_code;
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

#define METER_RATE 1000       /* events a second that strangers may cause, and how many at once */
#define UNRESOLVED_RATE 10000 /* the same, of unresolved RSYNs: what a whole instance's clients send when it dies */

/* token takes one, if there is one. */
static __always_inline int token(struct meter *m, __u32 rate)
{
	__u64 now = bpf_ktime_get_coarse_ns(), since = now - m->at;

	if (since > 1000000) {
		since = since > 1000000000 ? 1000000000 : since;
		m->at = now;
		m->tokens += since * rate / 1000000000;
		if (m->tokens > (__s32)rate)
			m->tokens = rate;
	}
	if (m->tokens <= 0)
		return 0;
	m->tokens--;
	return 1;
}

/* spend takes a token, or counts that there is none. */
static __noinline int spend(__u32 which, __u32 rate)
{
	struct meter *m = bpf_map_lookup_elem(&meters, &which);

	if (m && token(m, rate))
		return 0;
	count(HOST_METERED);
	return -1;
}

/* hold gives a refusal of a connecting flow to the daemon, or to the kernel at once. */
static __always_inline int hold(struct __sk_buff *skb, const struct ingress_flow *f, __u64 id, __u8 code)
{
	if (hand_over(skb, &f->key, (const __u32 *)f->isn, id, EVENT_REFUSED << 8 | code))
		return deliver(f->key.guest);
	return drop(HOST_HELD);
}

#endif
