package routing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// quiet is how long changes of routes are let come in before they are looked at: a tool that flushes
// rules makes many. Links do not wait for it.
const quiet = 5 * time.Millisecond

// WatchLinks calls changed at once when links or addresses of the namespace changed, or packets for an
// address begin to be delivered, with the indexes of the interfaces that were down meanwhile, until ctx ends.
func WatchLinks(ctx context.Context, changed func(down map[int]bool)) error {
	return watch(ctx, func(messages []syscall.NetlinkMessage, _ *nl.NetlinkSocket) {
		if len(messages) == 0 || slices.ContainsFunc(messages, ofLinks) {
			changed(downs(messages))
		}
	}, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE)
}

// ofLinks leaves out routes that lead away.
func ofLinks(m syscall.NetlinkMessage) bool {
	if m.Header.Type != unix.RTM_NEWROUTE && m.Header.Type != unix.RTM_DELROUTE {
		return true
	}
	return len(m.Data) >= unix.SizeofRtMsg && nl.DeserializeRtMsg(m.Data).Type == unix.RTN_LOCAL
}

// WatchRoutes calls changed a moment after addresses, routes or rules of the namespace have, until ctx
// ends.
func WatchRoutes(ctx context.Context, changed func()) error {
	return watch(ctx, func(_ []syscall.NetlinkMessage, sock *nl.NetlinkSocket) {
		time.Sleep(quiet)
		drain(sock)
		changed()
	}, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV6_RULE)
}

// watch hands over the kernel's messages until ctx ends; none where some were lost because they came too
// fast, which is no matter: what is done about them looks at the state.
func watch(ctx context.Context, got func([]syscall.NetlinkMessage, *nl.NetlinkSocket), groups ...uint) error {
	sock, err := nl.Subscribe(unix.NETLINK_ROUTE, groups...)
	if err != nil {
		return fmt.Errorf("watch links, addresses, routes and rules: %w", err)
	}
	stop := context.AfterFunc(ctx, sock.Close)
	go func() {
		defer stop()
		for ctx.Err() == nil {
			messages, _, err := sock.Receive()
			if err != nil && !overrun(err) {
				return // closed
			}
			got(messages, sock)
		}
	}()
	return nil
}

// drain throws away what is already there.
func drain(sock *nl.NetlinkSocket) {
	var buf [1 << 14]byte
	for {
		if _, _, err := unix.Recvfrom(sock.GetFd(), buf[:], unix.MSG_DONTWAIT); err != nil {
			return
		}
	}
}

func overrun(err error) bool {
	return errors.Is(err, unix.ENOBUFS) || errors.Is(err, os.ErrDeadlineExceeded)
}

// downs are the interfaces that a message says are off, without carrier or gone.
func downs(messages []syscall.NetlinkMessage) map[int]bool {
	down := map[int]bool{}
	for _, m := range messages {
		if len(m.Data) < unix.SizeofIfInfomsg || m.Header.Type != unix.RTM_NEWLINK && m.Header.Type != unix.RTM_DELLINK {
			continue
		}
		info := nl.DeserializeIfInfomsg(m.Data)
		if m.Header.Type == unix.RTM_DELLINK || info.Flags&unix.IFF_LOWER_UP == 0 {
			down[int(info.Index)] = true
		}
	}
	return down
}
