package permits

import (
	"crypto/ed25519"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/permit"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

func key(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// host is the key of a host that had no other.
type host struct{ key ed25519.PrivateKey }

func (h host) Now() ed25519.PrivateKey   { return h.key }
func (h host) Public() ed25519.PublicKey { return h.key.Public().(ed25519.PublicKey) }
func (h host) Permitted(p wire.Permit, now time.Time) error {
	return p.Check(p.Service, p.ServiceKey[:], h.Public(), now.Unix())
}

var challenge = []byte("challenge")

// permitted looks for permits in a directory.
func permitted(t *testing.T) (*Permits, string) {
	t.Helper()
	dir := t.TempDir()
	p := New(Config{Log: slog.New(slog.DiscardHandler), Keys: host{key(t)}, Presented: filepath.Join(t.TempDir(), "permits"), Directory: dir,
		Challenge: func() []byte { return challenge }, Again: func(func(sid.ServiceID) bool) {}})
	return p, dir
}

func put(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestThePermitThatLastsLongestIsShownAndANewOneIsToldAtOnce(t *testing.T) {
	p, dir := permitted(t)
	service, now := key(t), time.Now()
	id := sid.ServiceID{SS: 1, Suffix: sid.Certified(service.Public().(ed25519.PublicKey))}
	triple := sid.Triple{Service: id, Proto: sid.TCP, Port: 80}
	anew := false // the registry serves triple, and is to show something else
	p.Again = func(news func(sid.ServiceID) bool) { anew = news(id) }
	until := func(after time.Duration) wire.Permit {
		return wire.Delegate(service, id, p.Keys.Public(), now.Add(-time.Minute).Unix(), now.Add(after).Unix())
	}
	shown := func() int64 {
		g := &apiv1.Registration{}
		p.Show(g, triple)
		if len(g.Permit) == 0 {
			return 0
		}
		x, err := wire.ParsePermit(g.Permit)
		if err != nil || x.Check(id, service.Public().(ed25519.PublicKey), p.Keys.Public(), now.Unix()) != nil ||
			(wire.Stand{Challenge: challenge, Triple: triple}).Check(p.Keys.Public(), g.Signature) != nil {
			t.Fatalf("what is shown is not good: %v, %v", x, err)
		}
		return x.NotAfter
	}
	p.Take(p.Find(now))
	if at := shown(); at != 0 {
		t.Errorf("a permit until %d is shown, there is none", at)
	}
	put(t, filepath.Join(dir, "a.permit"), append(permit.Format(until(time.Hour), "web", "s1"), permit.Format(until(3*time.Hour), "", "")...))
	put(t, filepath.Join(dir, "b.permit"), permit.Format(until(2*time.Hour), "web", "s1"))
	p.Take(p.Find(now))
	if at := shown(); at != now.Add(3*time.Hour).Unix() || !anew {
		t.Errorf("shown until %d; to be told %v", at, anew)
	}
	p.Take(p.Find(now))
	if anew {
		t.Error("the same is told again")
	}
	put(t, filepath.Join(dir, "web.key"), permit.FormatPrivate(service))
	p.Take(p.Find(now))
	if at := shown(); at < now.Add(ownPermitFor/2).Unix() || !anew {
		t.Errorf("with the service's key the permit ends at %d", at)
	}
	for _, file := range []string{"a.permit", "b.permit", "web.key"} {
		os.Remove(filepath.Join(dir, file))
	}
	p.Take(p.Find(now))
	if at := shown(); at != 0 {
		t.Errorf("a permit until %d is shown, all are gone", at)
	}
}

// A permit that expires while it is shown is shown on, where there is no other: the refusal then says since when, where
// without one it would say that there is none.
func TestAnExpiredPermitIsShownWhereThereIsNoOther(t *testing.T) {
	p, dir := permitted(t)
	service, now := key(t), time.Now()
	id := sid.ServiceID{SS: 1, Suffix: sid.Certified(service.Public().(ed25519.PublicKey))}
	anew := false
	p.Again = func(news func(sid.ServiceID) bool) { anew = news(id) }
	shown := func(at time.Time) int64 {
		t.Helper()
		p.Take(p.Find(at))
		g := &apiv1.Registration{}
		p.Show(g, sid.Triple{Service: id, Proto: sid.TCP, Port: 80})
		x, err := wire.ParsePermit(g.Permit)
		if err != nil {
			t.Fatal(err)
		}
		return x.NotAfter
	}
	until := func(end time.Time) []byte {
		return permit.Format(wire.Delegate(service, id, p.Keys.Public(), now.Add(-time.Hour).Unix(), end.Unix()), "", "")
	}
	short, long := now.Add(time.Minute), now.Add(time.Hour)
	put(t, filepath.Join(dir, "short.permit"), until(short))
	shown(now)
	if at := shown(short.Add(2 * time.Second)); at != short.Unix() || anew {
		t.Errorf("once it has expired a permit until %d is shown, and told anew: %v", at, anew)
	}
	put(t, filepath.Join(dir, "long.permit"), until(long))
	if at := shown(short.Add(2 * time.Second)); at != long.Unix() || !anew {
		t.Errorf("with another one a permit until %d is shown, and told anew: %v", at, anew)
	}
}

func TestFilesThatAreOfNoUseAreNamedWithTheirTrouble(t *testing.T) {
	p, dir := permitted(t)
	service, now := key(t), time.Now()
	id := sid.ServiceID{SS: 1, Suffix: 0x10000}
	mine := p.Keys.Public()
	forged := wire.Delegate(service, id, mine, 1, now.Unix()+60)
	forged.NotAfter += 60
	for name, c := range map[string]struct {
		text []byte
		says string
	}{
		"other.permit":   {permit.Format(wire.Delegate(service, id, key(t).Public().(ed25519.PublicKey), 1, now.Unix()+60), "", ""), "for another host"},
		"late.permit":    {permit.Format(wire.Delegate(service, id, mine, 1, now.Unix()-60), "", ""), "has expired"},
		"forged.permit":  {permit.Format(forged, "", ""), "not signed"},
		"garbage.permit": {[]byte("x"), "no permit"},
		"large.permit":   {make([]byte, permit.MaxFile+1), "more than"},
		"garbage.key":    {[]byte("x"), "no Ed25519 key"},
		"notes.txt":      {[]byte("x"), ""},
	} {
		file := filepath.Join(dir, name)
		put(t, file, c.text)
		found := p.Find(now)
		if c.says == "" && len(found.troubles) > 0 || c.says != "" && (len(found.troubles) != 1 || found.troubles[0].From != file || !strings.Contains(found.troubles[0].Trouble, c.says)) {
			t.Errorf("%s: %v, want it to say %q", name, found.troubles, c.says)
		}
		if len(found.best)+len(found.keys) > 0 {
			t.Errorf("%s is used", name)
		}
		os.Remove(file)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.permit"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := p.Find(now); len(found.troubles) != 1 || !strings.Contains(found.troubles[0].Trouble, "no regular file") {
		t.Errorf("a pipe: %v", found.troubles)
	}
	p.Directory = filepath.Join(dir, "nowhere")
	if found := p.Find(now); len(found.troubles) != 1 {
		t.Errorf("a directory that is not there: %v", found.troubles)
	}
}
