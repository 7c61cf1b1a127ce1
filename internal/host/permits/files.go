package permits

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/permit"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// Where permits lie, and how often that is looked at. Looking is done beside the loop: a directory may be on a
// disk that does not answer.
const (
	Suffix       = ".permit" // of the files of permits
	keySuffix    = ".key"
	permitsEvery = 2 * time.Second
	maxPermits   = 4096 // files of a directory that are read
	keepExpired  = 24 * time.Hour
)

// A serviceKey is a service's own.
type serviceKey struct {
	key  ed25519.PrivateKey
	from string
}

func (k serviceKey) public() ed25519.PublicKey { return k.key.Public().(ed25519.PublicKey) }

// Found is what lies in the directories.
type Found struct {
	best     map[sid.ServiceID]papers
	ended    map[sid.ServiceID]papers
	keys     map[sid.Suffix]serviceKey
	troubles []*apiv1.HeldPermit
}

func (f *Found) trouble(file string, err error) {
	f.troubles = append(f.troubles, &apiv1.HeldPermit{From: file, Trouble: err.Error()})
}

// Watch looks again and again, until ctx ends.
func (p *Permits) Watch(ctx context.Context) {
	tick := time.NewTicker(permitsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			found := p.Find(time.Now())
			p.Post(func() { p.Take(found) })
		case <-ctx.Done():
			return
		}
	}
}

// Find reads the directory of the permits that were presented, and the operator's. It is for every goroutine.
func (p *Permits) Find(now time.Time) Found {
	f := Found{best: map[sid.ServiceID]papers{}, ended: map[sid.ServiceID]papers{}, keys: map[sid.Suffix]serviceKey{}}
	for _, dir := range []string{p.Presented, p.Directory} {
		if dir == "" {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil && !(dir == p.Presented && errors.Is(err, fs.ErrNotExist)) {
			f.trouble(dir, err)
		}
		if len(entries) > maxPermits {
			f.trouble(dir, fmt.Errorf("%d files, the first %d are read", len(entries), maxPermits))
			entries = entries[:maxPermits]
		}
		for _, e := range entries {
			p.findIn(&f, filepath.Join(dir, e.Name()), now)
		}
	}
	return f
}

func (p *Permits) findIn(f *Found, file string, now time.Time) {
	isKey := strings.HasSuffix(file, keySuffix)
	if !isKey && !strings.HasSuffix(file, Suffix) {
		return
	}
	text, err := readBounded(file)
	switch {
	case err != nil:
		f.trouble(file, err)
	case isKey:
		key, err := permit.ParsePrivate(text)
		if err != nil {
			f.trouble(file, err)
			return
		}
		k := serviceKey{key, file}
		f.keys[sid.Certified(k.public())] = k
	default:
		all, err := permit.Parse(text)
		if err != nil {
			f.trouble(file, err)
		}
		for _, x := range all {
			p.weigh(f, file, x, now)
		}
	}
}

// weigh takes a permit that may be used now or later, in the place of one that ends before it; one that has expired it keeps
// apart.
func (p *Permits) weigh(f *Found, file string, x wire.Permit, now time.Time) {
	err := p.Keys.Permitted(x, now)
	if errors.Is(err, wire.ErrPermitLate) && filepath.Dir(file) == p.Presented && now.Unix() > x.NotAfter+int64(keepExpired/time.Second) {
		os.Remove(file)
		return
	}
	into := f.best
	if err != nil && !errors.Is(err, wire.ErrPermitEarly) {
		f.trouble(file, fmt.Errorf("%v: %w", x.Service, err))
		if !errors.Is(err, wire.ErrPermitLate) {
			return
		}
		into = f.ended
	}
	if have, ok := into[x.Service]; !ok || have.NotAfter < x.NotAfter {
		into[x.Service] = papers{x, file}
	}
}

func readBounded(file string) ([]byte, error) {
	in, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe is not waited for
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("no regular file")
	}
	text, err := io.ReadAll(io.LimitReader(in, permit.MaxFile+1))
	if err == nil && len(text) > permit.MaxFile {
		err = fmt.Errorf("more than %d bytes", permit.MaxFile)
	}
	return text, err
}
