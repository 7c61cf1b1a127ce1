package trust

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/safety"
)

// Whoever gets the next key at the same time, a daemon and a command for instance, gets the same one; the first that keeps its
// credential makes it the key, and what the others keep changes nothing.
func TestWhoAsksForANextKeyTogetherGetsOne(t *testing.T) {
	d := Directory(t.TempDir())
	before, err := d.Key()
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]ed25519.PrivateKey, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			var err error
			if keys[i], err = d.NextKey(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	word := Credential{Certificate: []byte{1}, Roots: [][]byte{{2}}}
	for i, key := range keys {
		all.Go(func() {
			if !key.Equal(keys[0]) {
				t.Errorf("%d has another key", i)
			}
			if err := d.SaveNext(key, word); err != nil {
				t.Error(err)
			}
			if _, err := d.Advance(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if now, err := d.Key(); err != nil || !now.Equal(keys[0]) {
		t.Errorf("the key is not the next one: %v", err)
	}
	if former, err := d.Former(); err != nil || len(former) != 1 || !former[0].Equal(before.Public()) {
		t.Errorf("former keys: %v, %v", former, err)
	}
	_, foreign, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SaveNext(foreign, word); err == nil || !strings.Contains(err.Error(), "another key was asked for meanwhile") {
		t.Errorf("a credential for a key that nobody has: %v", err)
	}
	if _, err := d.Advance(); err != nil {
		t.Error(err)
	}
	if now, err := d.Key(); err != nil || !now.Equal(keys[0]) {
		t.Errorf("it has become the key: %v", err)
	}
}

// A credential for a key that was replaced since it was asked for is not kept.
func TestACredentialForAKeyOfBeforeIsNotKept(t *testing.T) {
	d := Directory(t.TempDir())
	if _, err := d.Key(); err != nil {
		t.Fatal(err)
	}
	word := Credential{Certificate: []byte{1}, Roots: [][]byte{{2}}}
	if err := d.Renew(word, func(ed25519.PrivateKey) error { return ErrReplaced }); !errors.Is(err, ErrReplaced) {
		t.Error(err)
	}
	if d.Member() {
		t.Error("it is kept")
	}
	if err := d.Renew(word, func(ed25519.PrivateKey) error { return nil }); err != nil || !d.Member() {
		t.Errorf("a good one is not: %v", err)
	}
}

// The lock is on nothing that another user can open, whatever the directory's own rights are.
func TestNobodyElseHoldsTheLock(t *testing.T) {
	safety.Test(t, safety.Door)
	d := Directory(t.TempDir())
	if err := os.Chmod(string(d), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := d.alone(func() error {
		info, err := os.Stat(d.file(lockFile))
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("its rights are %v", info.Mode())
		}
		others, err2 := os.Open(string(d))
		if err2 != nil {
			return err2
		}
		defer others.Close()
		if err := unix.Flock(int(others.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Errorf("who may read the directory waits for the lock, or could have it: %v", err)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.Forget(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(string(d)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
