package hostd

import (
	"context"
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

// permitted is a daemon that looks for permits in a directory, and does no more.
func permitted(t *testing.T) (*daemon, string) {
	t.Helper()
	dir := t.TempDir()
	d := &daemon{cfg: Config{Name: "s1", Permits: dir}, keys: keys{key: key(t)}, store: store{t.TempDir()}, log: slog.New(slog.DiscardHandler), challenge: []byte("challenge")}
	d.serving = &registry{d: d, instances: map[sid.Triple]*instance{}, policies: map[sid.ServiceID]*apiv1.ServicePolicy{}, told: map[sid.Triple]verdict{}}
	d.names = &names{d: d, known: map[string]name{}}
	d.permits = newPermits(d)
	return d, dir
}

func put(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestThePermitThatLastsLongestIsShownAndANewOneIsToldAtOnce(t *testing.T) {
	d, dir := permitted(t)
	service, now := key(t), time.Now()
	id := sid.ServiceID{SS: 1, Suffix: sid.Certified(service.Public().(ed25519.PublicKey))}
	triple := sid.Triple{Service: id, Proto: sid.TCP, Port: 80}
	i := &instance{refused: "shows no permit"}
	d.serving.instances[triple], d.serving.told[triple] = i, verdict{reason: "shows no permit"}
	until := func(after time.Duration) wire.Permit {
		return wire.Delegate(service, id, d.publicKey(), now.Add(-time.Minute).Unix(), now.Add(after).Unix())
	}
	shown := func() int64 {
		g := &apiv1.Registration{}
		d.permits.show(g, triple)
		if len(g.Permit) == 0 {
			return 0
		}
		p, err := wire.ParsePermit(g.Permit)
		if err != nil || p.Check(id, service.Public().(ed25519.PublicKey), d.publicKey(), now.Unix()) != nil ||
			(wire.Stand{Challenge: d.challenge, Triple: triple}).Check(d.publicKey(), g.Signature) != nil {
			t.Fatalf("what is shown is not good: %v, %v", p, err)
		}
		return p.NotAfter
	}
	d.permits.take(d.findPermits(now))
	if at := shown(); at != 0 {
		t.Errorf("a permit until %d is shown, there is none", at)
	}
	put(t, filepath.Join(dir, "a.permit"), append(permit.Format(until(time.Hour), "web", "s1"), permit.Format(until(3*time.Hour), "", "")...))
	put(t, filepath.Join(dir, "b.permit"), permit.Format(until(2*time.Hour), "web", "s1"))
	d.permits.take(d.findPermits(now))
	if at := shown(); at != now.Add(3*time.Hour).Unix() || i.refused != "" || !d.serving.dirty || d.serving.told[triple].reason == "shows no permit" {
		t.Errorf("shown until %d; refused %q, to be told %v", at, i.refused, d.serving.dirty)
	}
	d.serving.dirty = false
	d.permits.take(d.findPermits(now))
	if d.serving.dirty {
		t.Error("the same is told again")
	}
	put(t, filepath.Join(dir, "web.key"), permit.FormatPrivate(service))
	d.permits.take(d.findPermits(now))
	if at := shown(); at < now.Add(ownPermitFor/2).Unix() || !d.serving.dirty {
		t.Errorf("with the service's key the permit ends at %d", at)
	}
	for _, file := range []string{"a.permit", "b.permit", "web.key"} {
		os.Remove(filepath.Join(dir, file))
	}
	d.permits.take(d.findPermits(now))
	if at := shown(); at != 0 {
		t.Errorf("a permit until %d is shown, all are gone", at)
	}
}

func TestFilesThatAreOfNoUseAreNamedWithTheirTrouble(t *testing.T) {
	d, dir := permitted(t)
	service, now := key(t), time.Now()
	id := sid.ServiceID{SS: 1, Suffix: 0x10000}
	mine := d.publicKey()
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
		found := d.findPermits(now)
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
	if found := d.findPermits(now); len(found.troubles) != 1 || !strings.Contains(found.troubles[0].Trouble, "no regular file") {
		t.Errorf("a pipe: %v", found.troubles)
	}
	d.cfg.Permits = filepath.Join(dir, "nowhere")
	if found := d.findPermits(now); len(found.troubles) != 1 {
		t.Errorf("a directory that is not there: %v", found.troubles)
	}
}

// A check that hangs ends, with all that it started, while others go on.
func TestAReadyCheckThatHangsIsBoundedAndHoldsUpNobody(t *testing.T) {
	hung := make(chan error, 1)
	go func() { hung <- readyCheck{spec: "exec:sleep 1000 & sleep 1000"}.run(context.Background()) }()
	for range 10 {
		if err := (readyCheck{spec: "exec:true"}).run(t.Context()); err != nil {
			t.Fatalf("another check, meanwhile: %v", err)
		}
	}
	select {
	case err := <-hung:
		if err == nil || !strings.Contains(err.Error(), "no end in 2s") {
			t.Errorf("a check that hangs: %v", err)
		}
	case <-time.After(20 * checkLimit):
		t.Error("a check that hangs does not end")
	}
}
