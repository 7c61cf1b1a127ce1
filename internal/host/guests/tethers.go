package guests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// tethers hold guests to where their namespaces were found, and tell when one is cut. The kernel says when to look:
// there is no clock.
type tethers struct {
	told func(*tether) // called by the goroutine that waits

	epoll, mounts, names, stop int // files

	mu   sync.Mutex
	held map[*tether]bool
	dirs map[int]int // how many have a name in the directory, by inotify's number of it
}

// newTethers waits until ctx ends.
func newTethers(ctx context.Context, told func(*tether)) (*tethers, error) {
	e := &tethers{told: told, epoll: -1, mounts: -1, names: -1, stop: -1, held: map[*tether]bool{}, dirs: map[int]int{}}
	if err := e.open(); err != nil {
		e.close()
		return nil, fmt.Errorf("wait for the ends of namespaces: %w", err)
	}
	stop := e.stop
	context.AfterFunc(ctx, func() { unix.Write(stop, []byte{1, 0, 0, 0, 0, 0, 0, 1}) }) //nolint:errcheck // any number but zero
	go e.wait()
	return e, nil
}

func (e *tethers) open() (err error) {
	if e.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if e.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return err
	}
	if e.mounts, err = unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	if e.names, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		return err
	}
	return errors.Join(e.add(e.stop, unix.EPOLLIN), e.add(e.mounts, unix.EPOLLPRI), e.add(e.names, unix.EPOLLIN))
}

func (e *tethers) add(fd int, events uint32) error {
	return unix.EpollCtl(e.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

func (e *tethers) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, fd := range []*int{&e.epoll, &e.mounts, &e.names, &e.stop} {
		if *fd >= 0 {
			unix.Close(*fd)
		}
		*fd = -1
	}
}

// wait is the goroutine.
func (e *tethers) wait() {
	defer e.close()
	var events [8]unix.EpollEvent
	for {
		n, err := unix.EpollWait(e.epoll, events[:], -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return // nothing but our own bug: the file is ours
		}
		if slices.ContainsFunc(events[:n], func(ev unix.EpollEvent) bool { return int(ev.Fd) == e.stop }) {
			return
		}
		e.drain()
		for _, x := range e.look() {
			e.told(x)
		}
	}
}

// drain throws away what inotify says: it is looked at all names, since mounts tell nothing else.
func (e *tethers) drain() {
	var buf [4096]byte
	for {
		if n, err := unix.Read(e.names, buf[:]); n <= 0 || err != nil {
			return
		}
	}
}

// look takes out those that are cut.
func (e *tethers) look() (gone []*tether) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for x := range e.held {
		if x.cut() {
			e.forget(x)
			gone = append(gone, x)
		}
	}
	return gone
}

// hold holds on to the namespace at path, if it is still there.
func (e *tethers) hold(path string, inode uint64) (*tether, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := &tether{path: path, inode: inode, process: -1}
	err := e.trace(x)
	if err == nil {
		var now uint64
		if now, err = inodeOf(path); err == nil && now != inode { // of what is waited for from now on
			err = fmt.Errorf("%w at %s: another one is there now", errNoNamespace, path)
		}
	}
	if err != nil {
		e.loosen(x)
		return nil, err
	}
	e.held[x] = true
	return x, nil
}

// release lets go. nil is fine for both.
func (e *tethers) release(x *tether) {
	if e == nil || x == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(x)
}

// forget lets go of one that is held. The caller holds e.mu.
func (e *tethers) forget(x *tether) {
	if e.held[x] {
		delete(e.held, x)
		e.loosen(x)
	}
}

func (e *tethers) loosen(x *tether) {
	if x.process >= 0 {
		unix.Close(x.process)
	}
	for _, wd := range x.dirs {
		if e.dirs[wd]--; e.dirs[wd] == 0 {
			delete(e.dirs, wd)
			unix.InotifyRmWatch(e.names, uint32(wd)) //nolint:errcheck // the directory may be gone
		}
	}
}

// cut removes the guest whose namespace is gone.
func (g *Guests) cut(x *tether) {
	for _, up := range g.up {
		if up.tether == x {
			g.Log.Info("a guest's namespace is gone", "guest", up.Name, "namespace", up.Path)
			g.drop(up.record)
			return
		}
	}
}

// tether has the guest removed when its namespace is gone.
func (g *Guests) tether(x *guest) (err error) {
	if g.tethers == nil {
		if g.tethers, err = newTethers(g.ctx, func(x *tether) { g.Post(func() { g.cut(x) }) }); err != nil {
			return err
		}
	}
	x.tether, err = g.tethers.hold(x.Path, x.Inode)
	return err
}
