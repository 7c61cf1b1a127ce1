/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* record.h: what crosses the C/Go line of this package; TestABI checks Go's side. */
#ifndef SCAFFOLD_KICK_RECORD_H
#define SCAFFOLD_KICK_RECORD_H

#include <linux/types.h>

#define RECORD_SACK	 1
#define RECORD_WSCALE	 2
#define RECORD_TSTAMP	 4
#define RECORD_TS_USEC	 8 /* timestamps count microseconds, not milliseconds */
#define RECORD_OOO	 16 /* the out-of-order queue holds something */
#define RECORD_RECVERR	 32 /* the program reads ICMPv6 errors (IPV6_RECVERR) */
#define RECORD_REPAIR	 64
#define RECORD_MPTCP	 128

/* One TCP socket. Numbers are in host order, addresses bytes in network order. */
struct record {
	__u8  local[16];
	__u8  peer[16];
	__u64 cookie;
	__u64 now;	/* CLOCK_MONOTONIC, ns, at the look */
	__u64 jiffies;	/* at the look: with `now` they give the length of a jiffy */
	__s64 due;	/* jiffies until the timer fires; meaningless without a timer */
	__u64 bytes_received;
	__u64 bytes_acked;
	__u16 local_port;
	__u16 peer_port;
	__u8  state;
	__u8  ca_state;
	__u8  pending;	/* which timer */
	__u8  backoff;
	__u8  retransmits;
	__u8  probes;
	__u8  snd_wscale;
	__u8  rcv_wscale;
	__u32 flags;	/* RECORD_* */
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 write_seq;
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 rcv_wup;
	__u32 snd_wl1;
	__u32 snd_wnd;
	__u32 rcv_wnd;
	__u32 max_window;
	__u32 mss;
	__u32 mss_clamp;
	__u32 advmss;
	__u32 ts_recent;
	__u32 ts_ecr;
	__u32 ts_offset;
	__u32 rto;	/* jiffies */
	__u32 srtt;	/* eighths of microseconds */
	__u32 rttvar;	/* quarters of microseconds */
	__u32 cwnd;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 total_retrans;
	__u32 pad;
};
_Static_assert(sizeof(struct record) == 192, "ABI");

#define MAX_LOOKS 256 /* connections that many_sockets looks at in one run */

/* What one_socket returns. */
#define ONE_NONE  0 /* no connection of that name, or one that is bound to another device */
#define ONE_FOUND 1 /* it stands in the map */
#define ONE_BUSY  2 /* it is at work, or this kernel does not tell */

#endif
