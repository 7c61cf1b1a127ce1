/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* abi.h: all that crosses the C/Go line at the host's edge. Network-order fields are byte arrays. */
#ifndef SCAFFOLD_ABI_H
#define SCAFFOLD_ABI_H

#include <linux/types.h>

/* Raised when a pinned map of an older program could not be read by a newer one. */
#define HOST_ABI 2

#define MESSAGE_PORT 23727 /* docs/protocol.md §4 */

struct host_config {
	__u32 abi;
	__u32 pad;
	__u64 heartbeat;  /* CLOCK_MONOTONIC, ns: when the daemon last waited for events */
	__u64 secret[2];  /* SipHash key; whoever knows it can name every socketID */
};
_Static_assert(sizeof(struct host_config) == 32, "ABI");

struct uplink {
	__u32 ifindex;    /* 0: free */
	__u16 mtu;        /* host order; 0: no clamp */
	__u8  pad[2];
	__u8  locator[8]; /* zero: none yet */
};
_Static_assert(sizeof(struct uplink) == 16, "ABI");

#define MAX_UPLINKS 8
#define MAX_LOCATORS 16

/* Where the host is. One array element, scanned: a hash lookup costs more than it. */
struct place {
	struct uplink uplinks[MAX_UPLINKS];
	__u8 locators[MAX_LOCATORS][8]; /* accepted at ingress; zero: free */
};
_Static_assert(sizeof(struct place) == 256, "ABI");

/* A flow as its socket sees it. What the key of a datagram flow must ignore is zero. */
struct flow_key {
	__u8 local[16];
	__u8 remote[16];
	__u8 lport[2];    /* zero: UDP server (its child socket may answer from another port), echo server */
	__u8 rport[2];    /* zero: UDP client (so may its peer), echo client */
	__u8 proto;
	__u8 pad[3];
};
_Static_assert(sizeof(struct flow_key) == 40, "ABI");

enum flow_role { ROLE_CLIENT = 1, ROLE_SERVER = 2 };

/* docs/protocol.md §3. BINDING lasts a few instructions: one CPU writes the peer. */
enum flow_state { STATE_CONNECTING = 1, STATE_BINDING = 2, STATE_BOUND = 3, STATE_HALF_OPEN = 4 };

/* Ends seen so far, bits. */
enum flow_end { END_FIN_OUT = 1, END_FIN_IN = 2, END_RST = 4 };

enum datagrams { DATAGRAMS_BOUND = 0, DATAGRAMS_UNBOUND = 1, DATAGRAMS_UNSET = 2 };

/* What egress needs per packet. */
struct egress_flow {
	__u8  socket[8];
	__u8  peer[16];   /* on the wire; the service address until bound */
	__u64 seen;       /* CLOCK_MONOTONIC, ns */
	__u32 state;
	__u8  isn[4];
	__u8  alt_port[2]; /* the last local port of a UDP server's answers */
	__u8  role;
	__u8  proto;
	__u8  dscp;        /* 0: leave the socket's own */
	__u8  datagrams;
	__u8  end;
	__u8  pad;
	__u64 owner;       /* cookie of the socket of a client's datagram flow, which ends with it; 0: unknown */
};
_Static_assert(sizeof(struct egress_flow) == 56, "ABI");

/* What ingress needs per packet; key is the egress map's. */
struct ingress_flow {
	struct flow_key key;
	__u8  peer[16];   /* the only source that is accepted once bound */
	__u64 seen;
	__u32 state;
	__u8  isn[4];
	__u8  lport[2];   /* the server's port of a UDP flow, which the key ignores */
	__u8  alt_port[2];
	__u8  role;
	__u8  end;
	__u8  datagrams;
	__u8  pad;
};
_Static_assert(sizeof(struct ingress_flow) == 80, "ABI");

/* What a suffix means on this host. */
struct service {
	__u8  upper[8];   /* service prefix and ssID */
	__u32 live;       /* admitted (protocol, port) pairs */
	__u32 pad;
};
_Static_assert(sizeof(struct service) == 16, "ABI");

struct instance_key {
	__u8 suffix[8];
	__u8 port[2];
	__u8 proto;
	__u8 pad[5];
};
_Static_assert(sizeof(struct instance_key) == 16, "ABI");

/* Keyed by the whole service address. */
struct policy {
	__u8 datagrams;
	__u8 dscp;
	__u8 pad[2];
};
_Static_assert(sizeof(struct policy) == 4, "ABI");

struct fragment_key {
	__u8  src[16];
	__u8  dst[16];
	__u8  id[4];
	__u32 pad;
};
_Static_assert(sizeof(struct fragment_key) == 40, "ABI");

struct fragment {
	__u8 src[16];
	__u8 dst[16];
	__u32 word;      /* network order as it stood in the first fragment; 0: leave */
	__u32 pad;
};
_Static_assert(sizeof(struct fragment) == 40, "ABI");

enum event_kind { EVENT_REFUSED = 1, EVENT_MESSAGE = 2 };

#define EVENT_DATA 1536

/* An event is this header and len bytes of an IPv6 packet. */
struct event {
	struct flow_key key; /* of the flow, zero when there is none */
	__u8  socket[8];
	__u64 at;            /* CLOCK_MONOTONIC, ns */
	__u32 ifindex;
	__u16 len;
	__u8  kind;
	__u8  code;          /* ICMPv6 code of a refusal; a reset counts as 4 */
	__u8  isn[4];
	__u32 pad;
};
_Static_assert(sizeof(struct event) == 72, "ABI");

#endif
