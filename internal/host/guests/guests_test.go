package guests

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/serving"
	"scaffold.dev/scaffold/sid"
)

// A dump of one namespace takes nothing from another.
func TestSocketsOfGuestsAreKeptApart(t *testing.T) {
	s, web := serving.NewSockets(), sid.Triple{Service: sid.ServiceID{SS: 1, Suffix: 1 << 20}, Proto: sid.TCP, Port: 80}
	s.Register(1, web, serving.Owner{})
	s.Register(2, web, serving.Owner{Guest: 2})
	if got := s.Guests(web); !slices.Equal(got, []uint16{0, 2}) {
		t.Errorf("served by %v, want the host and guest 2", got)
	}
	if up, down := s.Replace(2, nil, nil); len(up)+len(down) != 0 || s.Count(web) != 1 {
		t.Errorf("the end of a guest's sockets: %v up, %v down, %d left, want that of the host alone", up, down, s.Count(web))
	}
	if _, down := s.Replace(0, nil, nil); len(down) != 1 {
		t.Errorf("the end of the last: %v down", down)
	}
}

func TestTheNumbersOfGuestsComeBackLate(t *testing.T) {
	g := &Guests{wanted: []*record{{Number: 2}, {Number: 4}}, last: host.MaxGuests}
	var got []uint16
	for range 3 {
		got = append(got, g.number())
	}
	if !slices.Equal(got, []uint16{1, 3, 5}) {
		t.Errorf("numbers %v, want those that nobody has, in order", got)
	}
}

func TestOnlyNamespacesOfIPNetnsGetAResolver(t *testing.T) {
	for path, want := range map[string]string{
		"/run/netns/web": "/etc/netns/web/resolv.conf", "/var/run/netns/web": "/etc/netns/web/resolv.conf",
		"/proc/1/ns/net": "", "/run/netns/": "", "/run/user/1/netns/cni-1": "",
	} {
		if got := resolverOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// Who gave a process's number is told of the process, not of a path in /proc.
func TestAProcessThatIsGoneIsNamed(t *testing.T) {
	for path, want := range map[string]string{"/proc/4194305/ns/net": "no process 4194305", "/run/netns/nobody-here": "no network namespace at /run/netns/nobody-here"} {
		if _, err := openNamespace(path); !errors.Is(err, errNoNamespace) || err.Error() != want {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	err := unopened("/proc/1/ns/net", &os.PathError{Op: "open", Path: "/proc/1/ns/net", Err: os.ErrPermission})
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "of process 1:") {
		t.Errorf("a process that may not be looked at: %v", err)
	}
}
