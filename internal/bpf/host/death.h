/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* death.h: a server's process is gone, and its kernel ends the connections that it left, docs/protocol.md §3.6. */
#ifndef SCAFFOLD_HOST_DEATH_H
#define SCAFFOLD_HOST_DEATH_H

#include "adopt.h"
#include "ask.h"
#include "dying.h"
#include "uplink.h"

/* Where the kernel keeps what a socket belongs to: nothing, before accept() and after the last close. */
struct socket;
struct sock {
	struct socket *sk_socket;
} __attribute__((preserve_access_index));
struct inet_sock {
	struct sock sk;
} __attribute__((preserve_access_index));
struct inet_connection_sock {
	struct inet_sock icsk_inet;
} __attribute__((preserve_access_index));
struct tcp_sock {
	struct inet_connection_sock inet_conn;
} __attribute__((preserve_access_index));

/*
 * cut_off: the process behind the socket died, and the kernel ends its connection as if all had been said. What
 * was sent before still goes out; then, in the place of the FIN, an RST. A FIN that shares its segment with data
 * is only taken away: when the data has been acknowledged the kernel sends it again, alone.
 */
static __noinline int cut_off(struct __sk_buff *skb, struct packet *p)
{
	__u16 was, now;
	__u32 end;

	if (bpf_skb_load_bytes(skb, p->l4 + 12, &was, 2))
		return -1;
	end = p->l4 + (bpf_ntohs(was) >> 12) * 4;
	now = was & ~bpf_htons(TCP_FIN | TCP_PSH);
	if (skb->len <= end)
		now |= bpf_htons(TCP_RST);
	p->flags = bpf_ntohs(now);
	count(HOST_CUT_OFF);
	if (bpf_l4_csum_replace(skb, p->l4 + 16, was, now, 2))
		return -1;
	return bpf_skb_store_bytes(skb, p->l4 + 12, &now, 2, BPF_F_RECOMPUTE_CSUM);
}

/* payload is how much of the segment is data. */
static __always_inline __u32 payload(struct __sk_buff *skb, const struct packet *p)
{
	__u8 words;

	if (bpf_skb_load_bytes(skb, p->l4 + 12, &words, 1))
		return 0;
	return skb->len - p->l4 - (words >> 4) * 4;
}

/* drained says whether the peer has acknowledged all before seq, as far as the socket of the packet knows. */
static __always_inline int drained(struct __sk_buff *skb, __u32 seq)
{
	struct bpf_sock *sk = skb->sk;
	struct bpf_tcp_sock *tcp;

	sk = sk ? bpf_sk_fullsock(sk) : 0;
	tcp = sk ? bpf_tcp_sock(sk) : 0;
	return tcp && (__s32)(tcp->snd_una - seq) >= 0;
}

/*
 * abandoned: an RST from no socket or from the listener, or from a socket that no program holds: of a connection
 * that nobody has ended yet. The process died a moment ago on another CPU, or before it accepted the connection.
 */
static __noinline int abandoned(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *tcp;

	if (!sk || sk->state == BPF_TCP_LISTEN)
		return 1;
	tcp = bpf_skc_to_tcp_sock(sk);
	return tcp && !tcp->inet_conn.icsk_inet.sk.sk_socket;
}

/*
 * passed_on takes the end of a dead process's connection away, and the daemon hears of it once all that the process
 * sent has arrived: the flow goes on elsewhere. A process may have ten thousand, which die in a moment: for more of
 * them than the ring has room for there is time until the kernel sends the FIN again. An RST it does not: the daemon
 * looks for such flows itself, when it has read what there is. TC_ACT_UNSPEC: send what is left of the packet.
 */
static __noinline int passed_on(struct __sk_buff *skb, struct packet *p, struct egress_flow *f)
{
	__u32 data = payload(skb, p), fin = bpf_ntohl(p->seq) + data;
	__u64 id = *(__u64 *)f->socket;
	struct ingress_flow *in = bpf_map_lookup_elem(&ingress_flows, &id);

	if (!in)
		return TC_ACT_UNSPEC;
	f->watch |= WATCH_DRAIN;
	if (p->flags & TCP_RST) {
		if (!tell(skb, in, f))
			return swallow(HOST_DIED);
		if (!daemon_lives(bpf_ktime_get_ns()))
			return TC_ACT_UNSPEC;
		f->watch |= WATCH_UNTOLD;
		return swallow(HOST_UNTOLD);
	}
	*(__u32 *)in->isn = bpf_htonl(fin);
	in->watch |= WATCH_DRAIN;
	if (data || (drained(skb, fin) && tell(skb, in, f) && !daemon_lives(bpf_ktime_get_ns())))
		return cut_off(skb, p) ? drop(HOST_REWRITE) : TC_ACT_UNSPEC;
	return swallow(HOST_DIED);
}

/* ending looks at a server's FIN or RST. TC_ACT_UNSPEC: it leaves. */
static __noinline int ending(struct __sk_buff *skb, struct packet *p, struct egress_flow *f)
{
	struct policy *policy = bpf_map_lookup_elem(&policies, &p->src);
	int dead = sender_mark(skb) == MARK_DYING || f->watch & WATCH_DRAIN;

	if (f->state == STATE_BLOCKED)
		return TC_ACT_UNSPEC;
	if (policy && policy->continues && daemon_lives(bpf_ktime_get_ns())) {
		if (!dead && p->flags & TCP_RST && !(f->end & (END_FIN_OUT | END_RST)))
			dead = abandoned(skb);
		if (dead)
			return passed_on(skb, p, f);
	}
	if (dead && p->flags & TCP_FIN && cut_off(skb, p))
		return drop(HOST_REWRITE);
	return TC_ACT_UNSPEC;
}

/* drain looks at what arrives for a dead process: the acknowledgement of all that it sent is the end. */
static __noinline int drain(struct __sk_buff *skb, const struct packet *p, struct ingress_flow *f)
{
	struct egress_flow *out = bpf_map_lookup_elem(&egress_flows, &f->key);

	if (!out || *(__u64 *)out->birth != *(__u64 *)f->birth || !(p->flags & TCP_ACK) ||
	    (__s32)(bpf_ntohl(p->ack) - bpf_ntohl(*(__u32 *)f->isn)) < 0)
		return TC_ACT_UNSPEC;
	if (!tell(skb, f, out))
		f->watch &= ~WATCH_DRAIN;
	return TC_ACT_UNSPEC;
}

/* watched does what else a packet of the flow needs. TC_ACT_UNSPEC: it goes on. */
static __always_inline int watched(struct __sk_buff *skb, struct packet *p, struct ingress_flow *f)
{
	f->watch &= ~WATCH_HEAR;
	if (f->watch & WATCH_ADOPT)
		return adopt(skb, p, f);
	return f->watch & WATCH_DRAIN ? drain(skb, p, f) : TC_ACT_UNSPEC;
}

#endif
