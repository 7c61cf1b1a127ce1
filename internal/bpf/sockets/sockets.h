/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What crosses the C/Go line of this package; TestABI checks Go's side. */
#ifndef SCAFFOLD_SOCKETS_H
#define SCAFFOLD_SOCKETS_H

#include <linux/types.h>

#define COMM_LEN 16

/* A row of `hosts`: which namespace takes part, and what it takes for a service address. */
struct host_row {
	__u8  services[4]; /* the /32 of service addresses */
	__u32 inode;	   /* of the network namespace: rows of dead ones are swept */
	__u64 lost;	   /* events that found the ring full */
};
_Static_assert(sizeof(struct host_row) == 16, "ABI");

#define SOCK_EXPLICIT	1 /* bound to a port that the program chose */
#define SOCK_REGISTERED 2 /* a REGISTER was (or would have been) sent */

/* A row of `socks`, by socket cookie: what sock_release can no longer read from the socket. */
struct sock_row {
	__u64 netns;
	__u8  addr[16];
	__u8  comm[COMM_LEN];
	__u32 pid; /* of the process that bound it */
	__u16 port; /* host order */
	__u8  proto;
	__u8  flags;
};
_Static_assert(sizeof(struct sock_row) == 48, "ABI");

#define EVENT_REGISTER	 1
#define EVENT_UNREGISTER 2

#define WHY_CLOSED    1
#define WHY_SHUTDOWN  2
#define WHY_CONNECTED 3

struct sock_event {
	__u64 cookie;
	__u8  addr[16];
	__u8  comm[COMM_LEN];
	__u32 pid;
	__s32 exit_code; /* of the closing task, as wait(2) gives it; -1 while it lives on */
	__u16 port;
	__u8  proto;
	__u8  kind;
	__u8  why;
	__u8  pad[3];
};
_Static_assert(sizeof(struct sock_event) == 56, "ABI");

#endif
