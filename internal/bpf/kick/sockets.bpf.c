//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* tcp_sockets writes one record for each IPv6 TCP socket of the namespace in which the iterator was opened. The
 * kernel holds the socket's lock meanwhile, so that a record fits together. one_socket writes that of one. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#include "kernel.h"
#include "record.h"

#define AF_INET6      10
#define TCP_LISTEN_ST 10

/* Type that only Go needs by name. */
const struct record *unused_record __attribute__((unused));

static __always_inline void timer(struct record *r, struct inet_connection_sock *icsk)
{
	struct inet_connection_sock___early *early = (void *)icsk;
	struct sock___moved *moved = (void *)icsk;
	unsigned long expires = 0;

	if (bpf_core_field_exists(early->icsk_timeout))
		expires = early->icsk_timeout;
	else if (bpf_core_field_exists(icsk->icsk_retransmit_timer))
		expires = icsk->icsk_retransmit_timer.expires;
	else if (bpf_core_field_exists(moved->tcp_retransmit_timer))
		expires = moved->tcp_retransmit_timer.expires;
	r->now = bpf_ktime_get_ns();
	r->jiffies = bpf_jiffies64();
	r->due = (__s64)(expires - (unsigned long)r->jiffies);
	r->rto = icsk->icsk_rto;
	r->pending = icsk->icsk_pending;
	r->backoff = icsk->icsk_backoff;
	r->retransmits = icsk->icsk_retransmits;
	r->probes = icsk->icsk_probes_out;
	r->ca_state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
}

static __always_inline void options(struct record *r, struct tcp_sock *tp)
{
	struct tcp_options_received *o = &tp->rx_opt;

	r->snd_wscale = BPF_CORE_READ_BITFIELD(o, snd_wscale);
	r->rcv_wscale = BPF_CORE_READ_BITFIELD(o, rcv_wscale);
	r->mss_clamp = o->mss_clamp;
	r->ts_recent = o->ts_recent;
	r->ts_ecr = o->rcv_tsecr;
	if (BPF_CORE_READ_BITFIELD(o, sack_ok))
		r->flags |= RECORD_SACK;
	if (BPF_CORE_READ_BITFIELD(o, wscale_ok))
		r->flags |= RECORD_WSCALE;
	if (BPF_CORE_READ_BITFIELD(o, tstamp_ok))
		r->flags |= RECORD_TSTAMP;
}

static __always_inline void flags(struct record *r, struct tcp_sock *tp)
{
	struct inet_sock *inet = &tp->inet_conn.icsk_inet;

	if (bpf_core_field_exists(tp->tcp_usec_ts) && BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts))
		r->flags |= RECORD_TS_USEC;
	if (BPF_CORE_READ_BITFIELD(tp, repair))
		r->flags |= RECORD_REPAIR;
	if (bpf_core_field_exists(tp->is_mptcp) && tp->is_mptcp)
		r->flags |= RECORD_MPTCP;
	if (tp->out_of_order_queue.rb_node)
		r->flags |= RECORD_OOO;
	if (bpf_core_field_exists(inet->inet_flags) && (inet->inet_flags >> INET_FLAGS_RECVERR6) & 1)
		r->flags |= RECORD_RECVERR;
	if (inet->pinet6 && bpf_core_field_exists(inet->pinet6->recverr) && BPF_CORE_READ_BITFIELD(inet->pinet6, recverr))
		r->flags |= RECORD_RECVERR;
}

static __always_inline void sequence(struct record *r, struct tcp_sock *tp)
{
	r->snd_una = tp->snd_una;
	r->snd_nxt = tp->snd_nxt;
	r->write_seq = tp->write_seq;
	r->rcv_nxt = tp->rcv_nxt;
	r->copied_seq = tp->copied_seq;
	r->rcv_wup = tp->rcv_wup;
	r->snd_wl1 = tp->snd_wl1;
	r->snd_wnd = tp->snd_wnd;
	r->rcv_wnd = tp->rcv_wnd;
	r->max_window = tp->max_window;
	r->bytes_received = tp->bytes_received;
	r->bytes_acked = tp->bytes_acked;
}

static __always_inline void path(struct record *r, struct tcp_sock *tp)
{
	r->mss = tp->mss_cache;
	r->advmss = tp->advmss;
	r->ts_offset = tp->tsoffset;
	r->srtt = tp->srtt_us;
	r->rttvar = tp->rttvar_us;
	r->cwnd = tp->snd_cwnd;
	r->packets_out = tp->packets_out;
	r->retrans_out = tp->retrans_out;
	r->total_retrans = tp->total_retrans;
}

static __always_inline void name(struct record *r, struct sock_common *skc)
{
	__builtin_memcpy(r->local, &skc->skc_v6_rcv_saddr, 16);
	__builtin_memcpy(r->peer, &skc->skc_v6_daddr, 16);
	r->local_port = skc->skc_num;
	r->peer_port = bpf_ntohs(skc->skc_dport);
	r->state = skc->skc_state;
	r->cookie = skc->skc_cookie.counter;
}

/* fill writes all of an empty record. */
static __always_inline void fill(struct record *r, struct sock_common *skc, struct tcp_sock *tp)
{
	name(r, skc);
	timer(r, &tp->inet_conn);
	sequence(r, tp);
	options(r, tp);
	path(r, tp);
	flags(r, tp);
}

SEC("iter/tcp")
int tcp_sockets(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct record r = {};
	struct tcp_sock *tp;

	if (!skc || skc->skc_family != AF_INET6 || skc->skc_state == TCP_LISTEN_ST)
		return 0;
	tp = (struct tcp_sock *)bpf_skc_to_tcp_sock(skc);
	if (!tp) /* half open, or in TIME_WAIT */
		return 0;
	fill(&r, skc, tp);
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct record);
} found SEC(".maps");

/* at_rest: nobody has the socket's lock, and no packet waits for who has. */
static __always_inline int at_rest(struct sock *sk)
{
	if (!bpf_core_field_exists(sk->sk_lock.slock.rlock.raw_lock.val.counter))
		return 0;
	return !sk->sk_lock.owned && !sk->sk_lock.slock.rlock.raw_lock.val.counter && !sk->sk_backlog.tail;
}

/*
 * look fills the record of a socket whose lock a program of this kind cannot take: one that was at rest before and
 * after, and that took and was given nothing meanwhile, fits together all the same.
 */
static __always_inline int look(struct record *r, struct tcp_sock *tp)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	__u32 segments = tp->segs_in;

	if (!at_rest(sk))
		return ONE_BUSY;
	barrier();
	__builtin_memset(r, 0, sizeof(*r));
	fill(r, &sk->__sk_common, tp);
	barrier();
	if (!at_rest(sk) || tp->segs_in != segments || tp->write_seq != r->write_seq || tp->snd_nxt != r->snd_nxt)
		return ONE_BUSY;
	return ONE_FOUND;
}

#define TUPLE_AT 14 /* behind an Ethernet header, which a run wants */

/* one_socket is run with the tuple as the socket's peer would send: in the namespace of whoever runs it. */
SEC("tc")
int one_socket(struct __sk_buff *skb)
{
	struct bpf_sock_tuple t = {};
	int verdict = ONE_NONE;
	struct record *r;
	struct tcp_sock *tp;
	struct bpf_sock *sk;
	__u32 zero = 0;

	r = bpf_map_lookup_elem(&found, &zero);
	if (!r || bpf_skb_load_bytes(skb, TUPLE_AT, &t.ipv6, sizeof(t.ipv6)))
		return ONE_NONE;
	sk = bpf_skc_lookup_tcp(skb, &t, sizeof(t.ipv6), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return ONE_NONE;
	tp = (struct tcp_sock *)bpf_skc_to_tcp_sock(sk);
	if (tp && sk->state != TCP_LISTEN_ST)
		verdict = look(r, tp);
	bpf_sk_release(sk);
	return verdict;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_LOOKS);
	__type(key, __u32);
	__type(value, struct record);
} looks SEC(".maps");

/* look_up completes a record that names a connection; its state stays 0 where there is none. */
__noinline int look_up(struct __sk_buff *skb, __u32 at)
{
	struct record *r = bpf_map_lookup_elem(&looks, &at);
	struct bpf_sock_tuple t = {};
	struct bpf_sock *sk;
	struct tcp_sock *tp;

	if (!r)
		return 0;
	__builtin_memcpy(t.ipv6.saddr, r->peer, sizeof(r->peer));
	__builtin_memcpy(t.ipv6.daddr, r->local, sizeof(r->local));
	t.ipv6.sport = bpf_htons(r->peer_port);
	t.ipv6.dport = bpf_htons(r->local_port);
	sk = bpf_skc_lookup_tcp(skb, &t, sizeof(t.ipv6), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return 0;
	tp = (struct tcp_sock *)bpf_skc_to_tcp_sock(sk);
	if (tp && sk->state != TCP_LISTEN_ST)
		fill(r, (struct sock_common *)tp, tp);
	bpf_sk_release(sk);
	return 0;
}

/*
 * many_sockets completes the first skb->mark records. A socket that is at work may give numbers of two moments,
 * which serves to kick it and for nothing else.
 */
SEC("tc")
int many_sockets(struct __sk_buff *skb)
{
	for (__u32 i = 0; i < MAX_LOOKS && i < skb->mark; i++)
		look_up(skb, i);
	return 0;
}

char __license[] SEC("license") = "Dual BSD/GPL";
