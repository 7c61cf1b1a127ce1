/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* kernel.h: the few fields of kernel types that are read; the loader finds where this kernel has them. */
#ifndef SCAFFOLD_KICK_KERNEL_H
#define SCAFFOLD_KICK_KERNEL_H

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct sock_common;
struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct in6_addr {
	union {
		__u8 u6_addr8[16];
	} in6_u;
};
typedef struct {
	__s64 counter;
} atomic64_t;
struct sock_common {
	__u16 skc_dport; /* network order */
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
};
struct timer_list {
	unsigned long expires;
};
/* A spinlock where it is a word: kernels that debug their locks, or sleep in them, have another one. */
typedef struct {
	int counter;
} atomic_t;
struct qspinlock {
	atomic_t val;
};
struct raw_spinlock {
	struct qspinlock raw_lock;
};
struct spinlock {
	struct raw_spinlock rlock;
};
typedef struct {
	struct spinlock slock;
	int owned;
} socket_lock_t;
struct sk_buff;
struct sock {
	struct sock_common __sk_common;
	socket_lock_t sk_lock;
	struct {
		struct sk_buff *tail;
	} sk_backlog;
};
struct sock___moved { /* where later kernels keep the timer */
	struct timer_list tcp_retransmit_timer;
};
struct ipv6_pinfo {
	__u16 recverr : 1; /* until 6.6 */
};
struct inet_sock {
	struct sock sk;
	struct ipv6_pinfo *pinet6;
	unsigned long inet_flags;
};
#define INET_FLAGS_RECVERR6 26 /* since 6.7; the bit was free before */
struct inet_connection_sock {
	struct inet_sock icsk_inet;
	struct timer_list icsk_retransmit_timer;
	__u32 icsk_rto;
	__u8 icsk_ca_state : 5;
	__u8 icsk_retransmits;
	__u8 icsk_pending;
	__u8 icsk_backoff;
	__u8 icsk_probes_out;
};
struct inet_connection_sock___early { /* its timer may fire before this, and then waits for it */
	unsigned long icsk_timeout;
};
struct rb_node;
struct rb_root {
	struct rb_node *rb_node;
};
struct tcp_options_received {
	__u32 ts_recent;
	__u32 rcv_tsecr;
	__u16 tstamp_ok : 1;
	__u16 wscale_ok : 1;
	__u16 sack_ok : 3;
	__u16 snd_wscale : 4;
	__u16 rcv_wscale : 4;
	__u16 mss_clamp;
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 max_window;
	__u32 tsoffset;
	__u32 snd_wnd;
	__u32 mss_cache;
	__u32 snd_cwnd;
	__u8 repair : 1;
	__u8 tcp_usec_ts : 1;
	__u32 copied_seq;
	__u32 snd_wl1;
	__u32 rttvar_us;
	__u32 retrans_out;
	__u16 advmss;
	struct rb_root out_of_order_queue;
	__u32 write_seq;
	__u32 segs_in;
	__u32 rcv_nxt;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 srtt_us;
	__u32 packets_out;
	__u32 rcv_wnd;
	struct tcp_options_received rx_opt;
	__u64 bytes_received;
	__u64 bytes_acked;
	__u32 rcv_wup;
	__u32 total_retrans;
	_Bool is_mptcp;
};

#pragma clang attribute pop

#endif
