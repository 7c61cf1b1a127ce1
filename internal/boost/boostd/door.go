package boostd

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/boost/keeper"
)

// listenAll listens at each address of the agent.
func listenAll(at []netip.AddrPort, keep store) (list []net.Listener, err error) {
	for i, a := range at {
		key := doorKey
		if i > 0 {
			key += "/" + a.String()
		}
		l, err := listen(a, key, keep)
		if err != nil {
			closeAll(list)
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

func closeAll(list []net.Listener) {
	for _, l := range list {
		l.Close()
	}
}

// listen listens for other agents, at the socket of the worker before where there is one: it was open all the time, so who
// has connected meanwhile was not refused.
func listen(at netip.AddrPort, key string, keep store) (net.Listener, error) {
	for _, f := range keep.Found() {
		if f.Key == key && len(f.FDs) == 1 {
			file := os.NewFile(uintptr(f.FDs[0]), "port for other agents")
			defer file.Close()
			return net.FileListener(file)
		}
	}
	l, err := listenSoon(at)
	if err != nil {
		return nil, err
	}
	if err := holdListener(l, key, keep); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// dying is how long a worker may still listen whose keeper was killed: the kernel kills it a moment later, and whoever
// started that agent may have started this one by then.
const dying = 2 * time.Second

func listenSoon(at netip.AddrPort) (net.Listener, error) {
	for end := time.Now().Add(dying); ; {
		l, err := net.Listen("tcp", at.String())
		if err == nil || !errors.Is(err, unix.EADDRINUSE) || time.Now().After(end) {
			return l, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func holdListener(l net.Listener, key string, keep store) error {
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		return err
	}
	if fail := raw.Control(func(fd uintptr) { err = keep.Hold(key, nil, int(fd)) }); fail != nil {
		return fail
	}
	return err
}

var _ store = (*keeper.Store)(nil)
