package breaks

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A Crowd is what kicking many connections at once took.
type Crowd struct {
	Look time.Duration // one Snapshot of all
	Kick time.Duration // one Kick of all, where each waits for a doubled timer
	Last time.Duration // from the link's return to the last connection's byte acknowledged
}

// Crowd makes many connections, cuts the link, sends a byte on each from the other host, waits until each
// has doubled its timer, heals the link and kicks them, or waits for the timers.
func (n *Network) Crowd(ctx context.Context, count int, kick bool) (c Crowd, err error) {
	if err := roomFor(count + 256); err != nil {
		return c, err
	}
	ends, err := n.gather(ctx, count)
	defer func() {
		for _, fd := range ends {
			unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) //nolint:errcheck // it is over
			unix.Close(fd)
		}
	}()
	if err != nil {
		return c, err
	}
	if err := n.strand(ctx, ends[1:]); err != nil {
		return c, err
	}
	if err := n.Heal(); err != nil {
		return c, err
	}
	healed := time.Now()
	if kick {
		if _, err := n.Other.Kicker.Kick(nil); err != nil {
			return c, err
		}
		c.Kick = time.Since(healed)
	}
	if err := n.await(ctx, func(acked, _ int) bool { return acked == count }); err != nil {
		return c, fmt.Errorf("after the link's return: %w", err)
	}
	c.Last = time.Since(healed)
	start := time.Now()
	_, err = n.Other.Kicker.Snapshot(nil)
	c.Look = time.Since(start)
	return c, err
}

// gather makes a listener at the mover and connections of the other host to it, which nobody accepts: that
// takes one open file for each and not two. The listener comes first.
func (n *Network) gather(ctx context.Context, count int) (ends []int, err error) {
	at := unix.SockaddrInet6{Addr: netip.MustParseAddr(moverAddr).As16(), Port: crowdPort}
	open := func() (int, error) {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			ends = append(ends, fd)
		}
		return fd, err
	}
	err = n.Mover.inside(func() error {
		if err := os.WriteFile("/proc/sys/net/core/somaxconn", []byte(strconv.Itoa(count+1)), 0); err != nil {
			return err
		}
		fd, err := open()
		if err != nil {
			return err
		}
		return errors.Join(unix.Bind(fd, &at), unix.Listen(fd, count+1))
	})
	if err != nil {
		return ends, fmt.Errorf("breaks: listen for %d connections: %w", count, err)
	}
	return ends, n.Other.inside(func() error {
		for i := range count {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fd, err := open()
			if err == nil {
				err = unix.Connect(fd, &at)
			}
			if err != nil {
				return fmt.Errorf("breaks: connection %d of %d: %w", i+1, count, err)
			}
		}
		return nil
	})
}

const crowdPort = 7

// strand leaves each connection with a byte in flight and a timer that was doubled at least twice.
func (n *Network) strand(ctx context.Context, conns []int) error {
	if err := n.Cut(); err != nil {
		return err
	}
	for _, fd := range conns {
		if _, err := unix.Write(fd, []byte{1}); err != nil {
			return err
		}
	}
	return n.await(ctx, func(_, doubled int) bool { return doubled == len(conns) })
}

// await looks at the other host's connections until done says so of the number that have everything
// acknowledged and of those whose timer was doubled twice.
func (n *Network) await(ctx context.Context, done func(acked, doubled int) bool) error {
	for deadline := time.Now().Add(limit); ctx.Err() == nil; time.Sleep(time.Millisecond) {
		all, err := n.Other.Kicker.Snapshot(nil)
		if err != nil {
			return err
		}
		acked, doubled := 0, 0
		for i := range all {
			if all[i].InFlight() == 0 {
				acked++
			} else if all[i].Backoff >= 2 {
				doubled++
			}
		}
		if done(acked, doubled) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %v, of %d connections %d have all acknowledged and %d wait with a doubled timer", limit, len(all), acked, doubled)
		}
	}
	return ctx.Err()
}

// roomFor lets this process have so many open files.
func roomFor(files int) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	if l.Cur >= uint64(files) {
		return nil
	}
	l.Cur, l.Max = uint64(files), max(l.Max, uint64(files))
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return errors.Join(fmt.Errorf("allow %d open files", files), err)
	}
	return nil
}
