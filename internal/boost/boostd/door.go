package boostd

import (
	"net"
	"net/netip"
	"os"

	"scaffold.dev/scaffold/internal/boost/keeper"
)

// listen listens for other agents, at the socket of the worker before where there is one: it was open all the time, so who
// has connected meanwhile was not refused.
func listen(at netip.AddrPort, keep store) (net.Listener, error) {
	for _, f := range keep.Found() {
		if f.Key == doorKey && len(f.FDs) == 1 {
			file := os.NewFile(uintptr(f.FDs[0]), "port for other agents")
			defer file.Close()
			return net.FileListener(file)
		}
	}
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		return nil, err
	}
	if err := holdListener(l, keep); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func holdListener(l net.Listener, keep store) error {
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		return err
	}
	if fail := raw.Control(func(fd uintptr) { err = keep.Hold(doorKey, nil, int(fd)) }); fail != nil {
		return fail
	}
	return err
}

var _ store = (*keeper.Store)(nil)
