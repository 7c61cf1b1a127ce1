package frr

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// A Watch follows the main table of a namespace's kernel, whoever writes it.
//
// It takes every notification for a hint alone and reads the whole table again. The kernel does not tell of
// each route that goes: those for IPv4 go silently with their interface, those of a next hop object with that,
// and notifications are lost when they come faster than they are read. A table that was read is always right.
type Watch struct {
	events *os.File
	asks   *os.File
	tell   Tell
	lost   func(error)
	stop   chan struct{}
	done   chan struct{}
}

// idleShare bounds what reading tables costs: after each reading the watch rests for this many times as long.
const idleShare = 3

// Groups of notifications (include/uapi/linux/rtnetlink.h); unix has no name for that of next hop objects.
var watched = []int{unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, rtnlgrpNexthop}

const rtnlgrpNexthop = 32

// NewWatch follows the table of the namespace at path netns. The routes that are there are told before it
// returns. Lost is called with errors of later readings, after which the next notification tries again; nil to
// leave them.
func NewWatch(netns string, tell Tell, lost func(error)) (*Watch, error) {
	w := &Watch{tell: tell, lost: lost, stop: make(chan struct{}), done: make(chan struct{})}
	if err := nsenter.DoAt(netns, w.open); err != nil {
		return nil, fmt.Errorf("watch of routes in %s: %w", netns, err)
	}
	table := NewTable()
	if err := w.read(table); err != nil {
		w.events.Close()
		w.asks.Close()
		return nil, fmt.Errorf("watch of routes in %s: %w", netns, err)
	}
	go w.follow(table)
	return w, nil
}

func (w *Watch) open() (err error) {
	if w.events, err = netlinkSocket(watched); err != nil {
		return err
	}
	if w.asks, err = netlinkSocket(nil); err != nil {
		w.events.Close()
	}
	return err
}

// netlinkSocket makes a socket that Close of its file wakes up. Who asks the file for its number takes that
// from it: it makes the socket block.
func netlinkSocket(groups []int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("rtnetlink socket: %w", err)
	}
	// One that is not bound is sent no notifications: its number is that of the kernel, which sends none to itself.
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("bind rtnetlink socket: %w", err)
	}
	for _, group := range groups {
		if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group); err != nil {
			unix.Close(fd)
			return nil, fmt.Errorf("subscribe to group %d of rtnetlink: %w", group, err)
		}
	}
	return os.NewFile(uintptr(fd), "rtnetlink"), nil
}

func (w *Watch) follow(table *Table) {
	defer close(w.done)
	for w.hint() == nil {
		start := time.Now()
		if err := w.read(table); err != nil && w.lost != nil && !errors.Is(err, os.ErrClosed) {
			w.lost(fmt.Errorf("watch of routes: %w", err))
		}
		select {
		case <-time.After(idleShare * time.Since(start)):
		case <-w.stop:
			return
		}
	}
}

// hint waits for a notification and throws away it and all that wait behind it.
func (w *Watch) hint() error {
	raw, err := w.events.SyscallConn()
	if err != nil {
		return err
	}
	buf, got := make([]byte, dumpLen), false
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for {
			_, err := unix.Read(int(fd), buf)
			switch err {
			case nil, unix.ENOBUFS: // some were lost: a hint like any other
				got = true
			case unix.EINTR:
			case unix.EAGAIN:
				return got
			default:
				failed = err
				return true
			}
		}
	})
	return errors.Join(err, failed)
}

// read brings the table up to date and tells what is different.
func (w *Watch) read(table *Table) error {
	messages, err := dumpAll(w.asks)
	if err != nil {
		return err
	}
	table.Mark()
	for _, m := range best(messages) {
		table.Apply(m)
	}
	table.Sweep()
	if changes := table.Changes(nil); len(changes) != 0 {
		w.tell(changes)
	}
	return nil
}

// Close stops the watch.
func (w *Watch) Close() error {
	close(w.stop)
	err := errors.Join(w.events.Close(), w.asks.Close())
	<-w.done
	return err
}
