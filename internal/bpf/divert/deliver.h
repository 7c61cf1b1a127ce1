/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* deliver.h: what is for a socket of ours gets to it, although its address is another machine's. */
#ifndef SCAFFOLD_DIVERT_DELIVER_H
#define SCAFFOLD_DIVERT_DELIVER_H

#include "hold.h"

/* The kernel's states of TCP. */
#define STATE_TIME_WAIT 6
#define STATE_LISTEN 10

#define GO_ON 0x100 /* no verdict yet */

static __always_inline struct bpf_sock *socket_between(struct __sk_buff *skb, const struct ends *e, __u8 family)
{
	struct bpf_sock_tuple t = {};

	if (family == 4) {
		__builtin_memcpy(&t.ipv4.saddr, e->remote + 12, 4);
		__builtin_memcpy(&t.ipv4.daddr, e->local + 12, 4);
		__builtin_memcpy(&t.ipv4.sport, e->remote_port, 2);
		__builtin_memcpy(&t.ipv4.dport, e->local_port, 2);
		return bpf_skc_lookup_tcp(skb, &t, sizeof(t.ipv4), BPF_F_CURRENT_NETNS, 0);
	}
	__builtin_memcpy(&t.ipv6.saddr, e->remote, 16);
	__builtin_memcpy(&t.ipv6.daddr, e->local, 16);
	__builtin_memcpy(&t.ipv6.sport, e->remote_port, 2);
	__builtin_memcpy(&t.ipv6.dport, e->local_port, 2);
	return bpf_skc_lookup_tcp(skb, &t, sizeof(t.ipv6), BPF_F_CURRENT_NETNS, 0);
}

/* assign gives the packet to the socket. By the mark a rule of this port finds a table in which every address is local. */
static __always_inline int assign(struct __sk_buff *skb, struct bpf_sock *sk, __u32 mark, __u32 reason)
{
	long err = bpf_sk_assign(skb, sk, 0);

	bpf_sk_release(sk);
	if (err) {
		count(DIVERT_NOT_ASSIGNED);
		return TC_ACT_UNSPEC;
	}
	skb->mark = mark;
	count(reason);
	return TC_ACT_OK;
}

static __always_inline int is_first(const struct segment *s)
{
	return (s->flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK)) == TCP_SYN;
}

/* learn keeps what the other end says of itself in its SYN-ACK: no call of the kernel tells it later. */
static __always_inline void learn(struct __sk_buff *skb, const struct segment *s, struct session *own)
{
	struct options_read r = {};

	if (own->peer_known || (s->flags & (TCP_SYN | TCP_ACK | TCP_RST)) != (TCP_SYN | TCP_ACK))
		return;
	if (read_options(skb, s, &r) == OPTIONS_MALFORMED)
		return;
	own->peer = r.o;
	own->peer_known = 1;
}

/*
 * deliver is for segments of sessions. A listener is none of a session's sockets: a lookup ends there when no other socket
 * fits, and a wildcard fits every address. A socket that only waits for late segments is done with when a new connection
 * begins, boosted or not. A session without a socket is kept: the agent may be about to make one.
 */
static __always_inline int deliver(struct __sk_buff *skb, const struct segment *s, struct session *own,
				   const struct divert_config *c)
{
	struct bpf_sock *sk = socket_between(skb, &s->ends, s->family);
	int over = sk && sk->state == STATE_TIME_WAIT && (s->flags & TCP_SYN);

	if (!sk || over || sk->state == STATE_LISTEN) {
		if (sk)
			bpf_sk_release(sk);
		if (over)
			bpf_map_delete_elem(&sessions, &s->ends);
		if (!is_first(s))
			count(DIVERT_NO_SOCKET);
		return GO_ON;
	}
	learn(skb, s, own);
	return assign(skb, sk, c->mark, DIVERT_DELIVERED);
}

/* to_listener gives a held SYN to the agent's listener: the socket that answers has the server's address. */
static __always_inline int to_listener(struct __sk_buff *skb, const struct segment *s, const struct divert_config *c)
{
	struct ends at = {};

	at.local_port[0] = c->port >> 8;
	at.local_port[1] = c->port & 0xff;
	if (s->family == 4) {
		at.local[12] = 127;
		at.local[15] = 1;
	} else {
		at.local[15] = 1;
	}
	struct bpf_sock *sk = socket_between(skb, &at, s->family);

	if (!sk)
		return drop(DIVERT_NO_LISTENER);
	if (sk->state != STATE_LISTEN) {
		bpf_sk_release(sk);
		return drop(DIVERT_NO_LISTENER);
	}
	return assign(skb, sk, c->mark, DIVERT_ACCEPTED);
}

/* come_back is for a SYN that was held and that the agent has sent on its way again, by the port where it came. */
static __always_inline int come_back(struct __sk_buff *skb, const struct segment *s, const struct divert_config *c)
{
	struct held *h = bpf_map_lookup_elem(&holds, &s->ends);

	skb->mark = 0;
	if (!h) {
		count(DIVERT_NO_HOLD);
		return TC_ACT_UNSPEC;
	}
	__u8 hold = h->hold;

	bpf_map_delete_elem(&holds, &s->ends);
	return hold == HOLD_ACCEPTED ? to_listener(skb, s, c) : pass(s, DIVERT_PASSED);
}

#endif
