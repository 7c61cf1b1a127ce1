/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* adopt.h: a flow of another instance becomes an accepted connection here, docs/protocol.md §6.5. */
#ifndef SCAFFOLD_HOST_ADOPT_H
#define SCAFFOLD_HOST_ADOPT_H

#include "answer.h"

/* The kernel's own names: a kernel without them (before 6.9) resolves the call to nothing. */
struct sock;
struct bpf_tcp_req_attrs {
	__u32 rcv_tsval;
	__u32 rcv_tsecr;
	__u16 mss;
	__u8  rcv_wscale;
	__u8  snd_wscale;
	__u8  ecn_ok;
	__u8  wscale_ok;
	__u8  sack_ok;
	__u8  tstamp_ok;
	__u8  usec_ts_ok;
	__u8  reserved[3];
};
extern int bpf_sk_assign_tcp_reqsk(struct __sk_buff *skb, struct sock *sk, struct bpf_tcp_req_attrs *attrs,
				   int attrs__sz) __ksym __weak;

/*
 * continues_here: the segment begins at the first byte that the old instance did not acknowledge and acknowledges
 * the last that it sent. With one further on this kernel would claim to have bytes that nobody has.
 */
static __always_inline int continues_here(const struct packet *p, const struct adoption *a)
{
	return (p->flags & (TCP_SYN | TCP_FIN | TCP_RST | TCP_ACK)) == TCP_ACK && p->seq == *(__u32 *)a->seq &&
	       p->ack == *(__u32 *)a->ack;
}

/*
 * hand_to makes the packet the end of a handshake with the listener: the new socket's sequence numbers begin where
 * the packet stands, its timestamps where the old instance's ended.
 */
static __always_inline int hand_to(struct __sk_buff *skb, struct bpf_sock *listener, const struct adoption *a)
{
	struct sock *sk = (struct sock *)bpf_skc_to_tcp_sock(listener);
	struct bpf_tcp_req_attrs attrs = {
		.rcv_tsval = a->tsval, .rcv_tsecr = a->tsecr, .mss = a->mss,
		.rcv_wscale = a->server_scale, .snd_wscale = a->client_scale,
		.wscale_ok = !!(a->options & ADOPT_SCALES), .sack_ok = !!(a->options & ADOPT_SACK),
		.tstamp_ok = !!(a->options & ADOPT_TIMESTAMPS),
	};

	if (!sk || !bpf_sk_assign_tcp_reqsk)
		return -1;
	return bpf_sk_assign_tcp_reqsk(skb, sk, &attrs, sizeof(attrs));
}

/* unwatch: no packet of the flow needs a look any more. */
static __always_inline void unwatch(struct ingress_flow *f, __u8 bit)
{
	struct egress_flow *out = bpf_map_lookup_elem(&egress_flows, &f->key);

	f->watch &= ~bit;
	if (out && *(__u64 *)out->birth == *(__u64 *)f->birth)
		out->watch &= ~bit;
}

/* How long the kernel may take to make the connection; then the next segment may begin it. */
#define BEGIN_NS 3000000ULL
#define AT_WORK 2

/* begins is true for one segment of several that come at once: the kernel would end the connection by the second. */
static __always_inline int begins(struct adoption *a)
{
	__u64 now = bpf_ktime_get_ns(), before = a->begun;

	return (!before || now - before >= BEGIN_NS) && __sync_val_compare_and_swap(&a->begun, before, now) == before;
}

/*
 * not_here: the listener is gone, or the kernel will not give it the connection. The process may have died between the
 * offer and this segment, and another instance can go on from it: so the daemon is told, as of a death. Where it does not
 * live the flow ends, and the client's program learns at once.
 */
static __noinline int not_here(struct __sk_buff *skb, struct packet *p, struct ingress_flow *f)
{
	struct egress_flow *out = bpf_map_lookup_elem(&egress_flows, &f->key);

	if (!out || *(__u64 *)out->birth != *(__u64 *)f->birth || !daemon_lives(bpf_ktime_get_ns()))
		return reset(skb, p, HOST_NOT_ADOPTED);
	tell(skb, f, out); /* where there is no room now, there is at the next segment */
	return drop(HOST_NOT_ADOPTED);
}

/* adopt lets the segment pass that begins the connection, and all once there is one. */
static __noinline int adopt(struct __sk_buff *skb, struct packet *p, struct ingress_flow *f)
{
	__u64 birth = *(__u64 *)f->birth;
	struct adoption *a = bpf_map_lookup_elem(&adoptions, &birth);
	struct bpf_sock_tuple t = {};
	int state = 0, refused = 1;
	struct bpf_sock *sk;

	ADDR(t.ipv6.saddr) = ADDR(f->key.remote);
	ADDR(t.ipv6.daddr) = ADDR(f->key.local);
	t.ipv6.sport = PORT(f->key.rport);
	t.ipv6.dport = PORT(f->key.lport);
	sk = bpf_skc_lookup_tcp(skb, &t, sizeof(t.ipv6), BPF_F_CURRENT_NETNS, 0);
	if (sk) {
		state = sk->state;
		if (state == BPF_TCP_LISTEN && a && continues_here(p, a) &&
		    admitted(ADDR(f->key.local).lo, PROTO_TCP, PORT(f->key.lport)))
			refused = begins(a) ? hand_to(skb, sk, a) : AT_WORK;
		bpf_sk_release(sk);
	}
	if (state && state != BPF_TCP_LISTEN) {
		unwatch(f, WATCH_ADOPT);
		bpf_map_delete_elem(&adoptions, &birth);
		return TC_ACT_UNSPEC;
	}
	if (!a || !continues_here(p, a) || refused == AT_WORK)
		return drop(HOST_ADOPTING);
	if (refused)
		return not_here(skb, p, f);
	count(HOST_ADOPTED);
	return TC_ACT_UNSPEC;
}

#endif
