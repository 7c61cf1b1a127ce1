package hostd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// settle is how long changes in the kernel are let come in before they are looked at: a tool that
// flushes rules makes many.
const settle = 5 * time.Millisecond

// watchKernel calls changed whenever links, addresses, routes or rules of the namespace changed, until
// ctx ends.
func watchKernel(ctx context.Context, changed func()) error {
	sock, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV6_RULE)
	if err != nil {
		return fmt.Errorf("watch routes and links: %w", err)
	}
	stop := context.AfterFunc(ctx, sock.Close)
	go func() {
		defer stop()
		for ctx.Err() == nil {
			if _, _, err := sock.Receive(); err != nil && !overrun(err) {
				return // closed
			}
			time.Sleep(settle)
			drain(sock)
			changed()
		}
	}()
	return nil
}

// drain throws away what is already there: changed looks at the state, not at the messages.
func drain(sock *nl.NetlinkSocket) {
	var buf [1 << 14]byte
	for {
		if _, _, err := unix.Recvfrom(sock.GetFd(), buf[:], unix.MSG_DONTWAIT); err != nil {
			return
		}
	}
}

// overrun reports whether messages were lost because they came too fast, which is no matter here.
func overrun(err error) bool {
	return errors.Is(err, unix.ENOBUFS) || errors.Is(err, os.ErrDeadlineExceeded)
}
