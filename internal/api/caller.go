package api

import (
	"context"
	"net"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// A Caller is the local user at the other end of a Unix socket, as the kernel tells it.
type Caller struct{ UID uint32 }

// LocalUser is the header by which a daemon that hands a call on says which of its machine's users made it.
const LocalUser = "Scaffold-Local-User"

type callerKey struct{}

// CallerOf is who makes a call on a Unix socket.
func CallerOf(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// withCaller asks the kernel once for each connection: whose it was when it was made.
func withCaller(ctx context.Context, c net.Conn) context.Context {
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return ctx
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err != nil || failed != nil {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, Caller{cred.Uid})
}

// Name is the user's login name, or "uid N" where the machine knows none.
func (c Caller) Name() string {
	id := strconv.FormatUint(uint64(c.UID), 10)
	if u, err := user.LookupId(id); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid " + id
}
