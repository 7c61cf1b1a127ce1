// Package mobility carries a host's flows through moves and failovers: it stands between the engine (core/session), which
// decides, and the edge and the kernel, which do. Where the host is, what it serves and what the controller answers it is
// told by who has that; it knows nothing of uplinks, routers or sockets.
package mobility
