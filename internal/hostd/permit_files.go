package hostd

import (
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
	permitsDir   = "permits" // in the state directory: those that were presented
	permitSuffix = ".permit"
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

// foundPermits are what lies in the directories.
type foundPermits struct {
	best     map[sid.ServiceID]papers
	keys     map[sid.Suffix]serviceKey
	troubles []*apiv1.HeldPermit
}

func (f *foundPermits) trouble(file string, err error) {
	f.troubles = append(f.troubles, &apiv1.HeldPermit{From: file, Trouble: err.Error()})
}

// watchPermits looks again and again, until the daemon ends.
func (d *daemon) watchPermits() {
	tick := time.NewTicker(permitsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			found := d.findPermits(time.Now())
			d.post(func() { d.permits.take(found) })
		case <-d.ctx.Done():
			return
		}
	}
}

// findPermits reads the directory of the permits that were presented, and the operator's.
func (d *daemon) findPermits(now time.Time) foundPermits {
	f := foundPermits{best: map[sid.ServiceID]papers{}, keys: map[sid.Suffix]serviceKey{}}
	presented := filepath.Join(d.store.dir, permitsDir)
	for _, dir := range []string{presented, d.cfg.Permits} {
		if dir == "" {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil && !(dir == presented && errors.Is(err, fs.ErrNotExist)) {
			f.trouble(dir, err)
		}
		if len(entries) > maxPermits {
			f.trouble(dir, fmt.Errorf("%d files, the first %d are read", len(entries), maxPermits))
			entries = entries[:maxPermits]
		}
		for _, e := range entries {
			d.findPermit(&f, filepath.Join(dir, e.Name()), now)
		}
	}
	return f
}

func (d *daemon) findPermit(f *foundPermits, file string, now time.Time) {
	isKey := strings.HasSuffix(file, keySuffix)
	if !isKey && !strings.HasSuffix(file, permitSuffix) {
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
		for _, p := range all {
			d.weighPermit(f, file, p, now)
		}
	}
}

// weighPermit takes a permit that may be used now or later, in the place of one that ends before it.
func (d *daemon) weighPermit(f *foundPermits, file string, p wire.Permit, now time.Time) {
	err := d.permitted(p, now)
	if errors.Is(err, wire.ErrPermitLate) && filepath.Dir(file) == filepath.Join(d.store.dir, permitsDir) && now.Unix() > p.NotAfter+int64(keepExpired/time.Second) {
		os.Remove(file)
		return
	}
	if err != nil && !errors.Is(err, wire.ErrPermitEarly) {
		f.trouble(file, fmt.Errorf("%v: %w", p.Service, err))
		return
	}
	if have, ok := f.best[p.Service]; !ok || have.NotAfter < p.NotAfter {
		f.best[p.Service] = papers{p, file}
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

// keepPermit saves one that was presented.
func (s store) keepPermit(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Join(s.dir, permitsDir), 0o700); err != nil {
		return fmt.Errorf("save a permit: %w", err)
	}
	return s.write(filepath.Join(permitsDir, name), text)
}
