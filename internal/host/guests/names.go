package guests

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// dnsAt is where a guest finds names: its own loopback, of both families.
var dnsAt = [...]string{"[::1]:53", "127.0.0.1:53"}

// openNames answers DNS on the guest's loopback, and lets programs that `ip netns exec` starts ask there. What
// fails costs names in the guest and nothing else.
func (x *guest) openNames() {
	heard := 0
	for _, at := range dnsAt {
		end, err := x.listenDNS(at)
		if err != nil {
			x.mute = err.Error()
			continue
		}
		heard++
		x.answers = append(x.answers, end)
	}
	if heard > 0 {
		x.mute = ""
	} else {
		x.in.Log.Warn("a guest finds no names", "guest", x.Name, "error", x.mute)
	}
	if err := x.writeResolver(); err != nil {
		x.in.Log.Warn("a guest's resolv.conf", "guest", x.Name, "error", err)
	}
}

func (x *guest) listenDNS(at string) (end func(), err error) {
	err = x.ns.do(func() error {
		udp, err := net.ListenPacket("udp", at)
		if err != nil {
			return err
		}
		tcp, err := net.Listen("tcp", at)
		if err != nil {
			udp.Close()
			return err
		}
		end = x.in.Answer(udp, tcp)
		return nil
	})
	return end, err
}

func (x *guest) closeNames() {
	for _, end := range x.answers {
		end()
	}
	x.answers = nil
}

// writeResolver makes the resolv.conf of a namespace that `ip netns` made. One that is there is somebody's.
func (x *guest) writeResolver() error {
	file := resolverOf(x.Path)
	if file == "" || x.Resolver != "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		if b, err := os.ReadFile(file); err == nil && bytes.Equal(b, []byte(resolverText(x.Name))) {
			x.Resolver = file // of a daemon that was killed
			return nil
		}
		return fmt.Errorf("%s is there: names are found where it names ::1 or 127.0.0.1", file)
	}
	if err != nil {
		return err
	}
	x.Resolver = file
	_, err = f.WriteString(resolverText(x.Name))
	return errors.Join(err, f.Close())
}

func resolverText(name string) string {
	return fmt.Sprintf("# of guest %s, by scaffold hostd\nnameserver ::1\nnameserver 127.0.0.1\n", name)
}

// removeResolver takes away what nobody has changed since.
func removeResolver(r *record) {
	if r.Resolver == "" {
		return
	}
	if b, err := os.ReadFile(r.Resolver); err == nil && bytes.Equal(b, []byte(resolverText(r.Name))) {
		os.Remove(r.Resolver)
		os.Remove(filepath.Dir(r.Resolver)) // if nothing else is in it
	}
	r.Resolver = ""
}

// resolverOf is where `ip netns` keeps the resolv.conf of a namespace that it made; "" for others.
func resolverOf(path string) string {
	dir, name := filepath.Split(filepath.Clean(path))
	if dir == "/run/netns/" || dir == "/var/run/netns/" {
		return filepath.Join("/etc/netns", name, "resolv.conf")
	}
	return ""
}
